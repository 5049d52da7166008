# A loop without an end: nothing in it changes what the condition looks at
.program endless "xdp"
    r0 = *(u32 *)(r1 + 16)         # xdp_md.rx_queue_index
again:
    if r0 != 5 goto again
    exit
