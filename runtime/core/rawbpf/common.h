// SPDX-License-Identifier: MIT
/* What <rawbpf/core.h> and <rawbpf/bundle.h> share: how failures are told, and where a program is attached. */
#ifndef RAWBPF_COMMON_H
#define RAWBPF_COMMON_H

#include <stddef.h>
#include <stdint.h>

/** What kind of failure it is: what a program branches on. Negative, so that a count and a failure are told apart. */
enum rawbpf_code {
    RAWBPF_OK = 0,
    RAWBPF_INVALID_ARGUMENT = -1, /**< the caller asked for something that makes no sense */
    RAWBPF_NOT_FOUND = -2,        /**< a file, map, program, variable or function that isn't there; an entry that isn't */
    RAWBPF_PERMISSION = -3,       /**< these privileges can't do it */
    RAWBPF_UNSUPPORTED = -4,      /**< this kernel, machine or build can't do it */
    RAWBPF_BAD_INPUT = -5,        /**< the object file is malformed */
    RAWBPF_REJECTED = -6,         /**< the verifier refused a program: rawbpf_error.log has the end of its log */
    RAWBPF_IO = -7,               /**< reading or writing failed */
    RAWBPF_BUSY = -8,             /**< in use by another process, or not possible now */
    RAWBPF_NO_MEMORY = -9,        /**< the kernel is out of memory, or over a limit; a map is full */
    RAWBPF_KERNEL = -10,          /**< another errno of a system call */
    RAWBPF_INTERNAL = -11         /**< a defect of this library */
};

/** A failure. The struct holds everything, so there is nothing to release. Texts that don't fit are cut at the end; `log` is cut
 * at the start. */
struct rawbpf_error {
    int code;       /**< enum rawbpf_code */
    int os;         /**< errno, or 0 */
    char text[512]; /**< "loading program count: ...", without a newline; UTF-8, ended by 0 */
    char hint[512]; /**< what would help; "" where nothing is known */
    char log[4096]; /**< the end of the verifier's log, whole lines; "" but for RAWBPF_REJECTED */
};

/** Where a program goes when its section's name doesn't say it. All zero but for `pid`, `cgroup_fd` and `target` where nothing is
   said: RAWBPF_PLACE_INIT. */
struct rawbpf_place {
    const char *target; /**< in place of what the section's name says behind the slash: "vfs_read", "/usr/lib/libc.so.6:malloc";
                           or NULL */
    int pid;            /**< uprobes and USDT: this process alone; 0 or less: all */
    uint32_t interface; /**< xdp, tc, tcx, netkit: the index of the network interface */
    int egress;         /**< tc: 1 for what leaves */
    int fd;             /**< of a cgroup, a network namespace, a perf event ...; -1: none */
    uint64_t cookie;    /**< what bpf_get_attach_cookie() returns (5.15) */
};
#define RAWBPF_PLACE_INIT                                                                                                        \
    { NULL, -1, 0, 0, -1, 0 }

#endif
