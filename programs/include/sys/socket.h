// SPDX-License-Identifier: MIT
// For BPF programs: <linux/if.h>, and with it <linux/icmp.h> and <linux/if_arp.h>, want struct sockaddr from libc, whose headers
// are the host's. Programs for the host never see this.
#ifndef __bpf__
#include_next <sys/socket.h>
#elif !defined(RAWBPF_BPF_SYS_SOCKET_H)
#define RAWBPF_BPF_SYS_SOCKET_H
#include <linux/socket.h>
struct sockaddr {
    __kernel_sa_family_t sa_family;
    char sa_data[14];
};
#endif
