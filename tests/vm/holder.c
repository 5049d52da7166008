// Makes what no command line makes, and keeps it until it is killed:
//      holder netkit NAME                      a pair of netkit interfaces, NAME and the kernel's own name for the other (no keeping)
//      holder netfilter PROGRAM                a link of a pinned program at IPv4's input
//      holder sockmap PROGRAM MAP              a link of a pinned sk_msg program to a pinned SOCKMAP
// The fields are those of union bpf_attr and of rtnetlink(7), whose newest members this system's headers may not have.
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SK_MSG_VERDICT = 7, NETFILTER = 45, IPV4 = 2, LOCAL_IN = 1 };

static void fail(const char *what) {
    fprintf(stderr, "holder: %s: %s\n", what, strerror(errno));
    exit(1);
}
static int pinned(const char *path) {
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.pathname = (uintptr_t)path;
    const int fd = (int)syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof attr);
    if (fd < 0) fail(path);
    return fd;
}
static void keep_link(int program, int target, uint32_t type, const uint32_t *more, size_t words) {
    uint32_t attr[16] = {(uint32_t)program, (uint32_t)target, type, 0};
    memcpy(attr + 4, more, words * sizeof *more);
    if (syscall(SYS_bpf, BPF_LINK_CREATE, attr, sizeof attr) < 0) fail("a link");
    puts("attached: a link");
    fflush(stdout);
    for (;;) pause();
}
static struct rtattr *put(struct nlmsghdr *message, unsigned short type, const void *bytes, size_t size) {
    struct rtattr *at = (struct rtattr *)((char *)message + NLMSG_ALIGN(message->nlmsg_len));
    at->rta_type = type;
    at->rta_len = (unsigned short)RTA_LENGTH(size);
    if (size) memcpy(RTA_DATA(at), bytes, size);
    message->nlmsg_len = NLMSG_ALIGN(message->nlmsg_len) + RTA_ALIGN(at->rta_len);
    return at;
}
static void make_netkit(const char *name) {
    char room[512] __attribute__((aligned(4))) = {0};
    struct nlmsghdr *message = (struct nlmsghdr *)room;
    message->nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg));
    message->nlmsg_type = RTM_NEWLINK;
    message->nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK;
    put(message, IFLA_IFNAME, name, strlen(name) + 1);
    struct rtattr *info = put(message, IFLA_LINKINFO, NULL, 0);
    put(message, IFLA_INFO_KIND, "netkit", 6);
    info->rta_len = (unsigned short)((char *)message + NLMSG_ALIGN(message->nlmsg_len) - (char *)info);
    const int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    if (fd < 0 || send(fd, message, message->nlmsg_len, 0) < 0) fail("netlink");
    char answer[1024] __attribute__((aligned(4)));
    if (recv(fd, answer, sizeof answer, 0) < (ssize_t)(NLMSG_HDRLEN + sizeof(struct nlmsgerr))) fail("netlink's answer");
    const struct nlmsgerr *error = NLMSG_DATA((struct nlmsghdr *)answer);
    errno = -error->error;
    if (error->error != 0) fail("a netkit interface");
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "netkit") == 0) {
        make_netkit(argv[2]);
    } else if (argc == 3 && strcmp(argv[1], "netfilter") == 0) {
        const uint32_t where[] = {IPV4, LOCAL_IN, (uint32_t)-128, 0};
        keep_link(pinned(argv[2]), 0, NETFILTER, where, 4);
    } else if (argc == 4 && strcmp(argv[1], "sockmap") == 0) {
        keep_link(pinned(argv[2]), pinned(argv[3]), SK_MSG_VERDICT, NULL, 0);
    } else {
        return 2;
    }
    return 0;
}
