// A pinned program, whoever loaded it, at a function of a program: the step that bpftool 7.1 lacks.
//
//     cc -o attach_pinned attach_pinned.c -lbpf
//     sudo ./attach_pinned PIN FILE FUNCTION_OFFSET
//
// Prints "attached", and stays until its standard input ends.
#include <bpf/bpf.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fails(const char *what) {
    perror(what);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: %s PIN FILE OFFSET\n", argv[0]), 2;
    int program = bpf_obj_get(argv[1]);
    if (program < 0) return fails(argv[1]);
    FILE *type = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
    struct perf_event_attr attr = {.size = sizeof attr};
    if (!type || fscanf(type, "%u", &attr.type) != 1) return fails("the type of uprobes");
    fclose(type);
    attr.uprobe_path = (uint64_t)(uintptr_t)argv[2];
    attr.probe_offset = strtoull(argv[3], NULL, 0);
    int event = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
    if (event < 0) return fails(argv[2]);
    if (ioctl(event, PERF_EVENT_IOC_SET_BPF, program) || ioctl(event, PERF_EVENT_IOC_ENABLE, 0)) return fails("attaching");
    puts("attached");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
