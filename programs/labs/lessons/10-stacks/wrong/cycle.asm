# says: turns in a circle
# Lesson 10: stacks
#
# The packet is a copy of a stack, from the innermost frame on. A frame begins with two numbers of 8 bytes:
#     +0  where the caller's frame is, counted from the beginning of the packet; 0: there is no caller
#     +8  the return address
# The program must store the return addresses in frames[0], frames[1] and so on, and return how many there are. It stops after 8, at the end of
# the packet, and where the caller's frame isn't above its own.
.license "GPL"
.map frames array key u32 value u64 entries 8
.program walk "xdp"
    r6 = r1                        # the context
    r7 = 0                         # how many there are
    r8 = 0                         # where the frame is
next:
    r2 = *(u32 *)(r6 + 0)          # the first byte of the packet
    r3 = *(u32 *)(r6 + 4)          # the end: behind the last byte
    if r8 > 4096 goto done         # so the verifier knows how large r8 can be
    r2 += r8
    r4 = r2
    r4 += 16
    if r4 > r3 goto done           # the frame isn't whole
    r9 = *(u64 *)(r2 + 0)          # the caller's frame
    r1 = *(u64 *)(r2 + 8)
    *(u64 *)(r10 - 16) = r1
    *(u32 *)(r10 - 4) = r7
    r1 = frames ll
    r2 = r10
    r2 += -4
    r3 = r10
    r3 += -16
    r4 = 0
    call bpf_map_update_elem
    r7 += 1
    if r7 >= 8 goto done
    if r9 == 0 goto done          # no caller, or one that can't be
    r8 = r9
    goto next
done:
    r0 = r7
    exit
