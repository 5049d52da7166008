// Stubs for what a page lacks: a kernel and its types, processes, files. They have the names that the engine calls, and return an
// error or "there is none". Time comes from the browser.
#include <cerrno>
#include <chrono>

#include "programs/experiment/compile.h"
#include "programs/trace/constants.h"
#include "programs/trace/system_calls.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"
#include "runtime/kernel/system_state.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/epoll.h"
#include "runtime/sys/facts.h"
#include "runtime/sys/file.h"
#include "runtime/sys/privileges.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0 {

namespace {

Error no(std::string_view what) { return make_error(Errc::unsupported, format("a page has no {}", what)); }

template <class Clock> uint64_t since_epoch() {
    return static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count());
}

} // namespace

Result<std::shared_ptr<const btf::Btf>> kernel_btf(const std::string &) {
    return Unexpected(make_error(Errc::unsupported,
                                 "a page has no kernel, so it doesn't know where a kernel's structs have their members",
                                 "in a terminal, rawbpf lab check knows it"));
}
Probed probe_attach_type(uint32_t) { return {Support::unasked, {}}; }
Probed probe_program_type(uint32_t) { return {Support::unasked, {}}; }
bool has_helper(uint32_t, uint32_t) { return false; }
Probed probe_helper(uint32_t) { return {Support::unasked, {}}; }
std::string parse_chosen(std::string_view) { return {}; } // which lockdown there is
void close_fd(int) noexcept {}

namespace sys {

uint64_t monotonic_ns() { return since_epoch<std::chrono::steady_clock>(); }
uint64_t boottime_ns() { return monotonic_ns(); }
uint64_t realtime_ns() { return since_epoch<std::chrono::system_clock>(); }
size_t page_size() { return 4096; }
int own_pid() { return 1; }
std::optional<uint64_t> status_number(int, std::string_view) { return {}; }
Facts facts() { return {}; }
std::string lacking(std::span<const Capability>, const Facts &) { return {}; }
Result<SystemName> system_name() { return Unexpected(no("kernel")); }
Result<Capabilities> capabilities() { return Unexpected(no("kernel")); }
Result<std::string> read_file(const std::string &path, size_t) {
    return Unexpected(make_error(Errc::not_found, format("{}: a page has no files", path)));
}

Result<Fd> epoll_create() { return Unexpected(no("way to wait")); }
Result<void> epoll_add(int, int, uint32_t, uint64_t) { return Unexpected(no("way to wait")); }
Result<void> epoll_remove(int, int) { return Unexpected(no("way to wait")); }
Result<size_t> epoll_wait(int, std::span<epoll_event>, int) { return Unexpected(no("way to wait")); }

Result<Child> Child::spawn(const std::vector<std::string> &, const std::optional<User> &, int) {
    return Unexpected(no("processes"));
}
Child::Child(Child &&) noexcept = default;
Child &Child::operator=(Child &&) noexcept = default;
Child::~Child() = default;
Result<void> Child::start() { return Unexpected(no("processes")); }
Result<std::optional<Exit>> Child::poll() { return Unexpected(no("processes")); }
SignalFd::~SignalFd() = default;
Result<int> SignalFd::read() const { return 0; }

} // namespace sys

namespace trace {

// Of events that probes send.
std::string constant_name(std::string_view, std::string_view, uint64_t) { return {}; }
std::string_view system_call_name(int32_t, Arch) { return {}; }

} // namespace trace

namespace experiment {

// Probes are programs at places in a kernel: there are none, so the text has only its assembly.
Compiled compile(const Experiment &experiment, Unit assembly, const Surroundings &, Mistakes &mistakes) {
    if (!experiment.probes.empty()) mistakes.add(experiment.lines, {1, 1}, "a page has no kernel for probes");
    Compiled out;
    out.unit = std::move(assembly);
    out.unit.name = experiment.name;
    return out;
}
bool is_probe_function(std::string_view) { return false; }

} // namespace experiment
} // namespace rawbpf::inline v0
