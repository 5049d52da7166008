/* Loads a bundle: tables of C to system calls, in the order in which a loader does it.
 *
 *      which kernel is this      the types it shows, by size and hash: the row of `kernels` whose edits and ids are right here
 *      BPF_BTF_LOAD              the object's own types; a kernel that takes none goes on without them
 *      BPF_MAP_CREATE ...        maps, their contents, slots that hold maps
 *      BPF_PROG_LOAD             instructions with the kernel's edits and the maps' descriptors in them
 *      slots that hold programs
 *
 * It is plain C for products that have no C++ and no heap: nothing is allocated, the largest thing on the stack is a path and a
 * verifier's log. All state is in the bundle's `fds`. Instructions are patched where they stand: the kernel stays the same one as
 * long as the process lives, and descriptors are written anew at each load. */
#include "parts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/resource.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "bundles hold instructions of little-endian machines"
#endif

static const char kTypes[] = "/sys/kernel/btf/vmlinux";

/* BPF object names have 15 characters; the kernel takes letters, digits, '_' and '.'. */
static void short_name(char *out, const char *name) {
    size_t i;
    for (i = 0; i < BPF_OBJ_NAME_LEN - 1 && name[i] != 0; i++) {
        const char c = name[i];
        const int good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
        out[i] = good ? c : '_';
    }
}

int rawbpf_bundle_is_loaded(const struct rawbpf_bundle *bundle) {
    uint32_t i;
    for (i = 0; i < rawbpf_part_fd_count(bundle); i++)
        if (bundle->fds[i] >= 0) return 1;
    return 0;
}

/* ---- which kernel ---- */

static int hash_types(uint64_t *hash, uint64_t *size) {
    unsigned char page[4096];
    size_t filled = 0;
    const int fd = open(kTypes, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    *hash = RAWBPF_BUNDLE_HASH;
    *size = 0;
    for (;;) {
        const ssize_t got = read(fd, page + filled, sizeof page - filled);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            close(fd);
            return -1;
        }
        filled += (size_t)got;
        if (got == 0 || filled == sizeof page) {
            *hash = rawbpf_bundle_hash(*hash, page, filled);
            *size += filled;
            filled = 0;
        }
        if (got == 0) break;
    }
    close(fd);
    return 0;
}

/* NULL without a failure: the bundle is the same on every kernel. */
static int this_kernel(const struct rawbpf_bundle *bundle, const struct rawbpf_bundle_kernel **kernel,
                       struct rawbpf_error *error) {
    uint64_t hash = 0, size = 0;
    uint32_t i;
    *kernel = NULL;
    if (bundle->kernel_count == 0) return RAWBPF_OK;
    if (hash_types(&hash, &size) != 0) {
        const int os = errno;
        return rawbpf_part_fail(
            error, os == ENOENT ? RAWBPF_UNSUPPORTED : RAWBPF_PERMISSION, os, "bundle ", bundle->name,
            "this kernel doesn't show its types in /sys/kernel/btf/vmlinux, so the bundle can't tell which kernel it is");
    }
    for (i = 0; i < bundle->kernel_count; i++) {
        if (bundle->kernels[i].size != size || bundle->kernels[i].hash != hash) continue;
        *kernel = &bundle->kernels[i];
        return RAWBPF_OK;
    }
    rawbpf_part_fail(error, RAWBPF_NOT_FOUND, 0, "bundle ", bundle->name, "it was made for other kernels than this one: ");
    for (i = 0; error != NULL && i < bundle->kernel_count; i++) {
        if (i != 0) rawbpf_part_append(error->text, sizeof error->text, ", ");
        rawbpf_part_append(error->text, sizeof error->text, bundle->kernels[i].name);
    }
    rawbpf_part_hint(
        error, "give `rawbpf bundle --btf` this kernel's /sys/kernel/btf/vmlinux too, or load it live (RAWBPF_BUNDLE_LIVE)");
    return RAWBPF_NOT_FOUND;
}

