// perf-PID.map: how a JIT tells profilers what it has compiled (linux: tools/perf/Documentation/jit-interface.txt):
//
//     7f2a1c0041c0 2e0 LazyCompile:*fib /app/a.js:3
//     start        size name (the rest of the line, spaces and all), the numbers in hex
//
// The runtime appends a line whenever it compiles and never takes one back, so where memory is used again the last line wins.
//
// The file lies in /tmp, where anybody may put a file of that name: another user could name frames in a profile that root
// looks at, or put a FIFO or a link to a secret there. So it is opened without following a link in its last part, must be a
// regular file, and must belong to the process's own user, to root or to us (perf asks the same).
#include "runtime/symbols/perf_map.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>

#include "runtime/base/fail.h"
#include "runtime/symbols/long_names.h"
#include "runtime/symbols/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::symbols {
namespace {

constexpr size_t kMaxFile = 256 << 20, kMostMemory = 48 << 20;

} // namespace

// The pid that the process knows itself by: the innermost of its pid namespaces, the last number of "NSpid:" (Linux 4.1).
int pid_inside(int pid) {
    Result<std::string> status = sys::read_file(format("/proc/{}/status", pid));
    if (!status) return pid;
    std::string_view text = *status;
    while (!text.empty()) {
        std::string_view line = take_line(text);
        if (!line.starts_with("NSpid:")) continue;
        TextCursor last(line.substr(line.find_last_of("\t ") + 1));
        uint64_t value = 0;
        if (last.decimal(value) && value <= INT32_MAX) return static_cast<int>(value);
    }
    return pid;
}

Result<Fd> PerfMap::open(int pid, const std::string &root, std::optional<uint32_t> owner) {
    std::string base = format("/proc/{}", pid);
    Result<struct stat> process = sys::stat_file(base);
    std::string from = process ? base + "/root" : root.empty() ? "/" : root;
    std::string path = format("/tmp/perf-{}.map", process ? pid_inside(pid) : pid);
    if (process && !owner) owner = process->st_uid;

    sys::Because why("read the names of just-in-time compiled functions");
    Result<Fd> opened = sys::open_under(from, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    // One that has ended and that nobody has waited for yet has no root any more.
    if (!opened && process)
        if (auto gone = sys::stat_file(base + "/root"); !gone && gone.error().os == ENOENT)
            opened = sys::open_under(root.empty() ? "/" : root, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    Fd fd = TRY(std::move(opened));
    struct stat st = TRY_IN(sys::stat_fd(fd.get()), "{}", path);
    if (!S_ISREG(st.st_mode)) return fail(Errc::bad_input, "{}: not a regular file", path);
    if (st.st_uid != 0 && st.st_uid != sys::effective_uid() && st.st_uid != owner)
        return Unexpected(make_error(Errc::permission,
                                     format("{}: the file belongs to user {}, not to the user of the process", path, st.st_uid)));
    return fd;
}

Result<PerfMap> PerfMap::load(int pid, const std::string &root, std::optional<uint32_t> owner) {
    return read(TRY(open(pid, root, owner)));
}

Result<PerfMap> PerfMap::read(const Fd &file) {
    PerfMap map;
    (void)TRY(map.read_more(file, 0));
    map.add(map.rest_, 0); // a last line without its end
    map.code_.settle();
    return map;
}

// The runtime may be writing on, and the file is whoever's: it is read piece by piece, only what is kept takes memory, and the
// end of a line that is longer than any name is passed over.
Result<bool> PerfMap::read_more(const Fd &file, uint64_t since_ns) {
    constexpr size_t kPiece = 256 << 10, kLongestLine = kLongestName + 64; // two numbers in front of the name
    const struct stat st = TRY_IN(sys::stat_fd(file.get()), "reading a perf map");
    const bool anew = static_cast<uint64_t>(st.st_size) < offset_;
    if (anew) read_again();
    const uint64_t before = offset_;
    if (static_cast<uint64_t>(st.st_size) == offset_) return anew;
    while (true) {
        const size_t kept = rest_.size();
        rest_.resize(kept + kPiece);
        auto n = sys::pread(file.get(), rest_.data() + kept, kPiece, offset_);
        rest_.resize(kept + n.value_or(0));
        if (!n) return Unexpected(in_context(std::move(n).error(), "reading a perf map"));
        if (*n == 0) break;
        offset_ += *n;
        if (offset_ > kMaxFile) return fail(Errc::bad_input, "a perf map has more than {} bytes", kMaxFile);
        std::string_view rest = rest_;
        for (size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1))
            if (!std::exchange(passing_over_, false)) add(rest.substr(0, end), since_ns);
        if (memory() > kMostMemory) return fail(Errc::bad_input, "the names of a perf map take more than {} bytes", kMostMemory);
        if (rest.size() > kLongestLine) {
            if (!std::exchange(passing_over_, true)) add(rest, since_ns);
            rest = {};
        }
        rest_.erase(0, rest_.size() - rest.size());
    }
    rest_.shrink_to_fit();
    code_.settle();
    return anew || offset_ != before;
}

PerfMap PerfMap::parse(std::string_view text) {
    PerfMap map;
    while (!text.empty()) map.add(take_line(text), 0);
    map.code_.settle();
    return map;
}

void PerfMap::add(std::string_view line, uint64_t since_ns) {
    TextCursor at(line);
    uint64_t start = 0, size = 0;
    auto prefix = [&] { (void)(at.rest().starts_with("0x") && at.skip('0') && at.skip('x')); }; // some runtimes write it
    prefix();
    if (!at.hex(start) || !at.skip(' ')) return;
    prefix();
    if (!at.hex(size) || !at.skip(' ')) return;
    code_.add(start, size, at.rest(), since_ns);
}

std::optional<Name> PerfMap::find(uint64_t address) const {
    auto found = code_.find(address, code_.last_layer(address));
    return found ? std::optional(std::move(found->name)) : std::nullopt;
}

} // namespace rawbpf::inline v0::symbols
