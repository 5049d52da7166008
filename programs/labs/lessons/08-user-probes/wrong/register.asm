# says: both arguments come from one register
# Lesson 8: probes in programs
#
# A bank has a USDT probe, bank:transfer. Its note says where the two arguments are:
#     8@%rdi      the account: 8 bytes, without a sign, in rdi
#     -4@%esi     the amount: 4 bytes, with a sign, in the lower half of rsi
# The program must keep the balance of each account: the sum of its amounts.
.license "GPL"
.map balance hash key u64 value s64 entries 64
.program on_transfer "uprobe"
    r6 = *(u64 *)(r1 + 112)        # rdi
    r7 = *(s32 *)(r1 + 112)        # the lower half of rsi; s32 repeats its sign in the upper half of r7
    *(u64 *)(r10 - 8) = r6
    r1 = balance ll
    r2 = r10
    r2 += -8
    call bpf_map_lookup_elem
    if r0 != 0 goto known
    *(u64 *)(r10 - 16) = r7        # the first amount of this account
    r1 = balance ll
    r2 = r10
    r2 += -8
    r3 = r10
    r3 += -16
    r4 = 0
    call bpf_map_update_elem
    goto out
known:
    lock *(u64 *)(r0 + 0) += r7    # one more
out:
    r0 = 0
    exit
