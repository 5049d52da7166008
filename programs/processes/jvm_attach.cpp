// The JDK's attach protocol (src/jdk.attach/linux/classes/sun/tools/attach/VirtualMachineImpl.java; the other side:
// src/hotspot/os/posix/attachListener_posix.cpp), N being the process's number as it knows itself:
//
//      connect to /tmp/.java_pidN    nobody listens: make /tmp/.attach_pidN, send SIGQUIT, and connect again until the
//                                    virtual machine has started who listens
//      send                          "1" NUL "jcmd" NUL "Compiler.perfmap" NUL NUL NUL
//      read to the end               "0\n" and an answer; another number: it didn't work, and why
//
// Whether somebody listens is what connect() says. A socket's file tells less: it may be left by one that was killed and had the
// same number (a new one removes it at its start, if it may, and if attaching isn't disabled).
//
// All paths are the process's own, below /proc/PID/root. SIGQUIT ends whoever doesn't handle it, so it is sent only to a process
// that has mapped libjvm.so and catches that signal.
#include "programs/processes/jvm_attach.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/un.h>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/symbols/maps.h"
#include "runtime/symbols/perf_map.h"
#include "runtime/symbols/text.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/process.h"
#include "runtime/sys/stream.h"

namespace rawbpf::inline v0::processes {
namespace {

constexpr uint64_t kMostNs = 2'000'000'000, kStepNs = 5'000'000;
constexpr size_t kLongestAnswer = 16 << 10;
constexpr std::string_view kRequest{"1\0jcmd\0Compiler.perfmap\0\0\0", 26};

/// Whether it handles SIGQUIT: a bit of the line "SigCgt:" of /proc/PID/status.
bool catches_quit(uint32_t pid) {
    const auto status = sys::read_file(format("/proc/{}/status", pid));
    std::string_view text = status ? std::string_view(*status) : std::string_view();
    while (!text.empty()) {
        const std::string_view line = symbols::take_line(text);
        if (!line.starts_with("SigCgt:\t")) continue;
        symbols::TextCursor at(line.substr(8));
        uint64_t caught = 0;
        return at.hex(caught) && (caught >> (SIGQUIT - 1) & 1) != 0;
    }
    return false;
}

void pause(uint64_t ns) { (void)sys::poll_files({}, ns); }

Result<void> wait_for(int socket, short events, uint64_t until_ns) {
    pollfd one{socket, events, 0};
    const uint64_t now = sys::monotonic_ns();
    if (now < until_ns) TRY(sys::poll_files(std::span(&one, 1), until_ns - now));
    if (one.revents == 0) return fail(Errc::unsupported, "the Java virtual machine doesn't answer");
    return {};
}

/// A link isn't followed: it could lead to a socket of somebody who obeys this process, but not the one that made the link.
Result<Fd> connect_to(const std::string &folder, const std::string &file) {
    const Fd place = TRY(sys::open_under(folder, file, O_PATH | O_NOFOLLOW));
    const std::string name = format("/proc/self/fd/{}", place.get());
    sys::SocketAddress address;
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, name.data(), name.size());
    std::memcpy(&address.bytes, &to, sizeof to);
    address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
    return sys::begin_connect(address);
}

/// Of an error of connect(): there is no file, or nobody listens there.
bool nobody_listens(const Error &error) { return error.os == ENOENT || error.os == ECONNREFUSED; }
/// The same, or too many others wait to be accepted.
bool is_for_later(const Error &error) { return nobody_listens(error) || error.os == EAGAIN; }

/// Connected; the virtual machine is asked to listen if it doesn't.
Result<Fd> connect_to_jvm(uint32_t pid, uint64_t until_ns) {
    const std::string root = format("/proc/{}/root", pid);
    const Fd tmp = TRY(sys::open_under(root, "/tmp", O_PATH | O_DIRECTORY)); // there after the process's end, too
    const std::string folder = format("/proc/self/fd/{}", tmp.get());
    const int inside = symbols::pid_inside(static_cast<int>(pid));
    const std::string listener = format("/.java_pid{}", inside), request = format("/.attach_pid{}", inside);
    Result<Fd> socket = connect_to(folder, listener);
    if (socket || !is_for_later(socket.error())) return socket;
    const bool asks = nobody_listens(socket.error());
    Result<void> asked;
    if (asks) { // one that listens would print all threads' stacks at SIGQUIT
        const auto made = sys::open_under(folder, request, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW);
        if (!made && made.error().os != EEXIST) return Unexpected(made.error());
        asked = sys::send_signal(static_cast<int>(pid), SIGQUIT);
    }
    bool there = true;
    while (asked && there && !socket && is_for_later(socket.error()) && sys::monotonic_ns() < until_ns) {
        pause(kStepNs);
        there = sys::exists(root);
        socket = connect_to(folder, listener);
    }
    if (asks) (void)sys::remove_file(folder + request); // the virtual machine does it, too
    TRY(asked);
    if (socket || !is_for_later(socket.error())) return socket;
    if (!there) return fail(Errc::not_found, "the Java virtual machine ended before it listened");
    return fail(Errc::unsupported, "the Java virtual machine doesn't listen: was it started with -XX:+DisableAttachMechanism?");
}

} // namespace

bool is_jvm(uint32_t pid) {
    sys::Because why("is it a Java virtual machine that can be asked for the names of its code?");
    const auto maps = symbols::read_maps(static_cast<int>(pid));
    return maps &&
           std::any_of(maps->regions.begin(), maps->regions.end(),
                       [](const symbols::Region &region) { return region.file().ends_with("/libjvm.so"); }) &&
           catches_quit(pid);
}

Result<void> ask_for_perf_map(uint32_t pid) {
    if (!is_jvm(pid)) return fail(Errc::unsupported, "process {} is no Java virtual machine that can be asked", pid);
    sys::Because why("the Java virtual machine is asked for the names of its code, as --jvm-perfmap wants");
    const uint64_t until_ns = sys::monotonic_ns() + kMostNs;
    const Fd socket = TRY(connect_to_jvm(pid, until_ns));
    for (std::string_view left = kRequest; !left.empty();) {
        left.remove_prefix(TRY(sys::send_some(socket.get(), left)));
        if (!left.empty()) TRY(wait_for(socket.get(), POLLOUT, until_ns));
    }
    std::string answer;
    for (char piece[512]; answer.size() < kLongestAnswer;) {
        TRY(wait_for(socket.get(), POLLIN, until_ns));
        const auto n = TRY(sys::receive(socket.get(), piece));
        if (n && *n == 0) break;
        answer.append(piece, n.value_or(0));
    }
    if (answer.starts_with("0\n")) return {};
    std::replace(answer.begin(), answer.end(), '\n', ' ');
    return fail(Errc::unsupported, "the Java virtual machine has no Compiler.perfmap (JDK 17); it answers: {}",
                answer.substr(0, 200));
}

} // namespace rawbpf::inline v0::processes
