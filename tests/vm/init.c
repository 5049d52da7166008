// PID 1 of a guest: sets up a usual small root, runs one command, and sends what it prints over a serial port.
//
// The port carries frames, so that stdout, stderr and the exit status come back separately and whatever the command prints
// can't be mistaken for anything else:
//
//      [ 0x01 'R' 'B' type ] [ length, 4 bytes little-endian ] [ payload ]        type: b begin, o stdout, e stderr, x exit
//
// It is static, small and needs nothing in the root but itself. /guest tells it what to do, one item a line:
//      port /dev/ttyS1          where the frames go
//      bare                     mount nothing but devtmpfs (a root that holds one file)
//      mount TYPE /path         mount this all the same
//      module /path             insmod it
//      env NAME=VALUE
//      directory /path          the command's working directory
//      arg WORD                 the command and its arguments, in order (escaped: \n is a line end, \\ a backslash)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // Meson gives it, too
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#ifdef __x86_64__
#include <sys/io.h>
#endif

static int port = -1;

static void write_all(const void *data, size_t size) {
    const char *at = data;
    while (size) {
        ssize_t n = write(port, at, size);
        if (n < 0 && errno != EINTR && errno != EAGAIN) return;
        if (n > 0) at += n, size -= (size_t)n;
    }
}

static void frame(char type, const void *data, uint32_t size) {
    unsigned char head[8] = {1, 'R', 'B', (unsigned char)type, size & 255, size >> 8 & 255, size >> 16 & 255, size >> 24 & 255};
    write_all(head, sizeof head);
    write_all(data, size);
}

static void stop(void) {
    if (port >= 0) tcdrain(port);
    sync();
#ifdef __x86_64__
    if (ioperm(0xf4, 1, 1) == 0)
        __asm__ volatile("outb %0, %1" ::"a"((unsigned char)0), "Nd"((unsigned short)0xf4)); // isa-debug-exit
#endif
    reboot(RB_POWER_OFF);
    for (;;) pause();
}

static void complain(const char *what, const char *which) {
    char text[512];
    int n = snprintf(text, sizeof text, "guest: %s %s: %s\n", what, which, strerror(errno));
    frame('e', text, (uint32_t)n);
}

static void mount_at(const char *type, const char *where, const char *data) {
    mkdir(where, 0755);
    if (mount(type, where, type, 0, data) != 0 && errno != EBUSY && errno != ENODEV && errno != ENOENT)
        complain("mounting", where);
}

static int is_empty(const char *where) {
    DIR *folder = opendir(where);
    int entries = 0;
    while (folder && readdir(folder)) ++entries;
    if (folder) closedir(folder);
    return entries <= 2; // . and ..
}

static void load_module(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) != 0 && errno != EEXIST)) complain("loading", path);
    if (fd >= 0) close(fd);
}

static void loopback_up(void) {
    struct ifreq request = {.ifr_flags = IFF_UP | IFF_RUNNING};
    strcpy(request.ifr_name, "lo");
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s >= 0) ioctl(s, SIOCSIFFLAGS, &request), close(s);
}

static char *unescape(char *text) {
    char *to = text;
    for (char *from = text; *from; ++from) *to++ = *from == '\\' && from[1] ? (*++from == 'n' ? '\n' : *from) : *from;
    *to = 0;
    return text;
}

