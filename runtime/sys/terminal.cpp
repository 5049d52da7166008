// Terminal modes: TCGETS, TCSETS and TIOCGWINSZ of ioctl_tty(2).
//
// The C library's tcgetattr() has a struct of its own size; the kernel's (asm/termbits.h) clashes with its header. So the
// library's functions are used, which do nothing else.
#include "runtime/sys/terminal.h"

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "runtime/base/fail.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {

Result<RawTerminal> RawTerminal::open() {
    RawTerminal out;
    out.fd_ = TRY(sys::open("/dev/tty", O_RDWR));
    if (tcgetattr(out.fd_.get(), &out.before_) != 0) return fail_os(errno, "the terminal's modes");
    termios raw = out.before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(out.fd_.get(), TCSADRAIN, &raw) != 0) return fail_os(errno, "the terminal's modes");
    return out;
}

RawTerminal::~RawTerminal() {
    if (fd_) (void)tcsetattr(fd_.get(), TCSADRAIN, &before_); // nobody is left to be told
}

int RawTerminal::key() {
    unsigned char byte = 0;
    const long n = invoke(__NR_read, static_cast<uint64_t>(fd_.get()), reg(&byte), 1);
    return n == 1 ? byte : 0;
}

int RawTerminal::key_at_once() {
    pollfd waiting{fd_.get(), POLLIN, 0};
    timespec patience{0, 50'000'000};
    const long n = invoke(__NR_ppoll, reg(&waiting), 1, reg(&patience), 0, 0);
    return n == 1 ? key() : 0;
}

int RawTerminal::key_or_resize(const TerminalSize &shown) {
    for (;;) {
        pollfd waiting{fd_.get(), POLLIN, 0};
        timespec patience{0, 200'000'000};
        const long n = invoke(__NR_ppoll, reg(&waiting), 1, reg(&patience), 0, 0);
        if (n != 0) return n == 1 ? key() : 0;
        if (size() != shown) return kResized;
    }
}

TerminalSize terminal_size(int fd) {
    winsize now{};
    TerminalSize out;
    if (invoke(__NR_ioctl, static_cast<uint64_t>(fd), TIOCGWINSZ, reg(&now)) == 0 && now.ws_row && now.ws_col)
        out = {now.ws_row, now.ws_col};
    return out;
}

} // namespace rawbpf::inline v0::sys
