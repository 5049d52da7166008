/* Counts the packets that the programs of a cgroup send, in C: packets OBJECT CGROUP */
#include <rawbpf/core.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

RAWBPF_PARTS(&rawbpf_cgroups, &rawbpf_kernel_types); /* and nothing else */

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
    struct rawbpf_error error;
    struct rawbpf_place place = RAWBPF_PLACE_INIT;
    rawbpf_object *object = NULL;
    uint64_t step = 1, packets = 0;
    uint32_t zero = 0;
    place.fd = open(argc > 2 ? argv[2] : "/sys/fs/cgroup", O_RDONLY | O_DIRECTORY);
    if (rawbpf_open_file(argc > 1 ? argv[1] : "packets.bpf.o", &object, &error) == 0 &&
        rawbpf_set_global(object, "step", &step, sizeof step, &error) == 0 && rawbpf_load(object, &error) == 0 &&
        rawbpf_attach_program(object, "count", &place, &error) == 0) {
        send_some();
        if (rawbpf_map_lookup(rawbpf_find_map(object, ".bss"), &zero, &packets, &error) == 0) {
            printf("%llu packets\n", (unsigned long long)packets);
            return rawbpf_close(object), 0;
        }
    }
    fprintf(stderr, "%s\n%s\n%s", error.text, error.hint, error.log);
    return rawbpf_close(object), 1;
}
