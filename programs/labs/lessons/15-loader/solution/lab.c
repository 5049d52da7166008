// Lesson 15: a loader of your own
//
// It makes a map, reads a program from bytes, puts the map's file descriptor into it, loads it, runs it on packets, and reads the
// map. There is no library behind it: bpf(2) is one system call, and union bpf_attr says what is wanted.
//
//     cc -o lab lab.c && sudo ./lab count.hex 3
//
// 1. read_program()   text with hex digits -> instructions
// 2. create_map()     BPF_MAP_CREATE       -> a file descriptor
// 3. relocate()       the instructions that load a map's address get that file descriptor
// 4. load_program()   BPF_PROG_LOAD        -> a file descriptor, or the verifier's log
// 5. run_program()    BPF_PROG_TEST_RUN    -> what the program returns for a packet
// 6. read_value()     BPF_MAP_LOOKUP_ELEM  -> what the program has left in the map
#include <ctype.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kMostInstructions = 4096, kLogBytes = 1 << 16 };

// bpf(2): a command, and a union whose member depends on the command. The C library has no function for it.
static int bpf(enum bpf_cmd command, union bpf_attr *attr) { return (int)syscall(__NR_bpf, command, attr, sizeof(*attr)); }

// Addresses go to the kernel as 64-bit numbers, on 32-bit machines, too.
static uint64_t address(const void *p) { return (uint64_t)(uintptr_t)p; }

static int fail(const char *what) {
    fprintf(stderr, "lab: %s: %s\n", what, strerror(errno));
    if (errno == EPERM) fprintf(stderr, "lab: bpf(2) needs CAP_BPF and CAP_NET_ADMIN: run it with sudo\n");
    return -1;
}

// Reads the digits of a file, without blanks, and without comments from # to the end of the line. An instruction has 8 bytes, 16
// digits. Returns how many instructions there are; -1 if something is wrong.
static int read_program(const char *path, struct bpf_insn *code) {
    FILE *file = fopen(path, "r");
    if (!file) return fail(path);
    unsigned char *bytes = (unsigned char *)code;
    size_t digits = 0;
    int c, line = 1, wrong = 0;
    while (!wrong && (c = fgetc(file)) != EOF) {
        if (c == '#')
            while (c != EOF && c != '\n') c = fgetc(file);
        if (c == '\n') ++line;
        if (c == EOF || isspace(c)) continue;
        if (!isxdigit(c) || digits / 16 == kMostInstructions) {
            fprintf(stderr, "lab: %s:%d: %s\n", path, line, isxdigit(c) ? "too many instructions" : "not a hex digit");
            wrong = 1;
            continue;
        }
        int value = isdigit(c) ? c - '0' : tolower(c) - 'a' + 10;
        if (digits % 2 == 0)
            bytes[digits / 2] = (unsigned char)(value << 4);
        else
            bytes[digits / 2] |= (unsigned char)value;
        ++digits;
    }
    fclose(file);
    if (wrong) return -1;
    if (digits == 0 || digits % 16 != 0) {
        fprintf(stderr, "lab: %s: %zu digits are no whole number of instructions, which have 16 each\n", path, digits);
        return -1;
    }
    return (int)(digits / 16);
}

// An array with one element of 8 bytes.
static int create_map(void) {
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr)); // what isn't used must be 0: the kernel refuses anything else
    attr.map_type = BPF_MAP_TYPE_ARRAY;
    attr.key_size = 4;
    attr.value_size = 8;
    attr.max_entries = 1;
    strcpy(attr.map_name, "counts");
    int fd = bpf(BPF_MAP_CREATE, &attr);
    return fd < 0 ? fail("BPF_MAP_CREATE") : fd;
}

// The program doesn't know where its map will be. It has an instruction `r1 = 0 ll`, opcode 0x18, which takes two places: 16
// bytes. The kernel replaces the number by the map's address, if the source register says BPF_PSEUDO_MAP_FD and the number is the
// map's file descriptor.
static void relocate(struct bpf_insn *code, int count, int map) {
    for (int i = 0; i < count; ++i) {
        if (code[i].code != (BPF_LD | BPF_IMM | BPF_DW)) continue;
        code[i].src_reg = BPF_PSEUDO_MAP_FD;
        code[i].imm = map;
        ++i; // its second half is no instruction
    }
}

static int load_program(const struct bpf_insn *code, int count) {
    static char log[kLogBytes];
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.prog_type = BPF_PROG_TYPE_XDP;
    attr.insns = address(code);
    attr.insn_cnt = (uint32_t)count;
    attr.license = address("GPL");
    attr.log_level = 1;
    attr.log_buf = address(log);
    attr.log_size = sizeof(log);
    strcpy(attr.prog_name, "count");
    int fd = bpf(BPF_PROG_LOAD, &attr);
    if (fd >= 0) return fd;
    fail("BPF_PROG_LOAD");
    fputs(log, stderr); // the verifier's reasons
    return -1;
}

// Nothing is attached: the kernel makes a packet of these bytes, and runs the program on it so many times.
static int run_program(int program, unsigned times, unsigned *result) {
    static const unsigned char packet[14] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 8, 0};
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.test.prog_fd = (uint32_t)program;
    attr.test.data_in = address(packet);
    attr.test.data_size_in = sizeof(packet);
    attr.test.repeat = times;
    if (bpf(BPF_PROG_TEST_RUN, &attr) < 0) return fail("BPF_PROG_TEST_RUN");
    *result = attr.test.retval;
    return 0;
}

static int read_value(int map, uint32_t key, uint64_t *value) {
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.map_fd = (uint32_t)map;
    attr.key = address(&key);
    attr.value = address(value);
    return bpf(BPF_MAP_LOOKUP_ELEM, &attr) < 0 ? fail("BPF_MAP_LOOKUP_ELEM") : 0;
}

int main(int argc, char **argv) {
    static struct bpf_insn code[kMostInstructions];
    long times = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    if (times < 1 || times > 1000000) {
        fprintf(stderr, "usage: lab FILE TIMES\n");
        return 2;
    }
    int count = read_program(argv[1], code);
    if (count < 0) return 1;
    int map = create_map();
    if (map < 0) return 1;
    relocate(code, count, map);
    int program = load_program(code, count);
    if (program < 0) return 1;
    printf("loaded: %d instructions\n", count);
    unsigned result = 0;
    uint64_t value = 0;
    if (run_program(program, (unsigned)times, &result) < 0 || read_value(map, 0, &value) < 0) return 1;
    printf("result %u, counts[0] = %llu\n", result, (unsigned long long)value);
    return 0; // the kernel closes what a process leaves open, and frees the program and the map with it
}
