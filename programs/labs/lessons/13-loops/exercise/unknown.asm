# A loop whose end the verifier can't find: r2 may be any number of 64 bits
.program unknown "xdp"
    call bpf_ktime_get_ns
    r2 = r0
    r0 = 0
again:
    if r2 == 0 goto out
    r2 += -1
    r0 += 1
    goto again
out:
    exit
