/* Reads and writes the maps of a bundle: each function is one command of bpf(2). */
#include "parts.h"

#include <errno.h>

/* A failure of a map's operation. */
static int missed(const struct rawbpf_bundle *bundle, uint32_t map, struct rawbpf_error *error, const char *what) {
    const int os = errno;
    const char *name = map < bundle->map_count ? bundle->maps[map].name : "?";
    const int array = map < bundle->map_count &&
                      (bundle->maps[map].type == BPF_MAP_TYPE_ARRAY || bundle->maps[map].type == BPF_MAP_TYPE_PERCPU_ARRAY);
    if (rawbpf_bundle_map_fd(bundle, map) < 0)
        return rawbpf_part_fail(error, RAWBPF_INVALID_ARGUMENT, 0, "map ", name, "it isn't loaded");
    if (os == E2BIG)
        return array ? rawbpf_part_fail(error, RAWBPF_INVALID_ARGUMENT, os, what, name, "the key is behind its end")
                     : rawbpf_part_fail(error, RAWBPF_NO_MEMORY, os, what, name, "it is full");
    if (os == EINVAL) return rawbpf_part_fail(error, RAWBPF_INVALID_ARGUMENT, os, what, name, "this kind of map can't do that");
    return rawbpf_part_refused(error, os, what, name);
}

static int element(const struct rawbpf_bundle *bundle, uint32_t map, int command, const void *key, const void *value,
                   uint64_t flags, struct rawbpf_error *error, const char *what) {
    if (rawbpf_part_element(command, rawbpf_bundle_map_fd(bundle, map), key, value, flags) == 0) return RAWBPF_OK;
    return missed(bundle, map, error, what);
}

int rawbpf_bundle_lookup(const struct rawbpf_bundle *bundle, uint32_t map, const void *key, void *value,
                         struct rawbpf_error *error) {
    return element(bundle, map, BPF_MAP_LOOKUP_ELEM, key, value, 0, error, "reading map ");
}

int rawbpf_bundle_update(const struct rawbpf_bundle *bundle, uint32_t map, const void *key, const void *value, uint64_t flags,
                         struct rawbpf_error *error) {
    return element(bundle, map, BPF_MAP_UPDATE_ELEM, key, value, flags, error, "writing map ");
}

int rawbpf_bundle_delete(const struct rawbpf_bundle *bundle, uint32_t map, const void *key, struct rawbpf_error *error) {
    return element(bundle, map, BPF_MAP_DELETE_ELEM, key, NULL, 0, error, "deleting from map ");
}

int rawbpf_bundle_next_key(const struct rawbpf_bundle *bundle, uint32_t map, const void *key, void *next,
                           struct rawbpf_error *error) {
    return element(bundle, map, BPF_MAP_GET_NEXT_KEY, key, next, 0, error, "reading the keys of map ");
}
