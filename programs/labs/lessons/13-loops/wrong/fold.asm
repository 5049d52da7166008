# says: folded
# Lesson 13: loops and what they cost
#
# The program returns the exclusive or of all bytes of the packet, up to 512 bytes: 01 02 04 gives 7. This is right, but slow:
# it executes eight instructions for each byte. It must not execute more than 600 for 512 bytes. Keep the result.
.license "GPL"
.program mix "xdp"
    r2 = *(u32 *)(r1 + 0)          # the first byte
    r3 = *(u32 *)(r1 + 4)          # the end
    r0 = 0
    r6 = 0                         # how many rounds
words:
    r4 = r2
    r4 += 8
    if r4 > r3 goto fold           # fewer than 8 bytes are left
    r5 = *(u64 *)(r2 + 0)
    r0 ^= r5
    r2 = r4
    r6 += 1
    if r6 < 64 goto words
fold:                              # 8 bytes become 4, 2, 1
    r5 = r0
    r5 >>= 32
    r0 ^= r5
    r0 &= 255
    if r6 >= 64 goto out
    r6 = 0
bytes:                             # up to 7 bytes are left
    r4 = r2
    r4 += 1
    if r4 > r3 goto out
    r5 = *(u8 *)(r2 + 0)
    r0 ^= r5
    r2 = r4
    r6 += 1
    if r6 < 8 goto bytes
out:
    exit
