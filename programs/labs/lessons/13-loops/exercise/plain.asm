# Adds 1 to a variable. Two CPUs at once may lose one
.bss n u64
.program plain "xdp"
    r1 = n ll
    r2 = *(u64 *)(r1 + 0)
    r2 += 1
    *(u64 *)(r1 + 0) = r2
    r0 = 2
    exit
