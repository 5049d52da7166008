/* What tests/install/packets.c asks of the kernel, asked by hand: packets_bare CGROUP. Two maps, a program, a link, three
 * packets, a lookup. Relies on: bpf(2) as of Linux 5.10. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int command, union bpf_attr *attr, size_t size) {
    long result = syscall(SYS_bpf, command, attr, size);
    if (result < 0) {
        perror("bpf");
        _exit(1);
    }
    return (int)result;
}

static int array(uint32_t flags) {
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.map_type = BPF_MAP_TYPE_ARRAY;
    attr.key_size = 4;
    attr.value_size = 8;
    attr.max_entries = 1;
    attr.map_flags = flags;
    return bpf(BPF_MAP_CREATE, &attr, sizeof attr);
}

static void element(int command, int map, uint64_t *value) {
    uint32_t zero = 0;
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.map_fd = (uint32_t)map;
    attr.key = (uint64_t)(uintptr_t)&zero;
    attr.value = (uint64_t)(uintptr_t)value;
    bpf(command, &attr, sizeof attr);
}

static void send_some(void) {
    struct sockaddr_in here;
    memset(&here, 0, sizeof here);
    here.sin_family = AF_INET;
    here.sin_port = htons(9);
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    for (int i = 0; i < 3; i++)
        if (sendto(s, "x", 1, 0, (struct sockaddr *)&here, sizeof here) < 0) perror("sendto");
    close(s);
}

int main(int argc, char **argv) {
    uint64_t step = 1, packets = 0;
    int cgroup = open(argc > 1 ? argv[1] : "/sys/fs/cgroup", O_RDONLY | O_DIRECTORY);
    int rodata = array(BPF_F_RDONLY_PROG), bss = array(0);
    union bpf_attr attr;
    element(BPF_MAP_UPDATE_ELEM, rodata, &step);
    memset(&attr, 0, sizeof attr);
    attr.map_fd = (uint32_t)rodata;
    bpf(BPF_MAP_FREEZE, &attr, sizeof attr);
    const struct bpf_insn code[] = {
        {BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_VALUE, 0, rodata}, /* r1 = &step */
        {0, 0, 0, 0, 0},
        {BPF_LDX | BPF_MEM | BPF_DW, 1, 1, 0, 0}, /* r1 = *r1 */
        {BPF_LD | BPF_DW | BPF_IMM, 2, BPF_PSEUDO_MAP_VALUE, 0, bss},
        {0, 0, 0, 0, 0},
        {BPF_STX | BPF_ATOMIC | BPF_DW, 2, 1, 0, BPF_ADD}, /* lock *r2 += r1 */
        {BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1},
        {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
    };
    memset(&attr, 0, sizeof attr);
    attr.prog_type = BPF_PROG_TYPE_CGROUP_SKB;
    attr.expected_attach_type = BPF_CGROUP_INET_EGRESS;
    attr.insns = (uint64_t)(uintptr_t)code;
    attr.insn_cnt = sizeof code / sizeof code[0];
    attr.license = (uint64_t)(uintptr_t) "GPL";
    int program = bpf(BPF_PROG_LOAD, &attr, sizeof attr);
    memset(&attr, 0, sizeof attr);
    attr.link_create.prog_fd = (uint32_t)program;
    attr.link_create.target_fd = (uint32_t)cgroup;
    attr.link_create.attach_type = BPF_CGROUP_INET_EGRESS;
    bpf(BPF_LINK_CREATE, &attr, sizeof attr);
    send_some();
    element(BPF_MAP_LOOKUP_ELEM, bss, &packets);
    printf("%llu packets\n", (unsigned long long)packets);
    return 0;
}