/* ---- maps ---- */

/* CPUs that there may be: the last number of "0-3". What sysconf() says is another thing in each C library. */
static uint32_t possible_cpus(void) {
    char text[256];
    uint32_t last = 0;
    ssize_t got, i;
    const int fd = open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
    got = read(fd, text, sizeof text);
    close(fd);
    for (i = 0; i < got; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            last = last * 10 + (uint32_t)(text[i] - '0');
        } else if (text[i] == '-' || text[i] == ',') {
            last = 0;
        }
    }
    return last + 1;
}

/* A ring's size is a power of two of at least a page, and pages differ; an array of rings has one for each CPU. */
static uint32_t entries_of(const struct rawbpf_bundle_map *map) {
    const uint32_t kUserRing = 31; /* BPF_MAP_TYPE_USER_RINGBUF, 6.1 */
    uint32_t size = (uint32_t)sysconf(_SC_PAGESIZE);
    if (map->type == BPF_MAP_TYPE_PERF_EVENT_ARRAY && map->entries == 0) return possible_cpus();
    if (map->type != BPF_MAP_TYPE_RINGBUF && map->type != kUserRing) return map->entries;
    while (size < map->entries && size <= UINT32_MAX / 2) size *= 2;
    return size;
}

/* Before 5.11 maps and programs count against RLIMIT_MEMLOCK, which is 64 KB by default; the kernel says EPERM then. */
static int bpf_unlimited(int command, union bpf_attr *attr) {
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY}, before;
    int fd = rawbpf_part_bpf(command, attr), os;
    if (fd >= 0 || errno != EPERM) return fd;
    if (getrlimit(RLIMIT_MEMLOCK, &before) != 0 || setrlimit(RLIMIT_MEMLOCK, &all) != 0) {
        errno = EPERM;
        return -1;
    }
    fd = rawbpf_part_bpf(command, attr);
    os = errno;
    if (fd < 0) setrlimit(RLIMIT_MEMLOCK, &before);
    errno = os;
    return fd;
}

static int create_map_with(const struct rawbpf_bundle_map *map, int types_fd, int inner_fd) {
    enum { EXTRA_AT = 64 }; /* union bpf_attr's map_extra, 5.16 */
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.map_type = map->type;
    attr.key_size = map->key_size;
    attr.value_size = map->value_size;
    attr.max_entries = entries_of(map);
    attr.map_flags = map->flags;
    attr.numa_node = map->numa_node;
    memcpy((char *)&attr + EXTRA_AT, &map->extra, sizeof map->extra);
    if (inner_fd >= 0) attr.inner_map_fd = (uint32_t)inner_fd;
    if (types_fd >= 0 && map->value_type != 0) {
        attr.btf_fd = (uint32_t)types_fd;
        attr.btf_key_type_id = map->key_type;
        attr.btf_value_type_id = map->value_type;
    }
    short_name(attr.map_name, map->name);
    return bpf_unlimited(BPF_MAP_CREATE, &attr);
}

static int create_map(const struct rawbpf_bundle_map *map, int types_fd, int inner_fd) {
    int fd = create_map_with(map, types_fd, inner_fd);
    /* Types that this kernel doesn't take for this kind of map say something to readers only. */
    if (fd < 0 && types_fd >= 0 && map->value_type != 0 && (errno == EINVAL || errno == EOPNOTSUPP))
        fd = create_map_with(map, -1, inner_fd);
    return fd;
}

static int open_pin(const char *path) {
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.pathname = rawbpf_part_address(path);
    return rawbpf_part_bpf(BPF_OBJ_GET, &attr);
}

