// debuginfod: debug files by build-id over HTTP. Nobody is asked unless DEBUGINFOD_URLS says whom, as with gdb and perf.
//
// The library is loaded when it is needed, and not linked: it brings curl along, and with it TLS, Kerberos and LDAP.
//
// A profile must not hang on a server, whatever that does. libdebuginfod waits for 90 seconds, for each file, and as long as
// bytes come. Here a request has one deadline, which only moves for data at a rate that is worth waiting for:
//
//      5 s   + 1 s for each 64 KB, of a file whose size the server said           at most 300 s
//      '---- all requests that brought nothing: 30 s together
//
// What is longer, or larger than a debug file is, ends it: nobody is asked again in this run, and a sentence at the end says so.
// Ctrl-C leaves all of them one second. libdebuginfod calls back at each piece of data, and about once a second.
#include "programs/dwarf/debuginfod.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include <dlfcn.h>
#include <elfutils/debuginfod.h>

#include "runtime/base/format.h"
#include "runtime/sys/clock.h"

namespace rawbpf::inline v0::dwarf {
namespace {

constexpr const char *kLibrary = "libdebuginfod.so.1";
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kPatience = 5, kLongest = 300, kInVain = 30; // s
constexpr uint64_t kAfterSignalNs = kSecond;
constexpr uint64_t kSlowest = 64 << 10;                                   // bytes a second
constexpr uint64_t kMostBytes = uint64_t{2} << 30, kMostUnsaid = 8 << 20; // of a file; of one whose size wasn't said

struct Functions {
    decltype(&debuginfod_begin) begin = nullptr;
    decltype(&debuginfod_find_debuginfo) find = nullptr;
    decltype(&debuginfod_set_progressfn) set_progress = nullptr;
    decltype(&debuginfod_set_user_data) set_user_data = nullptr;
    decltype(&debuginfod_get_user_data) get_user_data = nullptr;
    decltype(&debuginfod_end) end = nullptr;
};
Functions functions; // of the library, which is loaded once

template <class Function> bool load_function(void *library, const char *name, Function &into) {
    into = reinterpret_cast<Function>(dlsym(library, name));
    return into != nullptr;
}

// A request under way, and why it was given up.
struct Wait {
    uint64_t began_ns = 0, patience_ns = 0, longest_ns = 0, most_bytes = 0;
    uint64_t bytes = 0, said = 0; ///< received, and to be received
    const volatile std::sig_atomic_t *signals = nullptr;
    uint64_t *last_end_ns = nullptr;
    std::string given_up;
};

// Ends the request when it returns 1. Until the library counts bytes `so_far` are its waits, and `size` is 0; so it is, too, as
// long as the server hasn't said it.
int progress(debuginfod_client *client, long so_far, long size) {
    Wait &wait = *static_cast<Wait *>(functions.get_user_data(client));
    const uint64_t now = sys::monotonic_ns(), took = now - wait.began_ns;
    const uint64_t came = so_far > 0 ? static_cast<uint64_t>(so_far) : 0;
    if (size > 0) { // the most that was ever so: the library begins again where a transfer broke
        wait.bytes = std::max(wait.bytes, came);
        wait.said = std::max(wait.said, static_cast<uint64_t>(size));
    }
    const uint64_t bytes = wait.bytes, said = wait.said;
    if (wait.signals && *wait.signals > 0) {
        if (*wait.last_end_ns == 0) *wait.last_end_ns = now + kAfterSignalNs;
        if (*wait.signals > 1 || now > *wait.last_end_ns) wait.given_up = "the run was to end before it answered";
    }
    const uint64_t allowed = std::min(wait.patience_ns + bytes / kSlowest * kSecond, wait.longest_ns);
    if (took > allowed)
        wait.given_up = said ? format("{} of {} bytes came in {} s", bytes, said, took / kSecond)
                             : format("no file came in {} s", took / kSecond);
    if (std::max(bytes, said) > wait.most_bytes) wait.given_up = format("a file of more than {} bytes", wait.most_bytes);
    if (!said && came > kMostUnsaid) wait.given_up = format("more than {} bytes of a file whose size wasn't said", kMostUnsaid);
    return wait.given_up.empty() ? 0 : 1;
}

std::string_view variable(const char *name) {
    const char *value = std::getenv(name);
    return value ? value : "";
}

// A variable's number; `otherwise` where it has none from 1 to `most`.
uint64_t number(const char *name, uint64_t otherwise, uint64_t most) {
    const std::string_view text = variable(name);
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value > 0 && value <= most ? value : otherwise;
}

} // namespace

Debuginfod::Debuginfod() : wanted_(variable("DEBUGINFOD_URLS").find_first_not_of(' ') != std::string_view::npos) {}

Debuginfod::~Debuginfod() {
    if (client_) functions.end(static_cast<debuginfod_client *>(client_));
}

bool Debuginfod::start() {
    if (started_) return client_ != nullptr;
    started_ = true;
    void *library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *error = dlerror();
        problem_ = format("debuginfod: {} can't be loaded: {}", kLibrary, error ? error : "unknown error");
        return false;
    }
    if (!load_function(library, "debuginfod_begin", functions.begin) ||
        !load_function(library, "debuginfod_find_debuginfo", functions.find) ||
        !load_function(library, "debuginfod_set_progressfn", functions.set_progress) ||
        !load_function(library, "debuginfod_set_user_data", functions.set_user_data) ||
        !load_function(library, "debuginfod_get_user_data", functions.get_user_data) ||
        !load_function(library, "debuginfod_end", functions.end)) {
        problem_ = format("debuginfod: {} is too old", kLibrary);
        return false;
    }
    client_ = functions.begin();
    if (!client_) problem_ = "debuginfod: its library can't start";
    return client_ != nullptr;
}

