// Read as it grows. A record counts once it is whole, but for a load's code, which nobody needs: its head and name are enough.
//
// What writers do that the specification doesn't say:
//   * V8 adds 64 (the size of an ELF header) to the address of each line, since `perf inject` puts an ELF header in front.
//   * V8 (node 20) writes the file's name from memory that it has freed: its first eight bytes are a pointer, with zeros in it,
//     so the end of a name can't be told by its NUL. Then all entries of a function have the same length, which is found out from
//     that of the record; and the file is that of the function's name.
//   * V8 gives the outer function's file for functions that were inlined, too, whose lines are of other files then. So of
//     optimised functions ("JS:*fib") only the line where they begin is believed.
#include "runtime/symbols/jit_dump.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/symbols/long_names.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::symbols {
namespace {

constexpr uint32_t kMagic = 0x4a695444, kSwapped = 0x4454694a; // "JiTD"
constexpr size_t kHeaderBytes = 40, kRecordBytes = 16, kLoadBytes = 56, kMoveBytes = 64, kLinesBytes = 32, kEntryBytes = 16;
constexpr uint64_t kProcessorsClock = 1; // of the header's flags
constexpr uint64_t kElfHeader = 64;      // see above
constexpr size_t kMostMemory = 48 << 20;
constexpr size_t kMostLines = 1 << 16; // of a function
constexpr size_t kUnwindingBytes = 40;
constexpr size_t kMostOfOne = 16 << 10, kMostUnwinding = 16 << 20, kKeeping = 128; // bytes, of a function, of all, beside each

enum Type : uint32_t { kLoad = 0, kMove = 1, kLines = 2, kClose = 3, kUnwinding = 4 };

uint32_t word(Bytes bytes, size_t at) { return load<uint32_t>(bytes.data() + at); }
uint64_t wide(Bytes bytes, size_t at) { return load<uint64_t>(bytes.data() + at); }

/// The text at `at` up to its NUL; nullopt: there is none.
std::optional<std::string_view> text_at(Bytes bytes, size_t at) {
    const std::string_view rest(reinterpret_cast<const char *>(bytes.data()) + at, bytes.size() - at);
    const size_t end = rest.find('\0');
    return end == std::string_view::npos ? std::nullopt : std::optional(rest.substr(0, end));
}

bool is_text(std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20; });
}

} // namespace

