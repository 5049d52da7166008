// SPDX-License-Identifier: MIT
/* <rawbpf/bundle.h>: loads programs that were known when the product was built. `rawbpf bundle OBJECT -o x.h` writes their
   instructions, maps and links as tables of C; this loads and attaches them. It is all of librawbpf-bundle.a (pkg-config
   rawbpf-bundle).

        #include "x.h"                                  one .c file of the product includes it
        x_rodata.v.limit = 10;                          a global variable, before it is loaded
        rawbpf_bundle_load(&x, &error)                  maps are made, programs verified
        rawbpf_bundle_attach(&x, &error)                each program where its section's name says
        rawbpf_bundle_lookup(&x, x_map_counts, &key, &value, &error)
        rawbpf_bundle_close(&x)

   Nothing here allocates memory, reads an object file or follows types: what depends on the kernel (fields' offsets, ids of
   types) was worked out for each kernel that `rawbpf bundle --btf` was given, and is chosen by a hash of the running kernel's
   types. On another kernel rawbpf_bundle_load() says RAWBPF_NOT_FOUND; x_load_live() of the same header then does the whole work
   by <rawbpf/core.h>.

   Errors and threads are as in <rawbpf/core.h>. There is one of each bundle: its descriptors stand in the header's tables. */
#ifndef RAWBPF_BUNDLE_H
#define RAWBPF_BUNDLE_H

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tables that `rawbpf bundle` writes ---- */

/** So many maps, and so many programs, a bundle has at most. */
enum { RAWBPF_BUNDLE_MOST = 256 };

