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
// What is longer, or larger than was said, ends it: nobody is asked again in this run, and a sentence at the end says so. A file
// that is said to be larger than most debug files are isn't fetched, and the next one is asked for. Ctrl-C leaves all of them one
// second. libdebuginfod calls back at each piece of data; while none comes, older ones do so once a second and newer ones (0.196)
// don't. So a thread keeps the time, too, and where a request is to end, it shuts the library's connections down. The library
// writes into a file of another name and takes that away when it fails, but not when the process ends: so the process doesn't,
// before.
#include "programs/dwarf/debuginfod.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "runtime/base/format.h"
#include "runtime/base/numbers.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::dwarf {
namespace {

constexpr const char *kLibrary = "libdebuginfod.so.1";
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kPatience = 5, kLongest = 300, kInVain = 30; // s
constexpr int kMostDescriptors = 1024;                          // curl's are among the first that are free
constexpr uint64_t kAfterSignalNs = kSecond;
constexpr uint64_t kSlowest = 64 << 10;                                     // bytes a second
constexpr uint64_t kMostBytes = uint64_t{256} << 20, kMostUnsaid = 8 << 20; // of a file; of one whose size wasn't said
constexpr uint64_t kMostInAll = uint64_t{1} << 30;                          // of all files of a run

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
    uint64_t before_bytes = 0, left_in_all = 0; ///< of all files: had before, and still to be had
    uint64_t bytes = 0, said = 0;               ///< received, and to be received
    uint64_t unsaid_bytes = 0;                  ///< received, as long as nobody has said how many there will be
    const volatile std::sig_atomic_t *signals = nullptr;
    uint64_t *last_end_ns = nullptr;
    bool too_large = false; ///< as its size was said to be
    std::string given_up;
    std::mutex lock; ///< of all of these
};

// While it lives, a signal that would end the process is kept; then it ends it.
class Held {
  public:
    Held() {
        struct sigaction keep {};
        keep.sa_handler = [](int signal) { kept = signal; };
        for (int signal = 1; signal <= 64; ++signal) {
            struct sigaction before {};
            if ((sys::kEndingSignals >> (signal - 1) & 1) == 0 || sigaction(signal, nullptr, &before) != 0) continue;
            if (before.sa_handler == SIG_DFL && sigaction(signal, &keep, nullptr) == 0) mine_.push_back(signal);
        }
    }
    ~Held() {
        for (const int signal : mine_) std::signal(signal, SIG_DFL);
        if (kept != 0) std::raise(kept);
    }
    Held(const Held &) = delete;
    Held &operator=(const Held &) = delete;
    static inline volatile std::sig_atomic_t kept = 0;

  private:
    std::vector<int> mine_;
};

// Whether the request is to end, and why.
bool is_over(Wait &wait) {
    const uint64_t now = sys::monotonic_ns(), took = now - wait.began_ns;
    const uint64_t bytes = wait.bytes, said = wait.said;
    if (Held::kept != 0) wait.given_up = "the run was ended";
    if (wait.signals && *wait.signals > 0) {
        if (*wait.last_end_ns == 0) *wait.last_end_ns = now + kAfterSignalNs;
        if (*wait.signals > 1 || now > *wait.last_end_ns) wait.given_up = "the run was to end before it answered";
    }
    const uint64_t allowed = std::min(wait.patience_ns + bytes / kSlowest * kSecond, wait.longest_ns);
    if (took > allowed)
        wait.given_up = said ? format("{} of {} bytes came in {} s", bytes, said, took / kSecond)
                             : format("no file came in {} s", took / kSecond);
    if (said > std::min(wait.most_bytes, wait.left_in_all)) wait.too_large = true;
    if (bytes > wait.most_bytes) wait.given_up = format("a file of more than {} bytes", wait.most_bytes);
    if (bytes > wait.left_in_all) wait.given_up = format("more than {} bytes in one run", wait.left_in_all + wait.before_bytes);
    if (!said && wait.unsaid_bytes > kMostUnsaid)
        wait.given_up = format("more than {} bytes of a file whose size wasn't said", kMostUnsaid);
    return !wait.given_up.empty() || wait.too_large;
}

// Ends the request when it returns 1. Until the library counts bytes `so_far` are its waits, and `size` is 0; so it is, too, as
// long as the server hasn't said it.
int progress(debuginfod_client *client, long so_far, long size) {
    Wait &wait = *static_cast<Wait *>(functions.get_user_data(client));
    const std::lock_guard guard(wait.lock);
    const uint64_t came = so_far > 0 ? static_cast<uint64_t>(so_far) : 0;
    wait.unsaid_bytes = size > 0 ? 0 : came;
    if (size > 0) { // the most that was ever so: the library begins again where a transfer broke
        wait.bytes = std::max(wait.bytes, came);
        wait.said = std::max(wait.said, static_cast<uint64_t>(size));
    }
    return is_over(wait) ? 1 : 0;
}

