// /proc/kallsyms: every function of the kernel, its modules and its BPF programs, one line each (kernel/kallsyms.c, s_show):
//
//     ffffffff8106d2b0 T do_syscall_64
//     ffffffffc0201000 t nf_hook	[nf_tables]
//     address          type name [TAB [module]]
//
// It is 5 to 10 MB of text that the kernel makes up line by line from compressed tables; keeping it would cost more memory than
// the whole profiler may use. So the question is turned round: not "read the table, then look up", but "here are the addresses,
// sorted: let the table stream past, and let each symbol find the one address it could matter to".
//
//     asked:    a0        a1             a2
//     symbols:    s0 s1      s2  s3  s4     s5
//     slots:    [0]  [1]             [2]           best_[i] = the last symbol in (a(i-1), a(i)]
//
// Each symbol touches one slot, the first asked address at or above it; at the end an empty slot takes its left neighbour's
// symbol. That is right whatever the order of the lines (vmlinux is sorted; modules and BPF programs are not), and
// costs a comparison a line.
//
// Three things that kallsyms doesn't say:
// - sizes. A function ends where the next symbol begins; a data symbol in between ends it too, so data symbols take part and an
//   address they win stays nameless. And kMaxOffset keeps the last symbol of a module from naming all that lies behind it.
// - which of several names at an address is meant. Section markers (_stext, __entry_text_start) yield to functions, local names
//   to global ones; then the first stays, which is the one the kernel itself prints in an oops.
// - addresses, if kptr_restrict or missing privileges forbid: then all are 0, which is an error, not "no names".
#include "runtime/symbols/kallsyms.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <fcntl.h>

#include "runtime/base/fail.h"
#include "runtime/symbols/demangle.h"
#include "runtime/symbols/text.h"
#include "runtime/sys/facts.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/kernel_file.h"