int main(void) {
    static char config[1 << 20];
    char *args[256] = {0}, *modules[64] = {0}, *mounts[8] = {0};
    int arg_count = 0, module_count = 0, mount_count = 0, bare = 0;
    const char *port_path = "/dev/console", *directory = "/tmp";

    mkdir("/dev", 0755);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    int fd = open("/guest", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, config, sizeof config - 1) : -1;
    if (size > 0) config[size] = 0;
    close(fd);
    setenv("PATH", "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin", 1);
    setenv("HOME", "/root", 1);
    setenv("TERM", "dumb", 1);
    for (char *line = strtok(config, "\n"); line; line = strtok(NULL, "\n")) {
        char *space = strchr(line, ' ');
        char *rest = space ? space + 1 : line + strlen(line);
        if (space) *space = 0;
        if (!strcmp(line, "port"))
            port_path = rest;
        else if (!strcmp(line, "bare"))
            bare = 1;
        else if (!strcmp(line, "mount") && mount_count < 8)
            mounts[mount_count++] = rest;
        else if (!strcmp(line, "module") && module_count < 63)
            modules[module_count++] = rest;
        else if (!strcmp(line, "env"))
            putenv(rest);
        else if (!strcmp(line, "directory"))
            directory = rest;
        else if (!strcmp(line, "arg") && arg_count < 255)
            args[arg_count++] = unescape(rest);
    }
    port = open(port_path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct termios raw;
    if (port >= 0 && tcgetattr(port, &raw) == 0) cfmakeraw(&raw), cfsetspeed(&raw, B115200), tcsetattr(port, TCSANOW, &raw);
    if (!bare) {
        mount_at("proc", "/proc", NULL);
        mount_at("sysfs", "/sys", NULL);
        mount_at("tracefs", "/sys/kernel/tracing", NULL);
        mount_at("debugfs", "/sys/kernel/debug", NULL);
        mount_at("securityfs", "/sys/kernel/security", NULL);
        mount_at("bpf", "/sys/fs/bpf", NULL);
        mount_at("cgroup2", "/sys/fs/cgroup", NULL);
        if (is_empty("/tmp"))
            mount_at("tmpfs", "/tmp", "mode=1777");
        else
            chmod("/tmp", 01777); // what was brought along is there: the root is memory, too
        mount_at("tmpfs", "/run", NULL);
        mount_at("devpts", "/dev/pts", NULL);
        symlink("/proc/self/fd", "/dev/fd");
        symlink("/proc/self/fd/0", "/dev/stdin");
        symlink("/proc/self/fd/1", "/dev/stdout");
        symlink("/proc/self/fd/2", "/dev/stderr");
        loopback_up();
    }
    for (int i = 0; i < mount_count; ++i) {
        char *where = strchr(mounts[i], ' ');
        if (where) *where++ = 0, mount_at(mounts[i], where, NULL);
    }
    for (int i = 0; i < module_count; ++i) load_module(modules[i]);
    frame('b', "", 0);

    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) stop();
    pid_t child = fork();
    if (child == 0) {
        setsid();
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0), dup2(out[1], 1), dup2(err[1], 2);
        if (chdir(directory) != 0 && chdir("/") != 0) _exit(126);
        if (args[0]) execvp(args[0], args);
        dprintf(2, "guest: %s: %s\n", args[0] ? args[0] : "no command", strerror(errno));
        _exit(127);
    }
    close(out[1]), close(err[1]);
    struct pollfd polled[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
    static char buffer[65536];
    int status = 0, ended = 0;
    while (polled[0].fd >= 0 || polled[1].fd >= 0) {
        // A child of the command may keep the pipes open; half a second after the command's end nobody waits for it any more.
        int ready = poll(polled, 2, ended ? 500 : 50);
        if (ready == 0 && ended) break;
        for (int i = 0; i < 2; ++i) {
            if (polled[i].fd < 0 || !polled[i].revents) continue;
            ssize_t n = read(polled[i].fd, buffer, sizeof buffer);
            if (n > 0)
                frame(i ? 'e' : 'o', buffer, (uint32_t)n);
            else
                polled[i].fd = -1;
        }
        int s;
        pid_t gone;
        while ((gone = waitpid(-1, &s, WNOHANG)) > 0)
            if (gone == child) status = s, ended = 1;
    }
    while (!ended) {
        pid_t gone = waitpid(-1, &status, 0);
        if (gone == child || gone < 0) ended = 1;
    }
    unsigned char code = (unsigned char)(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    frame('x', &code, 1);
    stop();
}
