# says: another CPU can add between the read and the write
# Lesson 3: maps
#
# The program gets packets. It must count them by the two lowest bits of their length:
# counts[0] those of 4, 8, 12 ... bytes, counts[1] those of 5, 9, 13 ... bytes, and so on.

.map counts array key u32 value u64 entries 4

.program count "socket"
    r2 = *(u32 *)(r1 + 0)          # the length of the packet
    r2 &= 3
    *(u32 *)(r10 - 4) = r2         # the key has to lie in memory: here, on the stack
    r1 = counts ll                 # which map
    r2 = r10
    r2 += -4                       # where the key is
    call bpf_map_lookup_elem       # r0: the address of the value, or 0

    if r0 == 0 goto out            # no such element
    r1 = *(u64 *)(r0 + 0)
    r1 += 1
    *(u64 *)(r0 + 0) = r1
out:
    r0 = 0
    exit
