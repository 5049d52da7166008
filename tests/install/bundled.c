/* A product without a heap: its programs are tables, made of bundled.bpf.c by `rawbpf bundle`. They count the system calls of
   this process, and send an event for the first three. */
#include "bundled.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int seen;

static int on_event(const void *record, size_t size, void *context) {
    uint32_t pid = 0;
    if (size == sizeof pid) memcpy(&pid, record, size);
    if (pid == *(const uint32_t *)context) seen++;
    return 0;
}

static int load(struct rawbpf_error *error) {
#ifdef RAWBPF_BUNDLE_LIVE
    return bundled_load_live(error);
#else
    return rawbpf_bundle_load(&bundled, error);
#endif
}

int main(void) {
    static struct rawbpf_error error;
    struct rawbpf_bundle_ring ring;
    uint32_t pid = (uint32_t)getpid();
    uint64_t count = 0;
    int i;
    bundled_rodata.v.step = 1;
    if (load(&error) < 0 || rawbpf_bundle_update(&bundled, bundled_map_calls, &pid, &count, 0, &error) < 0 ||
        rawbpf_bundle_ring_open(&bundled, bundled_map_events, &ring, &error) < 0 || rawbpf_bundle_attach(&bundled, &error) != 1) {
        fprintf(stderr, "%s\n%s\n%s", error.text, error.hint, error.log);
        return 1;
    }
    for (i = 0; seen < 3 && i < 100; i++)
        if (rawbpf_bundle_ring_read(&ring, 10, on_event, &pid, &error) < 0) return 1;
    if (rawbpf_bundle_lookup(&bundled, bundled_map_calls, &pid, &count, &error) < 0) return 1;
    rawbpf_bundle_ring_close(&ring);
    rawbpf_bundle_close(&bundled);
    printf("%d events, %s\n", seen, count >= 3 ? "counted" : "lost");
    return seen == 3 && count >= 3 ? 0 : 1;
}
