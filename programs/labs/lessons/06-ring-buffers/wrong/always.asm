# says: counted although it was sent
.map ring ringbuf entries 4096
.bss lost u64

.program record "socket"
    r6 = *(u32 *)(r1 + 0)
    r1 = lost ll
    r2 = 1
    lock *(u64 *)(r1 + 0) += r2
    r1 = ring ll
    r2 = 8
    r3 = 0
    call bpf_ringbuf_reserve
    if r0 == 0 goto full
    *(u64 *)(r0 + 0) = r6
    r1 = r0
    r2 = 0
    call bpf_ringbuf_submit
full:
    r0 = 0
    exit
