# says: every packet is counted under the same key
.map counts array key u32 value u64 entries 4
.program count "socket"
    r2 = 2
    *(u32 *)(r10 - 4) = r2
    r1 = counts ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1
out:
    r0 = 0
    exit
