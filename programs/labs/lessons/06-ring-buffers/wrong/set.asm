# says: lost becomes 1 each time
# Lesson 6: ring buffers and losses
#
# The program sends a record for each packet: its length, in 8 bytes.
# When the ring buffer is full, the record is lost. The program must count how many are lost, in the variable lost.

.map ring ringbuf entries 4096
.bss lost u64

.program record "socket"
    r6 = *(u32 *)(r1 + 0)          # the length of the packet
    r1 = ring ll
    r2 = 8                         # bytes
    r3 = 0
    call bpf_ringbuf_reserve       # r0: where the record goes, or 0: there is no room
    if r0 == 0 goto full
    *(u64 *)(r0 + 0) = r6
    r1 = r0
    r2 = 0
    call bpf_ringbuf_submit        # now user space can see it
    r0 = 0
    exit
full:
    r1 = lost ll
    r2 = 1
    *(u64 *)(r1 + 0) = r2
    r0 = 0
    exit
