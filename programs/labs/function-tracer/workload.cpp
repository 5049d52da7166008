// A child must not do anything before the probes stand, and the wait for that must not call what is traced: a read() from a pipe
// would be one vfs_read too many. So it stops itself by a signal, and is continued by another.
//
// The functions below are what `--user` traces. They are extern "C", so that their names are in the symbol table as they stand
// here, and the attributes keep the compiler from inlining them: a function that was inlined isn't there any more, and no probe
// can be put on it. That is as true of the kernel's.
#include "workload.h"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__clang__)
#define TRACEABLE [[gnu::noinline, gnu::used]]
#else
#define TRACEABLE [[gnu::noinline, gnu::noclone, gnu::used]]
#endif

extern "C" {
TRACEABLE int user_open(const char *path, int flags) { return open(path, flags); }
TRACEABLE ssize_t user_read(int fd, char *buffer, size_t count) { return read(fd, buffer, count); }
TRACEABLE ssize_t user_write(int fd, const char *buffer, size_t count) { return write(fd, buffer, count); }

// One that calls the others: something for challenges 2 to 4.
TRACEABLE int user_round(const char *path, int null) {
    const char line[] = "a line of text";
    char page[4096];
    const int fd = user_open(path, O_RDONLY);
    const bool good = fd >= 0 && user_read(fd, page, sizeof page) >= 0 && user_write(null, line, strlen(line)) >= 0;
    close(fd);
    return good ? 0 : -1;
}
}

namespace lab {

bool call_them(uint64_t rounds, int null) {
    // On the stack, whose pages are there already (the README's troubleshooting tells why that matters).
    char path[] = "/etc/passwd";
    for (uint64_t i = 0; i < rounds; ++i)
        if (user_round(path, null) != 0) return false;
    return true;
}

template <class Work> Workload Workload::start(Work work) {
    Workload out;
    fflush(stdout); // or the child would have a copy of what isn't printed yet
    const int parent = getpid();
    out.pid_ = fork();
    if (out.pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // not left behind, stopped, when the lab is killed
        if (getppid() != parent) _exit(1);
        for (int signal : {SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);
        raise(SIGSTOP);
        work();
        _exit(127);
    }
    int status = 0;
    if (out.pid_ > 0 && (waitpid(out.pid_, &status, WUNTRACED) != out.pid_ || !WIFSTOPPED(status))) out.pid_ = -1;
    return out;
}

Workload Workload::calls(uint64_t rounds) {
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    Workload out = start([=] { _exit(call_them(rounds, null) ? 0 : 1); });
    close(null);
    return out;
}

Workload Workload::command(const std::vector<std::string> &words) {
    std::vector<char *> argv;
    argv.reserve(words.size() + 1);
    for (const std::string &word : words) argv.push_back(const_cast<char *>(word.c_str()));
    argv.push_back(nullptr);
    return start([&] {
        execvp(argv[0], argv.data());
        perror(argv[0]);
    });
}

Workload::Workload(Workload &&other) noexcept { *this = std::move(other); }
Workload &Workload::operator=(Workload &&other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(status_, other.status_);
    std::swap(ended_, other.ended_);
    return *this;
}
Workload::~Workload() {
    if (pid_ <= 0 || ended()) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
}

void Workload::go() const { kill(pid_, SIGCONT); }

bool Workload::ended() {
    int status = 0;
    if (pid_ > 0 && !ended_ && waitpid(pid_, &status, WNOHANG) == pid_) {
        ended_ = true;
        status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return ended_;
}

} // namespace lab
