// Runs a command on less than this kernel has: `lacking WHAT COMMAND...`
//
//      bpf, perf_event_open    as a kernel that is built without this system call: ENOSYS
//      privileges              as user nobody
//      4.19                    as Linux 4.19: what bpf(2) has learned since is refused as that kernel refuses it, and
//                              system calls that are newer don't exist
//
// A seccomp filter answers for the first two. For the third it asks this program (SECCOMP_RET_USER_NOTIF), which reads what the
// command passes to bpf(2): its commands, attributes, types of maps and programs, flags, instructions, helper functions, kinds of
// BTF. The numbers are those of include/uapi/linux/bpf.h in 4.19. Nothing is proven about the verifier, which is the running
// kernel's.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // Meson gives it, too
#endif
#include <errno.h>
#include <grp.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    kNewerCalls = 335,
    kCommands = 21,
    kAttrSize = 72,
    kMapTypes = 21,
    kProgramTypes = 22,
    kHelpers = 84,
    kBtfKinds = 12,
    kInsns = 4096
};
enum { kMapFlags = 63, kProgramFlags = 1 };

// Where the last attribute of each command ends.
static const unsigned char kEnds[kCommands] = {60, 24, 32, 16, 24, 72, 16, 16, 16, 12, 40, 8, 8, 4, 12, 16, 28, 12, 28, 4, 48};