/** A map to make. */
struct rawbpf_bundle_map {
    const char *name;                      /**< "events", "x.rodata" */
    uint32_t type;                         /**< BPF_MAP_TYPE_* */
    uint32_t key_size;                     /**< in bytes */
    uint32_t value_size;                   /**< in bytes, of one CPU's value */
    uint32_t entries;                      /**< bytes of a ring buffer; of a perf event array 0: one for each CPU */
    uint32_t flags;                        /**< BPF_F_* */
    uint32_t key_type;                     /**< in rawbpf_bundle::types; 0: unknown */
    uint32_t value_type;                   /**< the same */
    uint32_t numa_node;                    /**< counts only with BPF_F_NUMA_NODE in `flags` */
    uint64_t extra;                        /**< of a bloom filter: how many hash functions */
    const void *contents;                  /**< of its only entry: value_size bytes; NULL: zeros */
    int constant;                          /**< 1: frozen after it was filled */
    const char *pin;                       /**< its path where it is shared by that name; NULL: it is not */
    const struct rawbpf_bundle_map *inner; /**< of a map of maps: what its entries look like */
};
/** An entry of a map that holds a program or a map of the same bundle. */
struct rawbpf_bundle_slot {
    uint32_t map;   /**< which map has the entry */
    uint32_t key;   /**< of the entry */
    int is_program; /**< 1: `which` is a program; 0: a map */
    uint32_t which; /**< a number in rawbpf_bundle::programs or maps */
};
/** An instruction that gets a map's descriptor. */
struct rawbpf_bundle_patch {
    uint32_t insn;   /**< the first of the two slots of an ld_imm64 */
    uint32_t map;    /**< whose descriptor */
    int is_value;    /**< 1: an address in the map's value, `offset` bytes behind its start; 0: the map */
    uint32_t offset; /**< in bytes */
};
/** Where a function begins (struct bpf_func_info). */
struct rawbpf_bundle_function {
    uint32_t insn; /**< its first instruction */
    uint32_t type; /**< in rawbpf_bundle::types */
};
/** How a program is attached. */
enum rawbpf_bundle_way {
    RAWBPF_BY_HAND,        /**< by the product: rawbpf_bundle_program_fd() */
    RAWBPF_KPROBE,         /**< target: "vfs_read", "vfs_read+0x10" */
    RAWBPF_KRETPROBE,      /**< the same, at its return */
    RAWBPF_SYSCALL,        /**< target: "openat"; a kprobe on the architecture's name for it */
    RAWBPF_RETSYSCALL,     /**< the same, at its return */
    RAWBPF_UPROBE,         /**< target: "/usr/lib/libc.so.6:0x9d0a0", by the offset in the file */
    RAWBPF_URETPROBE,      /**< the same, at its return */
    RAWBPF_TRACEPOINT,     /**< target: "sched/sched_switch" */
    RAWBPF_RAW_TRACEPOINT, /**< target: "sched_switch" */
    RAWBPF_TRAMPOLINE,     /**< tp_btf, fentry, fexit, fmod_ret, lsm: where was decided when it was loaded */
    RAWBPF_ITERATOR,       /**< where was decided when it was loaded */
    RAWBPF_PERF_EVENT,     /**< place->fd; before 5.15 the program stays on that event until it is closed */
    RAWBPF_CGROUP,         /**< place->fd */
    RAWBPF_NETNS,          /**< place->fd */
    RAWBPF_XDP,            /**< place->interface */
    RAWBPF_TCX             /**< place->interface */
};
/** A program to load. */
struct rawbpf_bundle_program {
    const char *name;                               /**< of its function */
    uint32_t type;                                  /**< BPF_PROG_TYPE_* */
    uint32_t expected;                              /**< its expected_attach_type, BPF_* */
    uint32_t flags;                                 /**< BPF_F_* of BPF_PROG_LOAD */
    uint64_t *insns;                                /**< struct bpf_insn each */
    uint32_t insn_count;                            /**< how many */
    const struct rawbpf_bundle_patch *patches;      /**< NULL: it uses no map */
    uint32_t patch_count;                           /**< how many */
    const struct rawbpf_bundle_function *functions; /**< NULL: types of its functions aren't known */
    uint32_t function_count;                        /**< how many */
    enum rawbpf_bundle_way way;                     /**< how it is attached */
    uint32_t attach_type;                           /**< BPF_* of its link */
    const char *target;                             /**< of its section's name; NULL: it says none */
};
/** An instruction that is another one on some kernel. */
struct rawbpf_bundle_edit {
    uint32_t program; /**< whose */
    uint32_t insn;    /**< which of its instructions */
    uint64_t value;   /**< what it is there */
};
/** A kernel that the bundle was made for. */
struct rawbpf_bundle_kernel {
    const char *name;                       /**< of the file of its types */
    uint64_t size;                          /**< of its /sys/kernel/btf/vmlinux, in bytes */
    uint64_t hash;                          /**< of the same: rawbpf_bundle_hash() */
    const struct rawbpf_bundle_edit *edits; /**< NULL: the instructions are as they stand */
    uint32_t edit_count;                    /**< how many */
    const uint32_t *attach_ids;             /**< for each program what it is verified against, or 0; NULL: none needs one */
};
/** Everything of one object. */
struct rawbpf_bundle {
    const char *name;                             /**< for messages */
    const char *license;                          /**< "GPL": some helpers are for such programs only */
    const struct rawbpf_bundle_map *maps;         /**< in the object's order */
    uint32_t map_count;                           /**< how many */
    const struct rawbpf_bundle_program *programs; /**< in the object's order */
    uint32_t program_count;                       /**< how many */
    const struct rawbpf_bundle_slot *slots;       /**< NULL: none */
    uint32_t slot_count;                          /**< how many */
    const struct rawbpf_bundle_kernel *kernels;   /**< NULL: the object is the same on every kernel */
    uint32_t kernel_count;                        /**< how many */
    const void *types;                            /**< BTF; NULL: none */
    uint32_t types_size;                          /**< in bytes */
    const void *old_types;   /**< the same for kernels that lack newer kinds of types; NULL: there are none in it */
    uint32_t old_types_size; /**< in bytes */
    int *fds;                /**< of the maps, then of the programs, then of the links; -1: none */
};

/** Goes on with `hash` over `size` bytes: FNV-1a 64, eight bytes at a time. Begin with RAWBPF_BUNDLE_HASH. A call's `size` is a
   multiple of 8 but for the last one's. */
static inline uint64_t rawbpf_bundle_hash(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *at = (const unsigned char *)bytes;
    while (size != 0) {
        size_t i, most = size < 8 ? size : 8;
        uint64_t word = 0;
        for (i = 0; i < most; i++) word |= (uint64_t)at[i] << (8 * i);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 32;
        at += most;
        size -= most;
    }
    return hash;
}
#define RAWBPF_BUNDLE_HASH UINT64_C(0xcbf29ce484222325)

/* ---- loading and attaching ---- */

/** Makes the maps and loads the programs. Where it fails nothing stays in the kernel. Errors: not_found: this is none of the
   bundle's kernels; permission; rejected; no_memory; invalid_argument: it is loaded; kernel. */
