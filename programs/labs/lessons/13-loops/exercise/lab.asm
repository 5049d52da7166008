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
bytes:                             # TODO: 8 bytes at once, as long as there are 8
    r4 = r2
    r4 += 1
    if r4 > r3 goto out
    r5 = *(u8 *)(r2 + 0)
    r0 ^= r5
    r2 = r4
    r6 += 1
    if r6 < 512 goto bytes
out:
    exit
