// SPDX-License-Identifier: MIT
/* <rawbpf/core.h>: the loader for programs in C and in C++: an object file's maps and programs into the kernel, attached, read,
   and taken out again. It is all of librawbpf-core.a (pkg-config rawbpf-core).

        rawbpf_open_file()                  an object file, read and checked: nothing is in the kernel yet
          rawbpf_set_global(), rawbpf_set_entries(), rawbpf_select()
        rawbpf_load()                       maps are made, programs verified
        rawbpf_attach()                     each program where its section's name says
          rawbpf_map_lookup() ..., rawbpf_ring_open() ...
        rawbpf_close()                      everything is detached and released

   Errors. A function that can fail returns 0 or more on success and a negative `enum rawbpf_code` on failure, and
   fills `error`, which may be NULL: the code, errno where the kernel gave one, a sentence, what would help, and the end of the
   verifier's log, which isn't explained. Nothing here throws, starts a thread, sets a locale or prints.

   Threads. An object may be used by one thread at a time, different objects by different threads.

   Memory. operator new and delete of the program are this library's: malloc and free, or what rawbpf_set_memory() was given.
   Where memory runs out the program is ended (abort) after the hook returned NULL; there is no half-made state to go on with.

   Kernels: 5.10 and newer, and what an object needs itself. A function that needs a newer kernel says so. */
#ifndef RAWBPF_CORE_H
#define RAWBPF_CORE_H

#include <stddef.h>
#include <stdint.h>

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An object file and, after rawbpf_load(), what it became in the kernel. */
typedef struct rawbpf_object rawbpf_object;
/** A map of a loaded object; valid until its object is closed. */
typedef struct rawbpf_map rawbpf_map;
/** The reading end of a ring buffer. */
typedef struct rawbpf_ring rawbpf_ring;

/** This library's version, "0.9.0". */
const char *rawbpf_core_version(void);

/** Where this library's memory comes from. Call it once, before every other function. `allocate` returns memory that is
   aligned for every type, or NULL; `release` gets what it returned. NULL for both: malloc and free. */
void rawbpf_set_memory(void *(*allocate)(size_t size, void *context), void (*release)(void *memory, void *context),
                       void *context);

/* ---- what the program has of this library ---- */

/** Ways to attach programs, and what only some programs need. A product has all of them, unless one of its files names those that
   it uses (0.16 MB less with the two below), once and outside of functions:

        RAWBPF_PARTS(&rawbpf_network, &rawbpf_kernel_types);

   What needs another part is then the error unsupported, which names the part. */
struct rawbpf_part;
extern const struct rawbpf_part rawbpf_kprobes, /**< kprobe, kretprobe, .multi, .session, ksyscall */
    rawbpf_uprobes,                             /**< uprobe, uretprobe, .multi, .session; functions by symbol */
    rawbpf_usdt,                                /**< usdt */
    rawbpf_tracepoints,                         /**< tracepoint, raw_tp */
    rawbpf_trampolines,                         /**< tp_btf, fentry, fexit, fmod_ret, fsession, .multi, lsm, freplace */
    rawbpf_iterators,                           /**< iter */
    rawbpf_perf_events,                         /**< perf_event */
    rawbpf_network,       /**< xdp, tcx, tc, netkit, cgroup, sk_lookup, sk_msg, sk_skb, netfilter, socket ... */
    rawbpf_cgroups,       /**< of these the programs of cgroups alone */
    rawbpf_interfaces,    /**< of these xdp, tcx, tc and netkit alone */
    rawbpf_infrared,      /**< lirc_mode2 */
    rawbpf_kernel_types,  /**< CO-RE; extern functions and variables of the kernel; what fentry, fexit, tp_btf, lsm, iter ... name
                           */
    rawbpf_struct_ops,    /**< struct_ops maps; has rawbpf_kernel_types in it */
    rawbpf_kernel_config; /**< extern variables of the section .kconfig */
/** The list that RAWBPF_PARTS defines, which ends with NULL. */
extern const struct rawbpf_part *const rawbpf_parts[];
/** Defines it. Only for programs that link librawbpf-core.a. */
#define RAWBPF_PARTS(...) const struct rawbpf_part *const rawbpf_parts[] = {__VA_ARGS__, NULL}

/** Reads an object file that clang or gcc made for the BPF target. Errors: not_found, permission, io; bad_input names the section
   and the offset; unsupported for big-endian objects. */
int rawbpf_open_file(const char *path, rawbpf_object **object, struct rawbpf_error *error);
/** The same, from memory, which isn't needed any more afterwards. `name` is for messages and names of data sections' maps. */
int rawbpf_open_memory(const void *bytes, size_t size, const char *name, rawbpf_object **object, struct rawbpf_error *error);
/** Detaches all programs and closes everything; pins stay. NULL: does nothing. Close the rings of the object first. */
void rawbpf_close(rawbpf_object *object);

/* ---- before rawbpf_load() ---- */

/** The value that a global variable has when the programs begin. `size` must be the variable's. Errors: not_found, also where the
   object has no types (compile it with -g); invalid_argument: another size, or the object is loaded. */
