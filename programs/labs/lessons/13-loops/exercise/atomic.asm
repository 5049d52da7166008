# Adds 1 to a variable. Nothing gets lost
.bss n u64
.program atomic "xdp"
    r1 = n ll
    r2 = 1
    lock *(u64 *)(r1 + 0) += r2
    r0 = 2
    exit