namespace rawbpf::inline v0::symbols {
namespace {

constexpr const char *kPath = "/proc/kallsyms";
constexpr uint64_t kMaxOffset = 1 << 20; // no function of the kernel comes near it
constexpr size_t kMaxLine = 4096;        // KSYM_NAME_LEN is 512; a longer line is nobody's

bool is_text(char type) { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }

bool begins_section(std::string_view name) {
    return name == "_text" || name == "_stext" || name == "_sinittext" || name.ends_with("_text_start") ||
           name.ends_with("_text_begin");
}
bool ends_section(std::string_view name) { return name == "_etext" || name == "_einittext" || name.ends_with("_text_end"); }

// Among symbols at one address the highest wins, then the first. 0: ends the function before it but gives no name.
int rank(char type, std::string_view name) {
    name = name.substr(0, name.find('\t'));
    if (!is_text(type) || ends_section(name)) return 0;
    if (begins_section(name)) return 1;
    return type == 'T' || type == 'W' ? 3 : 2;
}

// arm64's mapping symbols and the assembler's local labels, which some module loaders let through.
bool is_noise(std::string_view name) { return name[0] == '$' || (name[0] == '.' && name.size() > 1 && name[1] == 'L'); }

} // namespace

KernelNamer::KernelNamer(std::vector<uint64_t> addresses) : addresses_(std::move(addresses)) {
    std::sort(addresses_.begin(), addresses_.end());
    addresses_.erase(std::unique(addresses_.begin(), addresses_.end()), addresses_.end());
    best_.resize(addresses_.size());
}

void KernelNamer::keep_pending() {
    if (!pending_) return;
    pending_ = false;
    Candidate &best = best_[pending_slot_];
    best.address = pending_address_;
    best.rank = rank(pending_type_, pending_name_);
    std::string_view name = pending_name_;
    size_t tab = name.find('\t');
    best.module.clear();
    if (tab != std::string_view::npos) {
        std::string_view module = name.substr(tab + 1);
        name = name.substr(0, tab);
        if (module.starts_with('[')) module.remove_prefix(1);
        if (module.ends_with(']')) module.remove_suffix(1);
        best.module = module;
    }
    best.name = name;
}

void KernelNamer::line(std::string_view text) {
    // Written out rather than with TextCursor: this loop runs 10^5 times a second of somebody's patience.
    uint64_t address = 0;
    size_t n = 0;
    for (int digit; n < text.size() && n < 16 && (digit = hex_digit(text[n])) >= 0; ++n)
        address = address << 4 | static_cast<unsigned>(digit);
    if (n == 0 || text.size() < n + 4 || text[n] != ' ' || text[n + 2] != ' ') return;
    ++symbols_;
    if (address == 0) return;
    seen_address_ = true;
    size_t count = addresses_.size();
    if (slot_ > count || (slot_ < count && addresses_[slot_] < address) || (slot_ > 0 && addresses_[slot_ - 1] >= address))
        slot_ = std::lower_bound(addresses_.begin(), addresses_.end(), address) - addresses_.begin();
    if (slot_ == count) return;

    std::string_view name = text.substr(n + 3);
    if (is_noise(name)) return;
    bool same_slot = pending_ && pending_slot_ == slot_;
    const Candidate &best = best_[slot_];
    if (same_slot ? address < pending_address_ : best.rank >= 0 && address < best.address) return;
    // Ranks matter only between symbols of one address, which are few.
    if (same_slot && address == pending_address_ && rank(pending_type_, pending_name_) >= rank(text[n + 1], name)) return;
    if (!same_slot && address == best.address && best.rank >= rank(text[n + 1], name)) return;
    if (!same_slot) keep_pending();
    pending_ = true;
    pending_slot_ = slot_;
    pending_address_ = address;
    pending_type_ = text[n + 1];
    pending_name_ = name;
}

void KernelNamer::feed(std::string_view piece) {
    if (!cut_.empty()) {
        size_t end = piece.find('\n');
        if (cut_.size() + std::min(end, piece.size()) <= kMaxLine) cut_ += piece.substr(0, end);
        if (end == std::string_view::npos) return;
        line(cut_);
        keep_pending();
        cut_.clear();
        piece.remove_prefix(end + 1);
    }
    size_t last = piece.rfind('\n');
    std::string_view whole = last == std::string_view::npos ? std::string_view() : piece.substr(0, last + 1);
    std::string_view tail = piece.substr(whole.size());
    while (!whole.empty()) line(take_line(whole));
    keep_pending();
    cut_ = tail.substr(0, kMaxLine);
}

std::vector<KernelName> KernelNamer::finish() {
    if (!cut_.empty()) {
        line(cut_);
        keep_pending();
        cut_.clear();
    }
    std::vector<KernelName> names(addresses_.size());
    const Candidate *nearest = nullptr;
    for (size_t i = 0; i < addresses_.size(); ++i) {
        if (best_[i].rank >= 0) nearest = &best_[i];
        names[i].address = addresses_[i];
        if (!nearest || nearest->rank < 1 || addresses_[i] - nearest->address >= kMaxOffset) continue;
        names[i].symbol = demangle(nearest->name);
        names[i].offset = addresses_[i] - nearest->address;
        names[i].module = nearest->module.empty() ? "vmlinux" : nearest->module;
    }
    return names;
}

Result<std::vector<KernelName>> name_kernel_addresses(std::vector<uint64_t> addresses) {
    KernelNamer namer(std::move(addresses));
    sys::Because why("read the kernel's symbols to name its frames");
    Result<Fd> fd = sys::open(kPath, O_RDONLY);
    if (!fd) {
        Error error = std::move(fd).error();
        if (error.kind == Errc::not_found) {
            error.kind = Errc::unsupported;
            error.hint = sys::absent_hint(kPath, "this kernel was built without CONFIG_KALLSYMS");
        }
        return Unexpected(std::move(error));
    }
    // However large the buffer, the kernel's seq_file hands out about a page at a time.
    constexpr size_t kBuffer = 64 << 10;
    auto buffer = std::make_unique_for_overwrite<char[]>(kBuffer);
    for (bool any = false;; any = true) {
        size_t n = TRY_IN(sys::read(fd->get(), buffer.get(), kBuffer), "{}", kPath);
        if (n == 0 && !any) return fail(Errc::bad_input, "{} is empty, so rawbpf can't name kernel functions", kPath);
        if (n == 0) break;
        namer.feed({buffer.get(), n});
    }
    if (namer.hidden())
        return Unexpected(make_error(Errc::permission, format("{}: the kernel hides its addresses (all are 0)", kPath),
                                     sys::hidden_addresses_hint(sys::facts())));
    return namer.finish();
}

} // namespace rawbpf::inline v0::symbols