/* Of a pin that is there already: it must be what the programs were compiled for. */
static int check_pinned(const struct rawbpf_bundle_map *map, int fd, struct rawbpf_error *error) {
    struct bpf_map_info info;
    union bpf_attr attr;
    memset(&info, 0, sizeof info);
    memset(&attr, 0, sizeof attr);
    attr.info.bpf_fd = (uint32_t)fd;
    attr.info.info_len = sizeof info;
    attr.info.info = rawbpf_part_address(&info);
    if (rawbpf_part_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) == 0 && info.type == map->type && info.key_size == map->key_size &&
        info.value_size == map->value_size && info.max_entries == entries_of(map) && info.map_flags == map->flags)
        return fd;
    close(fd);
    return rawbpf_part_fail(error, RAWBPF_INVALID_ARGUMENT, 0, "", map->pin,
                            "another map than the programs were compiled for is pinned there");
}

/* *made: whether it was made here, so that a pin is still to come. */
static int make_map(const struct rawbpf_bundle_map *map, int types_fd, int *made, struct rawbpf_error *error) {
    const uint32_t zero = 0;
    int inner = -1, fd, os;
    *made = 0;
    if (map->pin != NULL) {
        fd = open_pin(map->pin);
        if (fd >= 0) return check_pinned(map, fd, error);
        if (errno != ENOENT) return rawbpf_part_refused(error, errno, "opening ", map->pin);
    }
    if (map->inner != NULL && (inner = create_map(map->inner, types_fd, -1)) < 0)
        return rawbpf_part_refused(error, errno, "making the inner map of ", map->name);
    fd = create_map(map, types_fd, inner);
    os = errno;
    if (inner >= 0) close(inner);
    if (fd < 0) return rawbpf_part_refused(error, os, "making map ", map->name);
    *made = 1;
    if (map->contents != NULL && rawbpf_part_element(BPF_MAP_UPDATE_ELEM, fd, &zero, map->contents, 0) != 0) {
        os = rawbpf_part_refused(error, errno, "filling map ", map->name);
        close(fd);
        return os;
    }
    if (map->constant) {
        union bpf_attr attr;
        memset(&attr, 0, sizeof attr);
        attr.map_fd = (uint32_t)fd;
        if (rawbpf_part_bpf(BPF_MAP_FREEZE, &attr) != 0) {
            os = rawbpf_part_refused(error, errno, "freezing map ", map->name);
            close(fd);
            return os;
        }
    }
    return fd;
}

/* Pins come last, so that nothing is left of a load that fails. */
static int pin_maps(const struct rawbpf_bundle *bundle, const struct rawbpf_part_set *made, struct rawbpf_error *error) {
    union bpf_attr attr;
    uint32_t i, j;
    int result;
    for (i = 0; i < bundle->map_count; i++) {
        if (bundle->maps[i].pin == NULL || !rawbpf_part_has(made, i)) continue;
        memset(&attr, 0, sizeof attr);
        attr.pathname = rawbpf_part_address(bundle->maps[i].pin);
        attr.bpf_fd = (uint32_t)bundle->fds[i];
        if (rawbpf_part_bpf(BPF_OBJ_PIN, &attr) == 0) continue;
        result = rawbpf_part_refused(error, errno, "pinning map ", bundle->maps[i].name);
        for (j = 0; j < i; j++)
            if (bundle->maps[j].pin != NULL && rawbpf_part_has(made, j)) unlink(bundle->maps[j].pin);
        return result;
    }
    return RAWBPF_OK;
}

/* ---- programs ---- */

static struct bpf_insn *insn_at(const struct rawbpf_bundle_program *program, uint32_t i) {
    return (struct bpf_insn *)(void *)&program->insns[i];
}

