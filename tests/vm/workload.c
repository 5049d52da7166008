// What the tools are to see, a known number of times: workload KIND COUNT. It prints its process id, and begins when /tmp/go is
// there.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what) {
    fprintf(stderr, "workload: %s: %s\n", what, strerror(errno));
    exit(1);
}
static void rest(long ns) {
    struct timespec t = {0, ns};
    nanosleep(&t, NULL);
}
static void reap(void) {
    int status;
    if (wait(&status) < 0) fail("wait");
}

static void do_exec(int n) {
    for (int i = 0; i < n; ++i) {
        char file[] = "/bin/true", name[] = "true", first[] = "first",
             number[16]; // on the stack: execsnoop-libbpf can't read pages that nobody has touched
        snprintf(number, sizeof number, "%d", i);
        char *words[] = {name, first, number, NULL};
        pid_t child = fork();
        if (child == 0) {
            execv(file, words);
            _exit(1);
        }
        reap();
    }
}
static void do_exit(int n) {
    for (int i = 0; i < n; ++i) {
        if (fork() == 0) {
            if (i % 4 == 3) raise(SIGKILL);
            _exit(i % 4);
        }
        reap();
    }
}
static void do_open(int n) {
    for (int i = 0; i < n; ++i) {
        char name[64];
        snprintf(name, sizeof name, "/tmp/%s_%d", i % 2 ? "missing" : "made", i);
        int fd = open(name, i % 2 ? O_RDONLY : O_RDWR | O_CREAT, 0600);
        if (fd >= 0) close(fd);
        // opensnoop-libbpf has room for some 40 events, of 6 KB each, and says nothing of what it loses: it must come to read.
        if (i % 10 == 9) rest(50000000);
    }
}
static void do_stat(int n) {
    struct stat st;
    for (int i = 0; i < n; ++i) {
        char name[64];
        snprintf(name, sizeof name, "/tmp/nothing_%d", i);
        stat(name, &st);
    }
}
static void do_kill(int n) {
    pid_t child = fork();
    if (child == 0)
        for (;;) pause();
    for (int i = 0; i < n; ++i) kill(child, i % 2 ? SIGCONT : 0);
    kill(child, SIGKILL);
    reap();
}
static void do_file(int n) {
    char page[4096] = {1};
    int fd = open("/tmp/workload_data", O_RDWR | O_CREAT, 0600);
    if (fd < 0) fail("/tmp/workload_data");
    for (int i = 0; i < n; ++i) {
        const off_t at = (off_t)(i % 64) * 4096; // the page that was read last isn't marked as used again
        if (pwrite(fd, page, sizeof page, at) != sizeof page || pread(fd, page, sizeof page, at) != sizeof page) fail("a page");
        if (i % 10 == 0 && fsync(fd) != 0) fail("fsync");
    }
    close(fd);
}
__attribute__((noinline)) int workload_step(int i) {
    __asm__ volatile("" ::: "memory");
    return i + 1;
}
static void do_call(int n) {
    int sum = 0;
    for (int i = 0; i < n; ++i) sum = workload_step(sum);
    if (sum != n) exit(1);
}
static void do_syscall(int n) {
    for (int i = 0; i < n; ++i) syscall(SYS_getpgid, 0);
}
static void do_tcp(int n) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(4711), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (void *)&at, sizeof at) != 0 || listen(listener, 64) != 0) fail("listening");
    pid_t server = fork();
    if (server == 0) {
        char bytes[4096];
        for (int i = 0; i < n; ++i) {
            int one = accept(listener, NULL, NULL);
            while (read(one, bytes, sizeof bytes) > 0) {
            }
            close(one);
        }
        _exit(0);
    }
    close(listener);
    for (int i = 0; i < n; ++i) {
        char bytes[1000] = {0};
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (void *)&at, sizeof at) != 0) fail("connecting");
        if (write(fd, bytes, sizeof bytes) != sizeof bytes) fail("sending");
        shutdown(fd, SHUT_WR);
        while (read(fd, bytes, sizeof bytes) > 0) {
        }
        close(fd);
    }
    reap();
}
static uint32_t word;
static volatile int rounds_left;
static void *waiter(void *unused) {
    prctl(PR_SET_NAME, "wk_waits");
    while (rounds_left > 0) syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
    return unused;
}
static void do_futex(int n) {
    pthread_t thread;
    rounds_left = n;
    if (pthread_create(&thread, NULL, waiter, NULL) != 0) fail("a thread");
    for (int i = 0; i < n; ++i) {
        rest(1000000);
        if (i == n - 1) rounds_left = 0;
        while (syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) != 1) rest(1000000);
    }
    pthread_join(thread, NULL);
}
static void do_leak(int n) {
    for (int i = 0; i < n; ++i) {
        void *volatile kept = malloc(1000);
        if (i % 2 == 0) free(kept);
    }
    sleep(4); // it still has them when the tools look
}
static void do_block(int n) {
    int fd = open("/dev/nullb0", O_RDONLY | O_DIRECT);
    void *page;
    if (fd < 0 || posix_memalign(&page, 4096, 4096) != 0) fail("/dev/nullb0");
    for (int i = 0; i < n; ++i)
        if (pread(fd, page, 4096, (off_t)(i % 1000) * 4096) != 4096) fail("reading /dev/nullb0");
}
// Nobody is behind that address, and nothing says so: each connection's first segment is sent again after 1 and after 3 s.
static void do_retransmit(int n) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(4711)};
    inet_pton(AF_INET, "10.9.0.2", &at.sin_addr);
    for (int i = 0; i < n; ++i) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (connect(fd, (void *)&at, sizeof at) != -1 || errno != EINPROGRESS) fail("connecting to nobody");
    }
    sleep(5);
}
static void do_sleep(int n) {
    for (int i = 0; i < n; ++i) rest(1000000);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(int);
    } kinds[] = {{"exec", do_exec},
                 {"exit", do_exit},
                 {"open", do_open},
                 {"stat", do_stat},
                 {"kill", do_kill},
                 {"file", do_file},
                 {"call", do_call},
                 {"syscall", do_syscall},
                 {"tcp", do_tcp},
                 {"futex", do_futex},
                 {"leak", do_leak},
                 {"block", do_block},
                 {"retransmit", do_retransmit},
                 {"sleep", do_sleep}};
    if (argc != 3) return 2;
    char name[16];
    snprintf(name, sizeof name, "wk_%.12s", argv[1]);
    prctl(PR_SET_NAME, name);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i)
        if (strcmp(kinds[i].name, argv[1]) == 0) {
            while (access("/tmp/go", F_OK) != 0) rest(50000000);
            kinds[i].run(atoi(argv[2]));
            return 0;
        }
    return 2;
}
