/* Reads a ring buffer (BPF_MAP_TYPE_RINGBUF, kernel/bpf/ringbuf.c) without copying:
 *
 *      page 0         consumer position, ours to write
 *      page 1         producer position, the kernel's
 *      data, twice    a record that crosses the end goes on in the second mapping of the same pages
 *
 * A record is a header of 8 bytes (length, with bit 31 while it is being written and bit 30 where it was discarded) and its
 * bytes, rounded up to 8. */
#include "parts.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

int rawbpf_bundle_ring_open(const struct rawbpf_bundle *bundle, uint32_t map, struct rawbpf_bundle_ring *ring,
                            struct rawbpf_error *error) {
    const long page = sysconf(_SC_PAGESIZE);
    const char *name = map < bundle->map_count ? bundle->maps[map].name : "?";
    struct bpf_map_info info;
    union bpf_attr attr;
    memset(ring, 0, sizeof *ring);
    ring->fd = rawbpf_bundle_map_fd(bundle, map);
    if (ring->fd < 0 || bundle->maps[map].type != BPF_MAP_TYPE_RINGBUF)
        return rawbpf_part_fail(error, RAWBPF_INVALID_ARGUMENT, 0, "map ", name,
                                ring->fd < 0 ? "it isn't loaded" : "it is no ring buffer");
    memset(&info, 0, sizeof info); /* a pinned one may have another size */
    memset(&attr, 0, sizeof attr);
    attr.info.bpf_fd = (uint32_t)ring->fd;
    attr.info.info_len = sizeof info;
    attr.info.info = rawbpf_part_address(&info);
    if (rawbpf_part_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) != 0)
        return rawbpf_part_refused(error, errno, "asking for the size of map ", name);
    ring->size = info.max_entries;
    ring->consumer = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
    if (ring->consumer != MAP_FAILED) {
        ring->producer = mmap(NULL, (size_t)page + 2 * (size_t)ring->size, PROT_READ, MAP_SHARED, ring->fd, page);
        if (ring->producer != MAP_FAILED) return RAWBPF_OK;
        munmap(ring->consumer, (size_t)page);
    }
    ring->consumer = ring->producer = NULL;
    return rawbpf_part_refused(error, errno, "mapping the memory of map ", name);
}

/* All records that are there. A negative code, or how many were read; *stopped: the handler wants no more. */
static int read_now(struct rawbpf_bundle_ring *ring, int (*handle)(const void *, size_t, void *), void *context, int *stopped,
                    struct rawbpf_error *error) {
    unsigned long *const consumer = (unsigned long *)ring->consumer, *const producer = (unsigned long *)ring->producer;
    const unsigned char *const data = (const unsigned char *)ring->producer + sysconf(_SC_PAGESIZE);
    unsigned long at = *consumer; /* nobody else writes it */
    int count = 0;
    while (!*stopped && count < INT_MAX && at != __atomic_load_n(producer, __ATOMIC_ACQUIRE)) {
        const unsigned char *const record = data + (at & (ring->size - 1));
        const uint32_t header = __atomic_load_n((const uint32_t *)(const void *)record, __ATOMIC_ACQUIRE);
        const uint32_t length = header & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
        if (header & BPF_RINGBUF_BUSY_BIT) break;
        if (length > ring->size - BPF_RINGBUF_HDR_SZ)
            return rawbpf_part_fail(error, RAWBPF_BAD_INPUT, 0, "ring buffer", "", "a record is longer than the buffer");
        if (!(header & BPF_RINGBUF_DISCARD_BIT)) {
            *stopped = handle(record + BPF_RINGBUF_HDR_SZ, length, context) != 0;
            count++;
        }
        at += (length + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
        __atomic_store_n(consumer, at, __ATOMIC_RELEASE);
    }
    return count;
}

int rawbpf_bundle_ring_read(struct rawbpf_bundle_ring *ring, int timeout_ms,
                            int (*handle)(const void *record, size_t size, void *context), void *context,
                            struct rawbpf_error *error) {
    struct pollfd wait = {ring->fd, POLLIN, 0};
    int stopped = 0, count = read_now(ring, handle, context, &stopped, error);
    if (count != 0 || stopped || timeout_ms == 0) return count;
    if (poll(&wait, 1, timeout_ms) < 0) return errno == EINTR ? 0 : rawbpf_part_refused(error, errno, "waiting for records", "");
    return read_now(ring, handle, context, &stopped, error);
}

void rawbpf_bundle_ring_close(struct rawbpf_bundle_ring *ring) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (ring->consumer != NULL) munmap(ring->consumer, page);
    if (ring->producer != NULL) munmap(ring->producer, page + 2 * (size_t)ring->size);
    memset(ring, 0, sizeof *ring);
    ring->fd = -1;
}
