/* What the files of this folder share; not installed. */
#ifndef RAWBPF_BUNDLE_PARTS_H
#define RAWBPF_BUNDLE_PARTS_H

#include <linux/bpf.h>

#include "../core/rawbpf/bundle.h"

/* Adds to a text as much as fits. */
void rawbpf_part_append(char *text, size_t size, const char *more);
/* Fills `error` with "WHAT NAME: WHY"; returns `code`. */
int rawbpf_part_fail(struct rawbpf_error *error, int code, int os, const char *what, const char *name, const char *why);
void rawbpf_part_hint(struct rawbpf_error *error, const char *text);
/* A failed system call: what its errno means where nothing else is known. */
int rawbpf_part_refused(struct rawbpf_error *error, int os, const char *what, const char *name);

int rawbpf_part_bpf(int command, union bpf_attr *attr);
/* BPF_MAP_*_ELEM and BPF_MAP_GET_NEXT_KEY: `value` is the value, or where the next key goes. */
int rawbpf_part_element(int command, int fd, const void *key, const void *value, uint64_t flags);
static inline uint64_t rawbpf_part_address(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

/* The three parts of rawbpf_bundle::fds. */
static inline int *rawbpf_part_program_fds(const struct rawbpf_bundle *bundle) { return bundle->fds + bundle->map_count; }
static inline int *rawbpf_part_link_fds(const struct rawbpf_bundle *bundle) {
    return rawbpf_part_program_fds(bundle) + bundle->program_count;
}
static inline uint32_t rawbpf_part_fd_count(const struct rawbpf_bundle *bundle) {
    return bundle->map_count + 2 * bundle->program_count;
}

/* Which maps or programs of a bundle: a bit each. */
struct rawbpf_part_set {
    unsigned char bits[RAWBPF_BUNDLE_MOST / 8];
};
static inline void rawbpf_part_put(struct rawbpf_part_set *set, uint32_t i) { set->bits[i / 8] |= (unsigned char)(1u << i % 8); }
static inline int rawbpf_part_has(const struct rawbpf_part_set *set, uint32_t i) { return set->bits[i / 8] >> i % 8 & 1; }

#endif
