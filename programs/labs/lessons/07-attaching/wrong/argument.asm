# says: this is the second argument
# Lesson 7: attaching
#
# The program is for a kprobe at vfs_read(file, buf, count, pos). Calls that ask for 4096 bytes or more are large.
# It must count them in big[0], and add up in big[1] how many bytes they ask for.
.license "GPL"
.map big array key u32 value u64 entries 2
.program on_read "kprobe/vfs_read"
    r6 = *(u64 *)(r1 + 104)         # count, the third argument: rdx
    if r6 < 4096 goto out          # without a sign, as a size is
    *(u32 *)(r10 - 4) = 0
    r1 = big ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1    # one more call
    *(u32 *)(r10 - 4) = 1
    r1 = big ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    lock *(u64 *)(r0 + 0) += r6    # and its bytes
out:
    r0 = 0
    exit