// Descriptors of this process's sockets over IP that don't listen, each with its inode.
std::vector<std::pair<int, uint64_t>> connections() {
    const auto option = [](int fd, int name) {
        int value = -1;
        socklen_t size = sizeof value;
        return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
    };
    std::vector<std::pair<int, uint64_t>> out;
    for (int fd = 3; fd < kMostDescriptors; ++fd) {
        const int family = option(fd, SO_DOMAIN);
        struct stat st {};
        if ((family == AF_INET || family == AF_INET6) && option(fd, SO_ACCEPTCONN) == 0 && fstat(fd, &st) == 0)
            out.emplace_back(fd, st.st_ino);
    }
    return out;
}

// Keeps the time of one request, while the library waits for a server that says nothing.
class Watch {
  public:
    /// `its`: inodes of connections that the library has kept; those that it makes from now on are added.
    Watch(Wait &wait, std::set<uint64_t> &its) : wait_(wait), its_(its) {
        for (const auto &[fd, inode] : connections()) others_.insert(inode);
        for (const uint64_t inode : its) others_.erase(inode);
        thread_ = std::thread([this] { keep_time(); });
    }
    ~Watch() {
        {
            const std::lock_guard guard(wait_.lock);
            done_ = true;
        }
        wake_.notify_one();
        thread_.join();
        for (const auto &[fd, inode] : connections())
            if (!others_.contains(inode)) its_.insert(inode);
    }
    Watch(const Watch &) = delete;
    Watch &operator=(const Watch &) = delete;

  private:
    void keep_time() {
        std::unique_lock guard(wait_.lock);
        while (!wake_.wait_for(guard, std::chrono::milliseconds(100), [this] { return done_; })) {
            if (!is_over(wait_)) continue;
            for (const auto &[fd, inode] : connections())
                if (!others_.contains(inode)) shutdown(fd, SHUT_RDWR);
        }
    }

    Wait &wait_;
    std::set<uint64_t> &its_, others_;
    std::condition_variable wake_;
    bool done_ = false;
    std::thread thread_;
};

std::string_view variable(const char *name);

// The library takes a request that progress() ended for a server's "there is none", and keeps that for ten minutes as an empty
// file.
void forget_answer(const std::string &build_id) {
    std::vector<std::string> caches; // debuginfod_find_debuginfo(3), in its order
    if (const std::string_view path = variable("DEBUGINFOD_CACHE_PATH"); !path.empty()) {
        caches.emplace_back(path);
    } else {
        const std::string_view home = variable("HOME"), cache = variable("XDG_CACHE_HOME");
        caches.push_back(format("{}/.debuginfod_client_cache", home));
        caches.push_back(cache.empty() ? format("{}/.cache/debuginfod_client", home) : format("{}/debuginfod_client", cache));
    }
    for (const std::string &cache : caches) {
        const std::string folder = format("{}/{}", cache, build_id), file = folder + "/debuginfo";
        const Result<struct stat> found = sys::stat_file(file);
        if (!found || !S_ISREG(found->st_mode) || found->st_size != 0) continue;
        (void)sys::remove_file(file);
        (void)sys::remove_directory(folder); // if there is nothing else in it
    }
}

std::string_view variable(const char *name) {
    const char *value = std::getenv(name);
    return value ? value : "";
}

// A variable's number; `otherwise` where it has none from 1 to `most`.
uint64_t number(const char *name, uint64_t otherwise, uint64_t most) {
    const std::string_view text = variable(name);
    uint64_t value = 0;
    return parse_whole(text, value) && value > 0 && value <= most ? value : otherwise;
}

} // namespace

struct Debuginfod::Requests {
    Requests() = default;
    Requests(const Requests &) = delete;
    Requests &operator=(const Requests &) = delete;
    ~Requests() {
        if (client) functions.end(client);
    }
    /// Loads the library. False, and what the problem is.
    bool start(std::string &problem);

    debuginfod_client *client = nullptr;
    uint64_t in_vain_ns = 0;                        ///< of requests that brought nothing
    uint64_t all_bytes = 0;                         ///< that came from servers
    size_t too_large = 0;                           ///< files
    uint64_t largest = 0;                           ///< of these, in bytes; 0: its size isn't known
    uint64_t last_end_ns = 0;                       ///< since the first signal: when the last request ends; 0: there was none
    std::set<uint64_t> connections;                 ///< by inode: what the library has kept open
    std::unordered_map<std::string, bool> answered; // build-ids asked for, and whether there was a file
};

