// The notes that the Go fork with USDT probes emits, on both machines: registers only, strings as pointer and length without a
// zero behind them, 32 bits as -4@wN, no semaphore, no .stapsdt.base (the base is 0), the note's size counts its padding. The
// goroutine is where Go has it, in r14 and x28. Waits for a line, then fires each once; "-" as argument: at once.
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#define GOROUTINE "r14"
#define R1 "rax"
#define R2 "rbx"
#define R3 "rcx"
#define R4 "rdi"
#define S1 "%%rax"
#define S2 "%%rbx"
#define S3 "%%rcx"
#define S4 "%%rdi"
#define INT32 "-4@%%eax"
#define INT8 "-1@%%al"
#else
#define GOROUTINE "x28"
#define R1 "x0"
#define R2 "x1"
#define R3 "x2"
#define R4 "x3"
#define S1 "x0"
#define S2 "x1"
#define S3 "x2"
#define S4 "x3"
#define INT32 "-4@w0"
#define INT8 "-1@w0"
#endif
// With -DLINKED_BY_GO the file says that it is Go's, as Go's linker does.
#ifdef LINKED_BY_GO
__asm__(".pushsection .note.go.buildid,\"a\",%note\n.balign 4\n.4byte 4, 4, 4\n.asciz \"Go\\0\"\n.ascii \"test\"\n.popsection\n");
#endif
#define STRING1 "8@" S1 " -8@" S2
#define STRING2 "8@" S3 " -8@" S4

#define NOTE(provider, name, arguments)                                                                                          \
    "990: nop\n.pushsection .note.stapsdt,\"?\",\"note\"\n.balign 4\n.4byte 992f-991f, 994f-993f, 3\n"                           \
    "991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b, 0, 0\n"                                                          \
    ".asciz \"" provider "\"\n.asciz \"" name "\"\n.asciz \"" arguments "\"\n.balign 4\n994:\n.popsection\n"

#define FIRE(provider, name, arguments)                                                                                          \
    __asm__ __volatile__(NOTE(provider, name, arguments)::"r"(g), "r"(r1), "r"(r2), "r"(r3), "r"(r4) : "memory")

__attribute__((noinline)) static void fire(int which, long goroutine, const char *a, long a_size, const char *b, long b_size) {
    register long g __asm__(GOROUTINE) = goroutine;
    register const char *r1 __asm__(R1) = a;
    register long r2 __asm__(R2) = a_size;
    register const char *r3 __asm__(R3) = b;
    register long r4 __asm__(R4) = b_size;
    switch (which) {
    case 0: FIRE("net_http", "server_request_start", STRING1 " " STRING2); break;
    case 1: FIRE("net_http", "server_request_end", INT32); break;
    case 2: FIRE("net_http", "client_request_start", STRING1 " " STRING2); break;
    case 3: FIRE("net_http", "client_response_received", INT32); break;
    case 4: FIRE("sql", "prepare", STRING1); break;
    case 5: FIRE("sql", "exec", STRING1); break;
    case 6: FIRE("sql", "query", STRING1); break;
    case 7: FIRE("sql", "stmt_exec", ""); break;
    case 8: FIRE("sql", "stmt_query", ""); break;
    case 9: FIRE("sql", "tx_begin", ""); break;
    case 10: FIRE("tls", "handshake_start", INT8); break;
    case 11: FIRE("tls", "handshake_end", INT8); break;
    case 12: FIRE("tls", "handshake_error", INT8); break;
    case 13: FIRE("net", "conn_accept", ""); break;
    case 14: FIRE("net", "conn_close", ""); break;
    }
}

int main(int argc, char **argv) {
    // As Go lays strings out: one behind the other. Written here, so that the page is in memory on kernels that can't wait for
    // one.
    char text[] = "GETPOST/load?num=5http://localhost:8080/SELECT 1INSERT INTO t VALUES (1)";
    const char *path = text + 7, *url = text + 18, *query = text + 40, *insert = text + 48;
    if (argc < 2 || strcmp(argv[1], "-") != 0) {
        puts("up");
        fflush(stdout);
        if (getchar() == EOF) return 1;
    }
    fire(0, 0xc000001, text, 3, path, 11);
    fire(2, 0xc000002, text + 3, 4, url, 22);
    fire(4, 0xc000002, query, 8, 0, 0);
    fire(5, 0xc000002, insert, 24, 0, 0);
    fire(6, 0xc000002, query, 8, 0, 0);
    for (int i = 7; i <= 9; ++i) fire(i, 0xc000002, 0, 0, 0, 0);
    fire(3, 0xc000002, (const char *)(0x700000000L + 404), 0, 0, 0); // what stands in the register's upper half is nobody's
    for (int i = 10; i <= 12; ++i) fire(i, 0xc000003, (const char *)(long)(i - 11), 0, 0, 0);
    fire(1, 0xc000001, (const char *)200, 0, 0, 0);
    fire(13, 0xc000001, 0, 0, 0, 0);
    fire(14, 0xc000001, 0, 0, 0, 0);
    return 0;
}
