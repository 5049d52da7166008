# says: highest byte first
# Lesson 4: the verifier's bounds
#
# The program gets packets. It must drop IPv6 packets: return 1 (XDP_DROP) for them, and 2 (XDP_PASS) for all others.
# Bytes 12 and 13 of a packet say what it is: 86 dd is IPv6. A packet that is too short to say it passes.

.program filter "xdp"
    r2 = *(u32 *)(r1 + 0)          # the address of the packet's first byte
    r3 = *(u32 *)(r1 + 4)          # the address behind its last byte
    r0 = 2

    r4 = r2
    r4 += 14
    if r4 > r3 goto out
    r5 = *(u16 *)(r2 + 12)
    if r5 != 0x86dd goto out
    r0 = 1
out:
    exit