int rawbpf_set_global(rawbpf_object *object, const char *name, const void *value, size_t size, struct rawbpf_error *error);
/** How many entries a map has (bytes of a ring buffer). Errors: not_found; invalid_argument: the object is loaded. */
int rawbpf_set_entries(rawbpf_object *object, const char *map, uint32_t entries, struct rawbpf_error *error);
/** Whether rawbpf_load() loads a program: all but those of sections that begin with "?" by default. Errors: as
 * rawbpf_set_entries(). */
int rawbpf_select(rawbpf_object *object, const char *program, int wanted, struct rawbpf_error *error);
/** The kernel's types for CO-RE: a BTF file in place of /sys/kernel/btf/vmlinux. Errors: invalid_argument: the object is loaded.
 */
int rawbpf_set_btf(rawbpf_object *object, const char *path, struct rawbpf_error *error);

/** Makes the maps, relocates, and loads the programs. Where it fails nothing stays in the kernel, and it may be called again.
   Errors: permission (names the capability), unsupported (names the feature and its kernel), rejected, no_memory, kernel. */
int rawbpf_load(rawbpf_object *object, struct rawbpf_error *error);

/* ---- attaching; the object must be loaded ---- */

/** Attaches each program whose section's name says where. Returns how many were. Errors: those of the kernel; what was attached
   by this call is detached then. */
int rawbpf_attach(rawbpf_object *object, struct rawbpf_error *error);

/** Attaches one program. `place` may be NULL: where its section's name says. Errors: not_found (no such program; no such target),
    invalid_argument (says what is missing), unsupported (with the kernel that brings it), permission, busy. */
int rawbpf_attach_program(rawbpf_object *object, const char *program, const struct rawbpf_place *place,
                          struct rawbpf_error *error);
/** Detaches everything that was attached; returns whether that succeeded. */
int rawbpf_detach(rawbpf_object *object, struct rawbpf_error *error);
/** A loaded program's descriptor, which the object keeps; rawbpf_code where there is none. */
int rawbpf_program_fd(const rawbpf_object *object, const char *program, struct rawbpf_error *error);

/* ---- maps ---- */

/** A map by its name, or by its section (".bss"). NULL: there is none, or the object isn't loaded. */
rawbpf_map *rawbpf_find_map(rawbpf_object *object, const char *name);
/** Its descriptor, which the object keeps. */
int rawbpf_map_fd(const rawbpf_map *map);
/** In bytes. Of a value: what rawbpf_map_lookup() fills, so of each possible CPU for a per-CPU map, each rounded up to 8. */
size_t rawbpf_map_key_size(const rawbpf_map *map);
size_t rawbpf_map_value_size(const rawbpf_map *map);
/** How many entries it can have; bytes of a ring buffer, as the kernel rounded it up. */
uint32_t rawbpf_map_entries(const rawbpf_map *map);
/** Copies the value at `key` into `value`, which has rawbpf_map_value_size() bytes. Errors: not_found: no entry has this key. */
int rawbpf_map_lookup(const rawbpf_map *map, const void *key, void *value, struct rawbpf_error *error);
/** Sets the value at `key`. `flags`: BPF_ANY (0), BPF_NOEXIST (1), BPF_EXIST (2), BPF_F_LOCK (4). Errors: no_memory: the map is
   full; busy and not_found as `flags` say. */
int rawbpf_map_update(const rawbpf_map *map, const void *key, const void *value, uint64_t flags, struct rawbpf_error *error);
/** Removes an entry. Errors: not_found; invalid_argument for an array. */
int rawbpf_map_delete(const rawbpf_map *map, const void *key, struct rawbpf_error *error);
/** Writes the key after `key` (NULL: the first one) to `next`. Errors: not_found: that was the last one. `next` may be `key`. */
int rawbpf_map_next_key(const rawbpf_map *map, const void *key, void *next, struct rawbpf_error *error);

/* ---- ring buffers (5.8) ---- */

/** The reading end of a map of type BPF_MAP_TYPE_RINGBUF; one a map. Errors: not_found; invalid_argument: no ring buffer. */
int rawbpf_ring_open(rawbpf_object *object, const char *map, rawbpf_ring **ring, struct rawbpf_error *error);
/** Waits for records at most `timeout_ms` (-1: for ever, 0: not at all) and calls `handle` for each that is there; `record` is
   good during the call only, and `handle` returns 0 to go on or 1 to stop. Returns how many were read; 0: none until then, or a
   signal came. Errors: bad_input: the ring holds what no kernel writes. */
int rawbpf_ring_read(rawbpf_ring *ring, int timeout_ms, int (*handle)(const void *record, size_t size, void *context),
                     void *context, struct rawbpf_error *error);
/** For a loop with poll(2) of its own: a descriptor that becomes readable when there are records, after rawbpf_ring_read(ring, 0,
 * ...). */
int rawbpf_ring_fd(const rawbpf_ring *ring);
/** NULL: does nothing. The map stays. */
void rawbpf_ring_close(rawbpf_ring *ring);

#ifdef __cplusplus
}
#endif
#endif
