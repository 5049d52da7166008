/* What the files of this folder share: failures as sentences, without stdio, and the commands on entries of maps. */
#include "parts.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>

void rawbpf_part_append(char *text, size_t size, const char *more) {
    const size_t has = strlen(text);
    size_t add = strlen(more);
    if (add > size - 1 - has) add = size - 1 - has;
    memcpy(text + has, more, add);
    text[has + add] = 0;
}

int rawbpf_part_fail(struct rawbpf_error *error, int code, int os, const char *what, const char *name, const char *why) {
    if (error == NULL) return code;
    error->code = code;
    error->os = os;
    error->text[0] = error->hint[0] = error->log[0] = 0;
    rawbpf_part_append(error->text, sizeof error->text, what);
    rawbpf_part_append(error->text, sizeof error->text, name);
    if (why != NULL) {
        rawbpf_part_append(error->text, sizeof error->text, ": ");
        rawbpf_part_append(error->text, sizeof error->text, why);
    }
    return code;
}

void rawbpf_part_hint(struct rawbpf_error *error, const char *text) {
    if (error != NULL) rawbpf_part_append(error->hint, sizeof error->hint, text);
}

/* What errno means where nothing else is known. */
int rawbpf_part_refused(struct rawbpf_error *error, int os, const char *what, const char *name) {
    int code = RAWBPF_KERNEL;
    switch (os) {
    case EPERM:
    case EACCES: code = RAWBPF_PERMISSION; break;
    case ENOENT:
    case ESRCH: code = RAWBPF_NOT_FOUND; break;
    case EEXIST:
    case EBUSY: code = RAWBPF_BUSY; break;
    case ENOMEM:
    case E2BIG:
    case ENOSPC: code = RAWBPF_NO_MEMORY; break;
    case ENOSYS:
    case 524: /* ENOTSUPP, which only the kernel knows: no trampolines on this machine */
    case EOPNOTSUPP: code = RAWBPF_UNSUPPORTED; break;
    default: break;
    }
    rawbpf_part_fail(error, code, os, what, name, strerror(os));
    if (code == RAWBPF_PERMISSION)
        rawbpf_part_hint(error, "it needs CAP_BPF, for probes CAP_PERFMON, for the network CAP_NET_ADMIN; or root");
    return code;
}

int rawbpf_part_bpf(int command, union bpf_attr *attr) { return (int)syscall(SYS_bpf, command, attr, sizeof *attr); }

int rawbpf_part_element(int command, int fd, const void *key, const void *value, uint64_t flags) {
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.map_fd = (uint32_t)fd;
    attr.key = rawbpf_part_address(key);
    attr.value = rawbpf_part_address(value); /* or next_key: one place */
    attr.flags = flags;
    return rawbpf_part_bpf(command, &attr);
}