static void patch(const struct rawbpf_bundle *bundle, const struct rawbpf_bundle_kernel *kernel) {
    uint32_t i, j;
    for (i = 0; kernel != NULL && i < kernel->edit_count; i++) {
        const struct rawbpf_bundle_edit *edit = &kernel->edits[i];
        bundle->programs[edit->program].insns[edit->insn] = edit->value;
    }
    for (i = 0; i < bundle->program_count; i++) {
        const struct rawbpf_bundle_program *program = &bundle->programs[i];
        for (j = 0; j < program->patch_count; j++) {
            const struct rawbpf_bundle_patch *at = &program->patches[j];
            insn_at(program, at->insn)->src_reg = at->is_value ? BPF_PSEUDO_MAP_VALUE : BPF_PSEUDO_MAP_FD;
            insn_at(program, at->insn)->imm = bundle->fds[at->map];
            insn_at(program, at->insn + 1)->imm = at->is_value ? (int32_t)at->offset : 0;
        }
    }
}

/* A signal can end the verification. */
static int load_again(union bpf_attr *attr) {
    int tries = 0, fd;
    do {
        fd = bpf_unlimited(BPF_PROG_LOAD, attr);
    } while (fd < 0 && errno == EAGAIN && ++tries < 5);
    return fd;
}