static int fetch(pid_t pid, uint64_t at, void *into, size_t size) {
    struct iovec here = {into, size}, there = {(void *)(uintptr_t)at, size};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static int zero(const unsigned char *bytes, size_t from, size_t to) {
    for (; from < to; ++from)
        if (bytes[from]) return 0;
    return 1;
}

// The verifier's words, where the command has room for them.
static int refused(pid_t pid, const union bpf_attr *attr, const char *why, int number) {
    char text[64];
    int size = snprintf(text, sizeof text, why, number) + 1;
    struct iovec here = {text, (size_t)size}, there = {(void *)(uintptr_t)attr->log_buf, (size_t)size};
    if (attr->log_level && (unsigned)size <= attr->log_size) (void)!process_vm_writev(pid, &here, 1, &there, 1, 0);
    return EINVAL;
}

static int judge_program(pid_t pid, const union bpf_attr *attr) {
    if (attr->prog_type >= kProgramTypes || attr->prog_flags & ~(unsigned)kProgramFlags) return EINVAL;
    if (attr->insn_cnt > kInsns) return E2BIG;
    static struct bpf_insn insns[kInsns];
    if (!fetch(pid, attr->insns, insns, attr->insn_cnt * sizeof *insns)) return 0; // the kernel says EFAULT
    for (unsigned i = 0; i < attr->insn_cnt; ++i) {
        const struct bpf_insn *insn = insns + i;
        const unsigned kind = BPF_CLASS(insn->code);
        if (kind == 6) return refused(pid, attr, "unknown opcode %02x\n", insn->code); // 32-bit jumps: 5.1
        if (kind == BPF_STX && BPF_MODE(insn->code) == BPF_XADD && insn->imm != 0)     // more than an addition: 5.12
            return refused(pid, attr, "BPF_XADD uses reserved fields\n", 0);
        if (insn->code == (BPF_LD | BPF_IMM | BPF_DW)) {
            if (insn->src_reg > BPF_PSEUDO_MAP_FD)
                return refused(pid, attr, "unrecognized bpf_ld_imm64 insn\n", 0); // global data: 5.2
            ++i;
        }
        if (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == 0 && insn->imm >= kHelpers)
            return refused(pid, attr, "invalid func unknown#%d\n", insn->imm);
        if (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg > BPF_PSEUDO_CALL)
            return refused(pid, attr, "BPF_CALL uses reserved fields\n", 0);
    }
    return 0;
}

static int judge_types(pid_t pid, const union bpf_attr *attr) {
    static unsigned char btf[1 << 20];
    if (attr->btf_size > sizeof btf || attr->btf_size < 24 || !fetch(pid, attr->btf, btf, attr->btf_size)) return 0;
    uint32_t head[6];
    memcpy(head, btf, sizeof head);
    size_t at = (size_t)head[1] + head[2], end = at + head[3];
    if (end > attr->btf_size) return 0;
    while (at + 12 <= end) {
        uint32_t info;
        memcpy(&info, btf + at + 4, 4);
        const unsigned kind = info >> 24 & 31, count = info & 0xffff;
        if (kind >= kBtfKinds || info >> 31) return EINVAL; // functions 5.0, variables 5.2; bit fields' sizes 5.0
        at += 12 + (kind == 1 ? 4 : kind == 3 ? 12 : kind == 4 || kind == 5 ? 12 * count : kind == 6 ? 8 * count : 0);
    }
    return 0;
}

// The errno that 4.19 has for this call; 0: it goes on to the running kernel.
static int judge(pid_t pid, unsigned command, uint64_t at, size_t size) {
    static unsigned char bytes[4096];
    union bpf_attr attr;
    memset(bytes, 0, sizeof bytes);
    if (command >= kCommands) return EINVAL;
    if (size > sizeof bytes || !fetch(pid, at, bytes, size)) return 0;
    if (!zero(bytes, kAttrSize, size)) return E2BIG;
    if (!zero(bytes, kEnds[command], kAttrSize)) return EINVAL;
    memset(&attr, 0, sizeof attr);
    memcpy(&attr, bytes, kAttrSize);
    if (command == BPF_MAP_CREATE) return attr.map_type >= kMapTypes || attr.map_flags & ~(unsigned)kMapFlags ? EINVAL : 0;
    if (command == BPF_PROG_LOAD) return judge_program(pid, &attr);
    if (command == BPF_BTF_LOAD) return judge_types(pid, &attr);
    return 0;
}

static int die(const char *what) {
    fprintf(stderr, "lacking: %s: %s\n", what, strerror(errno));
    exit(126);
}

static int filter(struct sock_filter *insns, unsigned short count, unsigned flags) {
    struct sock_fprog program = {count, insns};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (listener < 0) die("seccomp");
    return listener;
}

static void without(int call) {
    struct sock_filter insns[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
                                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    filter(insns, sizeof insns / sizeof *insns, 0);
}

static int ask_parent(void) {
    struct sock_filter insns[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 1),
                                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
                                  BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kNewerCalls, 0, 1),
                                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    return filter(insns, sizeof insns / sizeof *insns, SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

static void answer(int listener) {
    struct seccomp_notif asked;
    struct seccomp_notif_resp said;
    memset(&asked, 0, sizeof asked);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) return;
    memset(&said, 0, sizeof said);
    said.id = asked.id;
    said.error = -judge((pid_t)asked.pid, (unsigned)asked.data.args[0], asked.data.args[1], (size_t)asked.data.args[2]);
    if (said.error == 0) said.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &said);
}

// The child is filtered, and sends the descriptor by which its calls are asked about.
static int supervised(char **command) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) die("socketpair");
    pid_t child = fork();
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    char byte = 0;
    struct iovec one = {&byte, 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (child == 0) {
        int listener = ask_parent();
        memset(&control, 0, sizeof control);
        control.head.cmsg_level = SOL_SOCKET, control.head.cmsg_type = SCM_RIGHTS, control.head.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.head), &listener, sizeof listener);
        if (sendmsg(pair[1], &message, 0) != 1) die("sendmsg");
        close(listener);
        execvp(command[0], command);
        die(command[0]);
    }
    close(pair[1]);
    if (recvmsg(pair[0], &message, MSG_CMSG_CLOEXEC) != 1) return 126;
    int listener = -1, status = 0;
    memcpy(&listener, CMSG_DATA(&control.head), sizeof listener);
    for (;;) {
        struct pollfd ready = {listener, POLLIN, 0};
        if (poll(&ready, 1, 20) > 0 && ready.revents & POLLIN) answer(listener);
        if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

int main(int count, char **words) {
    if (count < 3) return fprintf(stderr, "lacking WHAT COMMAND...\n"), 126;
    const char *what = words[1];
    if (!strcmp(what, "bpf"))
        without(SYS_bpf);
    else if (!strcmp(what, "perf_event_open"))
        without(SYS_perf_event_open);
    else if (!strcmp(what, "4.19"))
        return supervised(words + 2);
    else if (strcmp(what, "privileges") != 0)
        return fprintf(stderr, "lacking: no %s\n", what), 126;
    else if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
        die("nobody");
    execvp(words[2], words + 2);
    return die(words[2]);
}