int rawbpf_bundle_load(const struct rawbpf_bundle *bundle, struct rawbpf_error *error);
/** Attaches each program whose section's name says where, but for sections that `rawbpf bundle` named as attached by hand;
   returns how many were. Errors: those of rawbpf_bundle_attach_program(); what this call attached is detached then. */
int rawbpf_bundle_attach(const struct rawbpf_bundle *bundle, struct rawbpf_error *error);
/** Attaches one program; rawbpf_bundle_close() detaches it. `place` may be NULL: where its section's name says. Errors:
   invalid_argument (says what is missing, also: it is attached already), unsupported (it is attached by hand, or this kernel
   can't), not_found, permission, busy. */
int rawbpf_bundle_attach_program(const struct rawbpf_bundle *bundle, uint32_t program, const struct rawbpf_place *place,
                                 struct rawbpf_error *error);
/** The same once more, elsewhere: returns a descriptor that the caller closes, which detaches it. */
int rawbpf_bundle_link(const struct rawbpf_bundle *bundle, uint32_t program, const struct rawbpf_place *place,
                       struct rawbpf_error *error);
/** Whether it has any descriptor. */
int rawbpf_bundle_is_loaded(const struct rawbpf_bundle *bundle);
/** Puts a copy of a descriptor into the bundle's `fds`, as x_load_live() does. Errors: `fd` where that is one of enum
   rawbpf_code; no_memory: too many open files. */
int rawbpf_bundle_adopt(const struct rawbpf_bundle *bundle, uint32_t index, int fd, struct rawbpf_error *error);
/** Detaches and closes everything; pins stay. It may be loaded again. */
void rawbpf_bundle_close(const struct rawbpf_bundle *bundle);
/** Descriptors, which the bundle keeps; -1 where it isn't loaded. */
int rawbpf_bundle_map_fd(const struct rawbpf_bundle *bundle, uint32_t map);
int rawbpf_bundle_program_fd(const struct rawbpf_bundle *bundle, uint32_t program);

/* ---- maps ---- */

/** Copies the value at `key` into `value`: the map's value_size bytes; of a per-CPU map as many, rounded up to 8, for each
   possible CPU. Errors: not_found: no entry has this key. */
int rawbpf_bundle_lookup(const struct rawbpf_bundle *bundle, uint32_t map, const void *key, void *value,
                         struct rawbpf_error *error);
/** Sets the value at `key`. `flags`: BPF_ANY (0), BPF_NOEXIST (1), BPF_EXIST (2). Errors: no_memory: the map is full; busy and
   not_found as `flags` say. */
int rawbpf_bundle_update(const struct rawbpf_bundle *bundle, uint32_t map, const void *key, const void *value, uint64_t flags,
                         struct rawbpf_error *error);
/** Removes an entry. Errors: not_found; invalid_argument for an array. */
int rawbpf_bundle_delete(const struct rawbpf_bundle *bundle, uint32_t map, const void *key, struct rawbpf_error *error);
/** Writes the key after `key` (NULL: the first one) to `next`. Errors: not_found: that was the last one. `next` may be `key`. */
int rawbpf_bundle_next_key(const struct rawbpf_bundle *bundle, uint32_t map, const void *key, void *next,
                           struct rawbpf_error *error);

/* ---- ring buffers (5.8) ---- */

/** The reading end of a map of type BPF_MAP_TYPE_RINGBUF; one a map. */
struct rawbpf_bundle_ring {
    int fd;         /**< the map's: poll(2) says when there are records */
    uint32_t size;  /**< of its records, in bytes */
    void *consumer; /**< pages that are shared with the kernel: how far it was read */
    void *producer; /**< how far it was written, and the records */
};
/** Maps its memory. Errors: invalid_argument: no ring buffer, or not loaded; no_memory. */
int rawbpf_bundle_ring_open(const struct rawbpf_bundle *bundle, uint32_t map, struct rawbpf_bundle_ring *ring,
                            struct rawbpf_error *error);
/** As rawbpf_ring_read() of <rawbpf/core.h>. */
int rawbpf_bundle_ring_read(struct rawbpf_bundle_ring *ring, int timeout_ms,
                            int (*handle)(const void *record, size_t size, void *context), void *context,
                            struct rawbpf_error *error);
/** The map stays. */
void rawbpf_bundle_ring_close(struct rawbpf_bundle_ring *ring);

#ifdef __cplusplus
}
#endif
#endif