/* The log may have megabytes, and the reason stands at its end: a mapping has room, of which the last whole lines are kept. */
static int load_with_log(union bpf_attr *attr, struct rawbpf_error *error) {
    enum { LOG_SIZE = (16 << 20) - 1 };
    char *const log = mmap(NULL, LOG_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t length, from = 0;
    int fd;
    if (log == MAP_FAILED) return -1;
    attr->log_level = 1;
    attr->log_buf = rawbpf_part_address(log);
    attr->log_size = LOG_SIZE;
    fd = load_again(attr);
    log[LOG_SIZE - 1] = 0;
    length = strlen(log);
    if (length >= sizeof error->log) {
        from = length - sizeof error->log + 1;
        while (log[from - 1] != '\n' && from < length) from++;
    }
    memcpy(error->log, log + from, length - from + 1);
    munmap(log, LOG_SIZE);
    return fd;
}

static int load_program(const struct rawbpf_bundle *bundle, uint32_t index, const struct rawbpf_bundle_kernel *kernel,
                        int types_fd, struct rawbpf_error *error) {
    const struct rawbpf_bundle_program *program = &bundle->programs[index];
    union bpf_attr attr;
    int fd, os;
    memset(&attr, 0, sizeof attr);
    attr.prog_type = program->type;
    attr.expected_attach_type = program->expected;
    attr.prog_flags = program->flags;
    attr.insns = rawbpf_part_address(program->insns);
    attr.insn_cnt = program->insn_count;
    attr.license = rawbpf_part_address(bundle->license);
    if (kernel != NULL && kernel->attach_ids != NULL) attr.attach_btf_id = kernel->attach_ids[index];
    if (types_fd >= 0 && program->functions != NULL) {
        attr.prog_btf_fd = (uint32_t)types_fd;
        attr.func_info = rawbpf_part_address(program->functions);
        attr.func_info_cnt = program->function_count;
        attr.func_info_rec_size = sizeof *program->functions;
    }
    short_name(attr.prog_name, program->name);
    fd = load_again(&attr);
    if (fd >= 0) return fd;
    os = errno;
    rawbpf_part_refused(error, os, "loading program ", program->name);
    if (os == EPERM || os == ENOMEM || os == EAGAIN || error == NULL) return error != NULL ? error->code : RAWBPF_REJECTED;
    fd = load_with_log(&attr, error); /* once more: why was it refused? */
    if (fd >= 0) return fd;
    if (error->log[0] != 0) {
        error->code = RAWBPF_REJECTED;
        rawbpf_part_hint(error, "the verifier's log says why; `rawbpf explain` of the object says it in more words");
    }
    return error->code;
}

/* The object's types. A kernel that doesn't take them gets none: they are needed only by what few programs use (callbacks, locks,
   timers), whose refusal then says so. */
static int load_types_from(const void *types, uint32_t size) {
    union bpf_attr attr;
    if (types == NULL) return -1;
    memset(&attr, 0, sizeof attr);
    attr.btf = rawbpf_part_address(types);
    attr.btf_size = size;
    return bpf_unlimited(BPF_BTF_LOAD, &attr);
}

static int load_types(const struct rawbpf_bundle *bundle) {
    const int fd = load_types_from(bundle->types, bundle->types_size);
    return fd >= 0 ? fd : load_types_from(bundle->old_types, bundle->old_types_size);
}

static int fill_slots(const struct rawbpf_bundle *bundle, int programs, struct rawbpf_error *error) {
    uint32_t i;
    for (i = 0; i < bundle->slot_count; i++) {
        const struct rawbpf_bundle_slot *slot = &bundle->slots[i];
        const int fd = slot->is_program ? rawbpf_part_program_fds(bundle)[slot->which] : bundle->fds[slot->which];
        if (slot->is_program != programs || fd < 0) continue;
        if (rawbpf_part_element(BPF_MAP_UPDATE_ELEM, bundle->fds[slot->map], &slot->key, &fd, 0) != 0)
            return rawbpf_part_refused(error, errno, "filling a slot of map ", bundle->maps[slot->map].name);
    }
    return RAWBPF_OK;
}

int rawbpf_bundle_load(const struct rawbpf_bundle *bundle, struct rawbpf_error *error) {
    struct rawbpf_part_set made;
    const struct rawbpf_bundle_kernel *kernel;
    int result, types_fd, new_one;
    uint32_t i;
    memset(&made, 0, sizeof made);
    if (rawbpf_bundle_is_loaded(bundle) || bundle->map_count > RAWBPF_BUNDLE_MOST)
        return rawbpf_part_fail(error, RAWBPF_INVALID_ARGUMENT, 0, "bundle ", bundle->name,
                                rawbpf_bundle_is_loaded(bundle) ? "it is loaded already" : "it has too many maps");
    if ((result = this_kernel(bundle, &kernel, error)) != RAWBPF_OK) return result;
    types_fd = load_types(bundle);
    for (i = 0; i < bundle->map_count; i++) {
        result = make_map(&bundle->maps[i], types_fd, &new_one, error);
        if (result < 0) goto failed;
        bundle->fds[i] = result;
        if (new_one) rawbpf_part_put(&made, i);
    }
    if ((result = fill_slots(bundle, 0, error)) != RAWBPF_OK) goto failed;
    patch(bundle, kernel);
    for (i = 0; i < bundle->program_count; i++) {
        result = load_program(bundle, i, kernel, types_fd, error);
        if (result < 0) goto failed;
        rawbpf_part_program_fds(bundle)[i] = result;
    }
    if ((result = fill_slots(bundle, 1, error)) != RAWBPF_OK) goto failed;
    if ((result = pin_maps(bundle, &made, error)) != RAWBPF_OK) goto failed;
    if (types_fd >= 0) close(types_fd);
    return RAWBPF_OK;
failed:
    if (types_fd >= 0) close(types_fd);
    rawbpf_bundle_close(bundle);
    return result;
}

void rawbpf_bundle_close(const struct rawbpf_bundle *bundle) {
    uint32_t i;
    for (i = rawbpf_part_fd_count(bundle); i-- != 0;) { /* links first */
        if (bundle->fds[i] >= 0) close(bundle->fds[i]);
        bundle->fds[i] = -1;
    }
}

int rawbpf_bundle_adopt(const struct rawbpf_bundle *bundle, uint32_t index, int fd, struct rawbpf_error *error) {
    int copy;
    if (fd < 0) return fd;
    copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0) return rawbpf_part_refused(error, errno, "keeping a descriptor of bundle ", bundle->name);
    bundle->fds[index] = copy;
    return RAWBPF_OK;
}

int rawbpf_bundle_map_fd(const struct rawbpf_bundle *bundle, uint32_t map) {
    return map < bundle->map_count ? bundle->fds[map] : -1;
}

int rawbpf_bundle_program_fd(const struct rawbpf_bundle *bundle, uint32_t program) {
    return program < bundle->program_count ? rawbpf_part_program_fds(bundle)[program] : -1;
}