std::optional<Fd> Debuginfod::fetch(const std::string &build_id) {
    if (!wanted_ || build_id.empty() || !problem_.empty() || !start()) return std::nullopt;
    if (const auto asked = answered_.find(build_id); asked != answered_.end() && !asked->second) return std::nullopt;
    auto *client = static_cast<debuginfod_client *>(client_);
    const bool past_the_end = signals_ && (*signals_ > 1 || (last_end_ns_ != 0 && sys::monotonic_ns() > last_end_ns_));
    if (past_the_end) {
        problem_ = format("debuginfod: the run was to end before all files were asked for ({})", variable("DEBUGINFOD_URLS"));
        return std::nullopt;
    }
    Wait wait;
    wait.began_ns = sys::monotonic_ns();
    wait.patience_ns = number("DEBUGINFOD_TIMEOUT", kPatience, 3600) * kSecond;
    wait.longest_ns = std::max(number("DEBUGINFOD_MAXTIME", kLongest, 86400) * kSecond, wait.patience_ns);
    wait.most_bytes = number("DEBUGINFOD_MAXSIZE", kMostBytes, INT64_MAX);
    wait.signals = signals_;
    wait.last_end_ns = &last_end_ns_;
    functions.set_user_data(client, &wait);
    functions.set_progress(client, progress);
    // A length of 0 says that it is text.
    const int fd = functions.find(client, reinterpret_cast<const unsigned char *>(build_id.c_str()), 0, nullptr);
    functions.set_user_data(client, nullptr);
    answered_[build_id] = fd >= 0;
    if (fd >= 0) return Fd(fd);
    in_vain_ns_ += sys::monotonic_ns() - wait.began_ns;
    if (wait.given_up.empty() && in_vain_ns_ > kInVain * kSecond)
        wait.given_up = format("no file came in {} s of requests", kInVain);
    if (fd == -ENOENT && wait.given_up.empty()) return std::nullopt; // it says ENOENT, too, where progress() ended it
    if (wait.given_up.empty()) wait.given_up = format("{} says \"{}\"", kLibrary, std::strerror(-fd));
    problem_ = format("debuginfod: {} ({}): not asked again", wait.given_up, variable("DEBUGINFOD_URLS"));
    return std::nullopt;
}

} // namespace rawbpf::inline v0::dwarf
