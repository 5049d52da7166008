# says: the same number twice
# Lesson 2: registers, memory and the stack
#
# The program gets a packet. Its first 8 bytes are two numbers of 4 bytes each, lowest byte first.
# It must return the sum of the two numbers.

.program sum "socket"
    r2 = 0                         # from byte 0 of the packet
    r3 = r10
    r3 += -8                       # to the stack, 8 bytes below its end
    r4 = 8                         # 8 bytes
    call bpf_skb_load_bytes        # now r1 to r5 are lost, and r0 says whether it worked

    r0 = *(u32 *)(r10 - 8)
    r1 = *(u32 *)(r10 - 8)
    r0 += r1
    exit
