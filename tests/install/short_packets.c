/* A product whose filter was written in C++ (short_packets.cpp) and is a table here, made by `rawbpf bundle`. */
#include "short_packets.h"

#include <stdio.h>
#include <sys/socket.h>

int main(void) {
    static struct rawbpf_error error;
    static const char packet[200];
    int ends[2], filter, received = 0;
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) != 0 || rawbpf_bundle_load(&short_packets, &error) < 0) {
        fprintf(stderr, "%s\n%s\n%s", error.text, error.hint, error.log);
        return 1;
    }
    filter = rawbpf_bundle_program_fd(&short_packets, short_packets_program_short_packets);
    if (setsockopt(ends[1], SOL_SOCKET, SO_ATTACH_BPF, &filter, sizeof filter) != 0) return perror("SO_ATTACH_BPF"), 1;
    if (send(ends[0], packet, 50, 0) != 50) return perror("send"), 1;
    (void)send(ends[0], packet, 200, 0); /* a sender may be told that it was refused */
    while (recv(ends[1], (char[200]){0}, 200, MSG_DONTWAIT) == 50) received++;
    rawbpf_bundle_close(&short_packets);
    printf("%d packet\n", received);
    return received != 1;
}
