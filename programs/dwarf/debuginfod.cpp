// debuginfod: debug files by build-id over HTTP. Nobody is asked unless DEBUGINFOD_URLS says whom, as with gdb and perf.
//
// The library is loaded when it is needed, and not linked: it brings curl along, and with it TLS, Kerberos and LDAP.
//
// A profile must not hang on a server that doesn't answer. libdebuginfod waits for 90 seconds, for each file. Here a server has
// five seconds to say something, and five more each time that it did; after a failure that isn't "no such file" nobody is asked
// again in this run, and a sentence at the end says so. DEBUGINFOD_TIMEOUT changes the five; DEBUGINFOD_MAXTIME and
// DEBUGINFOD_MAXSIZE hold too. libdebuginfod calls back about once a second and at each piece of data.
#include "programs/dwarf/debuginfod.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <dlfcn.h>
#include <elfutils/debuginfod.h>

#include "runtime/base/format.h"
#include "runtime/sys/clock.h"

namespace rawbpf::inline v0::dwarf {
namespace {

constexpr const char *kLibrary = "libdebuginfod.so.1";
constexpr uint64_t kPatienceNs = 5'000'000'000;
constexpr long kSomeBytes = 64; // the library counts its waits there until it counts bytes

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

struct Wait {
    uint64_t since_ns = 0, patience_ns = 0;
    long last = 0;
    bool given_up = false;
};

int progress(debuginfod_client *client, long so_far, long) {
    auto *wait = static_cast<Wait *>(functions.get_user_data(client));
    const uint64_t now = sys::monotonic_ns();
    if (so_far > wait->last + kSomeBytes) wait->since_ns = now;
    wait->last = so_far;
    wait->given_up = now - wait->since_ns > wait->patience_ns;
    return wait->given_up ? 1 : 0;
}

std::string_view variable(const char *name) {
    const char *value = std::getenv(name);
    return value ? value : "";
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
    Wait wait;
    wait.since_ns = sys::monotonic_ns();
    const uint64_t seconds = std::strtoull(std::string(variable("DEBUGINFOD_TIMEOUT")).c_str(), nullptr, 10);
    wait.patience_ns = seconds > 0 && seconds < 3600 ? seconds * 1'000'000'000 : kPatienceNs;
    functions.set_user_data(client, &wait);
    functions.set_progress(client, progress);
    // A length of 0 says that it is text.
    const int fd = functions.find(client, reinterpret_cast<const unsigned char *>(build_id.c_str()), 0, nullptr);
    functions.set_user_data(client, nullptr);
    answered_[build_id] = fd >= 0;
    if (fd >= 0) return Fd(fd);
    if (fd == -ENOENT && !wait.given_up) return std::nullopt; // it says ENOENT, too, where progress() ended it
    problem_ = wait.given_up ? format("debuginfod: no news from {} for {} s: not asked again", variable("DEBUGINFOD_URLS"),
                                      wait.patience_ns / 1'000'000'000)
                             : format("debuginfod: {} ({}): not asked again", std::strerror(-fd), variable("DEBUGINFOD_URLS"));
    return std::nullopt;
}

} // namespace rawbpf::inline v0::dwarf
