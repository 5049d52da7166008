// Another loader's program joins a `rawbpf custom --pin DIR` that runs:
//
//     cc -o join_libbpf join_libbpf.c -lbpf
//     sudo ./join_libbpf DIR example_tailcall.bpf.o ./test_program report_trace
//
// Prints "joined" when the uprobe is attached, and stays until its standard input ends.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>

static int fails(const char *what) {
    perror(what);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 5) return fprintf(stderr, "usage: %s DIR OBJECT FILE FUNCTION\n", argv[0]), 2;
    char path[512];
    snprintf(path, sizeof path, "%s/custom_context_by_thread", argv[1]);
    int contexts = bpf_obj_get(path);
    if (contexts < 0) return fails(path);
    snprintf(path, sizeof path, "%s/custom__generic", argv[1]);
    int generic = bpf_obj_get(path);
    if (generic < 0) return fails(path);

    struct bpf_object *object = bpf_object__open_file(argv[2], NULL);
    if (!object) return fails(argv[2]);
    struct bpf_map *theirs = bpf_object__find_map_by_name(object, "custom_context_by_thread");
    if (!theirs || bpf_map__reuse_fd(theirs, contexts)) return fails("custom_context_by_thread");
    if (bpf_object__load(object)) return fails("loading");

    // The array stays filled as long as this process holds it.
    int array = bpf_object__find_map_fd_by_name(object, "prog_array");
    unsigned slot = 0;
    if (bpf_map_update_elem(array, &slot, &generic, BPF_ANY)) return fails("prog_array");

    struct bpf_program *program = bpf_object__find_program_by_name(object, "example");
    LIBBPF_OPTS(bpf_uprobe_opts, where, .func_name = argv[4]);
    struct bpf_link *link = program ? bpf_program__attach_uprobe_opts(program, -1, argv[3], 0, &where) : NULL;
    if (!link) return fails("attaching");
    puts("joined");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    bpf_link__destroy(link);
    bpf_object__close(object);
    return 0;
}