bool is_jit_dump_name(std::string_view path) {
    path.remove_prefix(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1);
    if (path.ends_with(" (deleted)")) path.remove_suffix(10);
    if (!path.starts_with("jit-") || !path.ends_with(".dump") || path.size() <= 9) return false;
    path = path.substr(4, path.size() - 9);
    return std::all_of(path.begin(), path.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Result<bool> JitDump::read_more(const Fd &file, uint64_t since_ns) {
    if (ended_) return false;
    const struct stat st = TRY_IN(sys::stat_fd(file.get()), "reading a jitdump");
    if (static_cast<uint64_t>(st.st_size) <= offset_) return false; // as mostly, when it is asked at each batch of samples
    std::string piece;
    const uint64_t first = offset_;
    while (!ended_) {
        piece.resize(kPiece);
        const size_t n = TRY_IN(sys::pread(file.get(), piece.data(), kPiece, offset_), "reading a jitdump");
        const uint64_t before = offset_;
        auto taken = take(bytes_of(std::string_view(piece).substr(0, n)), since_ns);
        if (!taken) {
            ended_ = true;
            code_.settle();
            return Unexpected(std::move(taken).error());
        }
        if (offset_ == before) break;
    }
    code_.settle();
    return offset_ != first;
}

Result<void> JitDump::header(Bytes bytes) {
    const uint32_t magic = word(bytes, 0);
    if (magic == kSwapped) return fail(Errc::bad_input, "a jitdump of a machine with the other byte order");
    if (magic != kMagic) return fail(Errc::bad_input, "no jitdump: it begins with {:08x}, not with {:08x}", magic, kMagic);
    const uint32_t size = word(bytes, 8);
    if (size < kHeaderBytes) return fail(Errc::bad_input, "a jitdump whose header has {} bytes", size);
    own_clock_ = (wide(bytes, 32) & kProcessorsClock) != 0;
    begun_ = true;
    offset_ += size;
    return {};
}

Result<void> JitDump::take(Bytes bytes, uint64_t since_ns) {
    const uint64_t from = offset_;
    const auto rest = [&] { return offset_ - from < bytes.size() ? bytes.subspan(offset_ - from) : Bytes(); };
    if (!begun_) {
        if (bytes.size() < kHeaderBytes) return {};
        TRY(header(bytes));
    }
    while (!ended_) {
        const Bytes left = rest();
        if (left.size() < kRecordBytes) return {};
        const uint32_t type = word(left, 0), size = word(left, 4);
        const uint64_t at_ns = own_clock_ ? since_ns : wide(left, 8);
        if (size < kRecordBytes)
            return fail(Errc::bad_input, "a jitdump is damaged at byte {}: a record of {} bytes", offset_, size);
        const Bytes record = left.first(std::min<size_t>(size, left.size()));
        if (record.size() < size) { // a load's name suffices; lines that are longer than a piece are passed over
            const bool named = type == kLoad && record.size() > kLoadBytes &&
                               (text_at(record, kLoadBytes) || record.size() > kLoadBytes + kLongestName);
            if (!named && left.size() < kPiece) return {};
            if (!named && offset_ != from) return {}; // the next piece begins with it
        }
        switch (type) {
        case kLoad: load_function(record, at_ns); break;
        case kMove: move_function(record, at_ns); break;
        case kLines: take_lines(record.size() == size ? record : Bytes()); break;
        case kUnwinding: take_unwinding(record.size() == size ? record : Bytes()); break;
        case kClose: ended_ = true; break;
        default: break; // what later versions have
        }
        offset_ += size;
        if (code_.memory() > kMostMemory)
            return fail(Errc::bad_input, "the names of a jitdump take more than {} bytes", kMostMemory);
    }
    return {};
}

void JitDump::load_function(Bytes record, uint64_t since_ns) {
    if (record.size() <= kLoadBytes) return;
    const uint64_t address = wide(record, 32), size = wide(record, 40);
    const auto whole = text_at(record, kLoadBytes);
    const Bytes rest = record.subspan(kLoadBytes, std::min(record.size() - kLoadBytes, kLongestName + 1));
    const std::string_view name = whole ? *whole : std::string_view(reinterpret_cast<const char *>(rest.data()), rest.size());
    code_.add(address, size, name, since_ns, lines_of(address, size, name));
    sources_.clear();
    unwind_by(address, size, std::exchange(next_unwinding_, {}));
}

void JitDump::move_function(Bytes record, uint64_t since_ns) {
    if (record.size() < kMoveBytes) return;
    code_.settle(); // its load may have come just now
    const uint64_t from = wide(record, 32), to = wide(record, 40), size = wide(record, 48);
    const auto name = code_.raw_name_at(from);
    if (name) code_.add(to, size, std::string(*name), since_ns);
    const auto its = unwinding_.find(from);
    unwind_by(to, size, its == unwinding_.end() ? std::string() : its->second.eh_frame);
}

void JitDump::take_unwinding(Bytes record) {
    next_unwinding_.clear();
    if (record.size() < kUnwindingBytes) return;
    const uint64_t both = wide(record, 16), header = wide(record, 24);
    if (both > record.size() - kUnwindingBytes || header > both || both - header > kMostOfOne) return;
    next_unwinding_.assign(reinterpret_cast<const char *>(record.data()) + kUnwindingBytes, both - header);
}

/// What was made there before is gone, whatever is known of what is there now.
void JitDump::unwind_by(uint64_t address, uint64_t size, std::string eh_frame) {
    const uint64_t end = address + size;
    if (size == 0 || end < address) return;
    auto at = unwinding_.upper_bound(address);
    if (at != unwinding_.begin() && std::prev(at)->first + std::prev(at)->second.size > address) --at;
    while (at != unwinding_.end() && at->first < end) {
        unwinding_bytes_ -= at->second.eh_frame.size() + kKeeping;
        at = unwinding_.erase(at);
    }
    if (eh_frame.empty() || unwinding_bytes_ + eh_frame.size() + kKeeping > kMostUnwinding) return;
    unwinding_bytes_ += eh_frame.size() + kKeeping;
    unwinding_.emplace(address, Made{size, std::move(eh_frame)});
}

std::optional<JitDump::Unwinding> JitDump::unwinding(uint64_t address) const {
    constexpr uint64_t kWord = 8;
    auto at = unwinding_.upper_bound(address);
    if (at == unwinding_.begin()) return std::nullopt;
    const auto &[start, made] = *--at;
    if (address - start >= made.size) return std::nullopt;
    return Unwinding{bytes_of(made.eh_frame), start + (made.size + kWord - 1) / kWord * kWord};
}

bool JitDump::has_unwinding(uint64_t start, uint64_t end) const {
    const auto at = unwinding_.lower_bound(start);
    return at != unwinding_.end() && at->first < end;
}

void JitDump::take_lines(Bytes record) {
    sources_.clear();
    if (record.size() < kLinesBytes) return;
    lines_at_ = wide(record, 16);
    const uint64_t count = wide(record, 24);
    if (count > kMostLines || count * (kEntryBytes + 1) > record.size() - kLinesBytes) return;
    // By the NULs; where that goes wrong, by the one length that fits.
    const auto near = [&](uint64_t address) { return address - lines_at_ <= UINT32_MAX; };
    std::string file;
    size_t at = kLinesBytes;
    for (uint64_t i = 0; i < count; ++i) {
        if (record.size() - at < kEntryBytes + 1 || !near(wide(record, at))) break;
        const auto name = text_at(record, at + kEntryBytes);
        if (!name || !is_text(*name)) break;
        if (*name != "\xff") file = *name; // that of the entry before
        sources_.push_back({wide(record, at), word(record, at + 8), file});
        at += kEntryBytes + name->size() + 1;
    }
    if (sources_.size() == count) return;
    sources_.clear();
    const size_t most = (record.size() - kLinesBytes) / count;
    for (size_t length = most; length > kEntryBytes && length + 8 > most && sources_.empty(); --length) {
        for (uint64_t i = 0; i < count; ++i) {
            const size_t entry = kLinesBytes + i * length;
            const uint64_t address = wide(record, entry);
            if (!near(address) || (i > 0 && address < sources_.back().address)) {
                sources_.clear();
                break;
            }
            sources_.push_back({address, word(record, entry + 8), {}});
        }
    }
}

/// The lines that came before this function, as offsets in it.
std::vector<CompiledCode::Line> JitDump::lines_of(uint64_t address, uint64_t size, std::string_view name) {
    std::vector<CompiledCode::Line> out;
    if (sources_.empty() || lines_at_ != address || name.starts_with("JS:*") || name.starts_with("LazyCompile:*")) return out;
    stable_sort(sources_, [](const Source &a, const Source &b) { return a.address < b.address; });
    const bool v8 = read_compiled_name(name).line != 0;
    const uint64_t back = v8 && sources_[0].address >= address + kElfHeader ? kElfHeader : 0;
    for (const Source &source : sources_) {
        const uint64_t offset = source.address - back - address;
        if (source.address - back < address || offset >= size) continue;
        out.push_back({static_cast<uint32_t>(offset), source.line, code_.name_file(source.file)});
    }
    return out;
}

} // namespace rawbpf::inline v0::symbols
