/* tests/install/packets.c in C by libbpf, line for line as far as it goes: packets OBJECT CGROUP. core.bench runs it. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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
    uint64_t packets = 0;
    uint32_t zero = 0;
    const char *what = "open";
    int cgroup = open(argc > 2 ? argv[2] : "/sys/fs/cgroup", O_RDONLY | O_DIRECTORY);
    struct bpf_link *link = NULL;
    struct bpf_object *object = bpf_object__open_file(argc > 1 ? argv[1] : "packets.bpf.o", NULL);
    if (!object) goto failed;
    struct bpf_map *data = bpf_object__find_map_by_name(object, ".rodata");
    size_t size = 0;
    uint64_t *step = data ? (uint64_t *)bpf_map__initial_value(data, &size) : NULL;
    if (step && size >= sizeof *step) *step = 1;
    what = "load";
    if (bpf_object__load(object)) goto failed;
    what = "attach";
    link = bpf_program__attach_cgroup(bpf_object__find_program_by_name(object, "count"), cgroup);
    if (!link) goto failed;
    send_some();
    what = "lookup";
    if (bpf_map_lookup_elem(bpf_object__find_map_fd_by_name(object, ".bss"), &zero, &packets)) goto failed;
    printf("%llu packets\n", (unsigned long long)packets);
    bpf_link__destroy(link);
    bpf_object__close(object);
    return 0;
failed:
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    bpf_link__destroy(link);
    bpf_object__close(object);
    return 1;
}
