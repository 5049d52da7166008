# Lesson 9: latency
#
# begins and ends get two arguments: a thread, and a time in nanoseconds. Of each end, the time since the beginning in the same thread
# must be counted in took[n]: n is 0 for 0 and 1 ns, 1 for 2 and 3 ns, 2 for 4 to 7 ns, and so on. An end without a beginning counts nothing.
.license "GPL"
.map started hash key u64 value u64 entries 1024
.map took array key u32 value u64 entries 64
.program begins "raw_tp/sys_enter"
    r2 = *(u64 *)(r1 + 0)
    *(u64 *)(r10 - 8) = r2
    r2 = *(u64 *)(r1 + 8)
    *(u64 *)(r10 - 16) = r2
    r1 = started ll
    r2 = r10
    r2 += -8
    r3 = r10
    r3 += -16
    r4 = 0
    call bpf_map_update_elem
    r0 = 0
    exit
.program ends "raw_tp/sys_exit"
    r2 = *(u64 *)(r1 + 0)
    *(u64 *)(r10 - 8) = r2
    r7 = *(u64 *)(r1 + 8)
    r1 = started ll
    r2 = r10
    r2 += -8
    call bpf_map_lookup_elem
    if r0 == 0 goto out            # an end without a beginning
    r1 = *(u64 *)(r0 + 0)
    r8 = 0                         # TODO: r7 = how long it took; forget the beginning (bpf_map_delete_elem); r8 = n
    goto found
found:
    *(u32 *)(r10 - 20) = r8
    r1 = took ll
    r2 = r10
    r2 += -20
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1
out:
    r0 = 0
    exit
