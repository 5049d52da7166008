# says: !read_ok
# Lesson 5: helpers and calls
#
# The program gets a packet. It must return the largest of the packet's first three bytes,
# and 0 when the packet has fewer than three.

.function larger                   # the larger one of r1 and r2
    r0 = r1
    if r1 >= r2 goto done
    r0 = r2
done:
    exit

.program largest "socket"
    r2 = 0
    r3 = r10
    r3 += -8
    r4 = 3
    call bpf_skb_load_bytes        # three bytes to r10 - 8; r0 is 0 if that worked

    if r0 != 0 goto short
    r1 = *(u8 *)(r10 - 8)
    r2 = *(u8 *)(r10 - 7)
    r3 = *(u8 *)(r10 - 6)
    call larger
    r1 = r0
    r2 = r3
    call larger
    exit
short:
    r0 = 0
    exit
