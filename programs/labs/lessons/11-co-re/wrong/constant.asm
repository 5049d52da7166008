# says: the distance is a number of the program
# Lesson 11: CO-RE
#
# The packet is a copy of a struct task of some kernel. Where the members are differs from kernel to kernel; the loader has looked it up
# and written it to pid_at (pid has 4 bytes) and start_at (start has 8). A member that this kernel doesn't have is at 0xffffffff.
# The program must store both in the variables pid and start, or 0 in start where there is none, and return 2 (XDP_PASS).
# A struct that ends before pid does, or before start does, gives 1 (XDP_DROP).
.license "GPL"
.bss pid_at u32
.bss start_at u32
.bss pid u64
.bss start u64
.program copy "xdp"
    r6 = *(u32 *)(r1 + 0)          # the first byte
    r7 = *(u32 *)(r1 + 4)          # the end
    r8 = pid_at ll
    r2 = 0
    if r2 > 4096 goto drop
    r3 = r6
    r3 += r2
    r4 = r3
    r4 += 4
    if r4 > r7 goto drop
    r1 = *(u32 *)(r3 + 0)
    r9 = pid ll
    *(u64 *)(r9 + 0) = r1
    r9 = start ll
    *(u64 *)(r9 + 0) = 0
    r8 = start_at ll
    r2 = 8
    w1 = 0xffffffff
    if r2 == r1 goto pass          # this kernel has none
    if r2 > 4096 goto drop
    r3 = r6
    r3 += r2
    r4 = r3
    r4 += 8
    if r4 > r7 goto drop
    r1 = *(u64 *)(r3 + 0)
    *(u64 *)(r9 + 0) = r1
pass:
    r0 = 2
    exit
drop:
    r0 = 1
    exit