Debuginfod::Debuginfod() : wanted_(variable("DEBUGINFOD_URLS").find_first_not_of(' ') != std::string_view::npos) {}

Debuginfod::~Debuginfod() = default;

bool Debuginfod::Requests::start(std::string &problem) {
    void *library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *error = dlerror();
        problem = format("debuginfod: {} can't be loaded: {}", kLibrary, error ? error : "unknown error");
        return false;
    }
    if (!load_function(library, "debuginfod_begin", functions.begin) ||
        !load_function(library, "debuginfod_find_debuginfo", functions.find) ||
        !load_function(library, "debuginfod_set_progressfn", functions.set_progress) ||
        !load_function(library, "debuginfod_set_user_data", functions.set_user_data) ||
        !load_function(library, "debuginfod_get_user_data", functions.get_user_data) ||
        !load_function(library, "debuginfod_end", functions.end)) {
        problem = format("debuginfod: {} is too old", kLibrary);
        return false;
    }
    client = functions.begin();
    if (!client) problem = "debuginfod: its library can't start";
    return client != nullptr;
}

std::optional<Fd> Debuginfod::fetch(const std::string &build_id) {
    if (!wanted_ || build_id.empty() || !problem_.empty()) return std::nullopt;
    if (!requests_) {
        requests_ = std::make_unique<Requests>();
        if (!requests_->start(problem_)) return std::nullopt;
    }
    Requests &all = *requests_;
    if (const auto asked = all.answered.find(build_id); asked != all.answered.end() && !asked->second) return std::nullopt;
    debuginfod_client *client = all.client;
    const bool past_the_end = signals_ && (*signals_ > 1 || (all.last_end_ns != 0 && sys::monotonic_ns() > all.last_end_ns));
    if (past_the_end) {
        problem_ = format("debuginfod: the run was to end before all files were asked for ({})", variable("DEBUGINFOD_URLS"));
        return std::nullopt;
    }
    Wait wait;
    wait.began_ns = sys::monotonic_ns();
    wait.patience_ns = number("DEBUGINFOD_TIMEOUT", kPatience, 3600) * kSecond;
    wait.longest_ns = std::max(number("DEBUGINFOD_MAXTIME", kLongest, 86400) * kSecond, wait.patience_ns);
    wait.most_bytes = number("DEBUGINFOD_MAXSIZE", kMostBytes, INT64_MAX);
    wait.before_bytes = all.all_bytes;
    wait.left_in_all = std::max(kMostInAll, wait.most_bytes) - std::min(all.all_bytes, std::max(kMostInAll, wait.most_bytes));
    wait.signals = signals_;
    wait.last_end_ns = &all.last_end_ns;
    functions.set_user_data(client, &wait);
    functions.set_progress(client, progress);
    int fd = -1;
    {
        Held held;
        {
            Watch watch(wait, all.connections);
            // A length of 0 says that it is text.
            fd = functions.find(client, reinterpret_cast<const unsigned char *>(build_id.c_str()), 0, nullptr);
        }
        if (fd < 0 && (wait.too_large || !wait.given_up.empty())) forget_answer(build_id);
    }
    functions.set_user_data(client, nullptr);
    all.all_bytes += wait.bytes;
    all.answered[build_id] = fd >= 0;
    if (fd >= 0) return Fd(fd);
    all.in_vain_ns += sys::monotonic_ns() - wait.began_ns;
    if (wait.given_up.empty() && all.in_vain_ns > kInVain * kSecond)
        wait.given_up = format("no file came in {} s of requests", kInVain);
    if (wait.given_up.empty() && (wait.too_large || fd == -EFBIG)) { // where DEBUGINFOD_MAXSIZE is set, the library looks itself
        ++all.too_large;
        all.largest = std::max(all.largest, wait.said);
        return std::nullopt;
    }
    if (fd == -ENOENT && wait.given_up.empty()) return std::nullopt; // it says ENOENT, too, where progress() ended it
    if (wait.given_up.empty()) wait.given_up = format("{} says \"{}\"", kLibrary, std::strerror(-fd));
    problem_ = format("debuginfod: {} ({}): not asked again", wait.given_up, variable("DEBUGINFOD_URLS"));
    return std::nullopt;
}

std::string Debuginfod::left_out() const {
    if (!requests_ || requests_->too_large == 0) return {};
    const uint64_t most = number("DEBUGINFOD_MAXSIZE", kMostBytes, INT64_MAX);
    return format("debuginfod: {} file{} of more than {} bytes{} not fetched: DEBUGINFOD_MAXSIZE=BYTES sets another bound",
                  requests_->too_large, requests_->too_large == 1 ? "" : "s", most,
                  requests_->largest ? format(" (as much as {})", requests_->largest) : std::string());
}

} // namespace rawbpf::inline v0::dwarf
