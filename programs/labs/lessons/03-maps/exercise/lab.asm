# Lesson 3: maps
#
# The program gets packets. It must count them by the two lowest bits of their length:
# counts[0] those of 4, 8, 12 ... bytes, counts[1] those of 5, 9, 13 ... bytes, and so on.
# Many CPUs may count at the same time: the addition has to be one step.

.map counts array key u32 value u64 entries 4

.program count "socket"
    r2 = *(u32 *)(r1 + 0)          # the length of the packet
    r2 &= 3
    *(u32 *)(r10 - 4) = r2         # the key has to lie in memory: here, on the stack
    r1 = counts ll                 # which map
    r2 = r10
    r2 += -4                       # where the key is
    call bpf_map_lookup_elem       # r0: the address of the value, or 0

    # TODO: add 1 to the value. First test whether there is one
    r0 = 0
    exit
