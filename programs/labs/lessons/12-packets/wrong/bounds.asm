# says: invalid access to packet
# Lesson 12: packets
#
# A small firewall: UDP over IPv4 to port 53 is dropped (1, XDP_DROP), and counted in dropped. Everything else passes (2, XDP_PASS), so do
# packets that are too short to tell. The header of IPv4 has 20 bytes or more: the lower half of its first byte is the length, in words of 4 bytes.
.license "GPL"
.bss dropped u64
.program firewall "xdp"
    r2 = *(u32 *)(r1 + 0)          # the first byte
    r3 = *(u32 *)(r1 + 4)          # the end
    r0 = 2
    r4 = r2
    r4 += 34                       # Ethernet 14, IPv4 20
    if r4 > r3 goto out
    r5 = *(u16 *)(r2 + 12)
    r5 = be16 r5
    if r5 != 0x800 goto out        # not IPv4
    r5 = *(u8 *)(r2 + 23)
    if r5 != 17 goto out           # not UDP
    r5 = *(u8 *)(r2 + 14)
    r5 &= 15
    r5 <<= 2                       # the length of IPv4's header
    r2 += 14
    r2 += r5
    r5 = *(u16 *)(r2 + 2)
    r5 = be16 r5
    if r5 != 53 goto out
    r1 = dropped ll
    r2 = 1
    lock *(u64 *)(r1 + 0) += r2
    r0 = 1
out:
    exit
