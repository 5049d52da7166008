# A board's program: how often files are opened (board.sh).
.map calls array key u32 value u64 entries 1
.program on_open "kprobe/vfs_open"
    *(u32 *)(r10 - 4) = 0
    r1 = calls ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1
out:
    r0 = 0
    exit
