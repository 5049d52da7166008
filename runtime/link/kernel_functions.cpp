// Which functions the kernel has, and which of them may be traced.
//
//      /proc/kallsyms                                    ffffffff81000000 T _stext      every symbol; static ones share names
//      tracefs/available_filter_functions                vfs_read [module]              those that ftrace (so kprobe.multi) takes
//      tracefs/available_filter_functions_addrs          ffffffff813a2b10 vfs_read      the same with addresses (6.5)
//      debugfs/kprobes/blacklist                         0x...-0x...   name             those where no kprobe may stand
//
// All of them are text of up to 10 MB, read in pieces and never kept.
#include "runtime/link/kernel_functions.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>

#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/link/names.h"
#include "runtime/link/tracefs.h"
#include "runtime/symbols/text.h"
#include "runtime/sys/facts.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0 {
namespace {

using symbols::TextCursor;

constexpr size_t kShownHidden = 8;

// Each line of a file that may be long; `see` returns false to stop.
template <class See> Result<void> each_line(const std::string &path, See see) {
    Fd fd = TRY(sys::open(path, O_RDONLY));
    std::string buffer(64 << 10, '\0');
    size_t kept = 0;
    for (;;) {
        size_t n = TRY_IN(sys::read(fd.get(), buffer.data() + kept, buffer.size() - kept), "{}", path);
        if (n == 0) break;
        std::string_view text(buffer.data(), kept + n);
        for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
            if (!see(text.substr(0, end))) return {};
        kept = text.size();
        if (kept == buffer.size()) return fail(Errc::bad_input, "{}: a line of more than {} bytes", path, kept);
        std::copy(text.begin(), text.end(), buffer.begin());
    }
    if (kept != 0) (void)see(std::string_view(buffer.data(), kept));
    return {};
}

// "name", "name [module]", with an address in front.
struct FilterLine {
    uint64_t address = 0;
    std::string_view name, module;
};
bool parse_filter_line(std::string_view line, bool addresses, FilterLine &out) {
    TextCursor cursor(line);
    if (addresses) {
        if (!cursor.hex(out.address) || !cursor.skip(' ')) return false;
    }
    std::string_view rest = cursor.rest();
    size_t end = rest.find_first_of(" \t");
    out.name = rest.substr(0, end);
    size_t open = rest.find('['), close = rest.find(']');
    if (open != std::string_view::npos && close != std::string_view::npos && close > open)
        out.module = rest.substr(open + 1, close - open - 1);
    return !out.name.empty();
}

// The part of a pattern that candidates for "did you mean" should resemble.
std::string without_stars(std::string_view pattern) {
    std::string out;
    for (char c : pattern)
        if (c != '*' && c != '?') out += c;
    return out;
}

// What is looked for, and what was seen on the way.
struct Wanted {
    ModuleAndName target;
    NearestNames near;
    bool module_seen = false;

    explicit Wanted(std::string_view text) : target(split_module(text)), near(without_stars(target.name)) {}
    bool of_module(std::string_view module) {
        const bool fits = !target.given || module == target.module;
        module_seen |= fits;
        return fits;
    }
    Error nothing() const {
        const auto &[module, name, given] = target;
        if (!module_seen)
            return make_error(Errc::not_found, format("{}:{}: no module {} is loaded", module, name, module),
                              "load it; if it is built into the kernel, leave out \"MODULE:\"");
        const std::string of = module.empty() ? std::string() : format("of module {} ", module);
        return make_error(Errc::not_found,
                          is_pattern(name) ? format("no kernel function {}matches \"{}\"", of, name)
                          : of.empty()     ? format("kernel function {}: not in this kernel", name)
                                           : format("kernel function {}: not in module {}", name, module),
                          near.hint());
    }
};

} // namespace

Result<void> each_kernel_symbol(const std::function<bool(const KernelSymbol &)> &see) {
    sys::Because why("the kernel's symbols, in pieces");
    bool any = false;
    Result<void> read = each_line("/proc/kallsyms", [&](std::string_view line) {
        any = true;
        // "ffffffff81000000 T _stext", with "\t[module]" at the end for modules
        TextCursor cursor(line);
        KernelSymbol symbol;
        std::string_view type;
        if (!cursor.hex(symbol.address) || !cursor.skip(' ') || !cursor.take(1, type) || !cursor.skip(' ')) return true;
        symbol.type = type[0];
        symbol.name = cursor.rest();
        if (size_t tab = symbol.name.find('\t'); tab != std::string_view::npos) {
            std::string_view module = symbol.name.substr(tab + 1);
            symbol.name = symbol.name.substr(0, tab);
            if (module.size() > 2 && module.front() == '[') symbol.module = module.substr(1, module.find(']') - 1);
        }
        return see(symbol);
    });
    constexpr std::string_view kWithout = "tracepoints, system calls and user functions are found without it";
    if (!read) {
        Error error = std::move(read).error();
        if (error.os == ENOENT && error.hint.empty()) {
            error.kind = Errc::unsupported;
            error.hint = format("this kernel doesn't list its functions (CONFIG_KALLSYMS): {}", kWithout);
        }
        return Unexpected(std::move(error));
    }
    if (!any)
        return Unexpected(make_error(Errc::unsupported,
                                     "/proc/kallsyms is empty, so rawbpf can't see which symbols the kernel has",
                                     std::string(kWithout)));
    return {};
}

Result<std::vector<KernelFunction>> find_kernel_functions(const std::string &name) {
    std::vector<KernelFunction> out;
    Wanted wanted(name);
    bool any = false, seen_address = false;
    TRY(each_kernel_symbol([&](const KernelSymbol &symbol) {
        any = true;
        seen_address |= symbol.address != 0;
        if (!symbol.is_function() || !wanted.of_module(symbol.module)) return true;
        if (symbol.name == wanted.target.name)
            out.push_back({std::string(symbol.name), std::string(symbol.module), symbol.address});
        else
            wanted.near.see(symbol.name);
        return true;
    }));
    if (out.empty()) return Unexpected(wanted.nothing());
    if (any && !seen_address)
        return Unexpected(make_error(Errc::permission, format("kernel function {}: its address is hidden", name),
                                     sys::hidden_addresses_hint(sys::facts())));
    return out;
}

Result<MatchedFunctions> match_kernel_functions(const std::string &pattern) {
    MatchedFunctions out;
    Wanted wanted(pattern);
    const std::string_view described = wanted.target.name;
    std::vector<std::string> filterable; // sorted; without addresses
    bool by_filter = false, addresses = false;
    if (Result<std::string> root = tracefs()) {
        sys::Because why("the functions that ftrace can trace");
        for (const char *name : {"available_filter_functions_addrs", "available_filter_functions"}) {
            const bool with = name[std::string_view(name).size() - 1] == 's' && std::string_view(name).ends_with("_addrs");
            Result<void> read = each_line(format("{}/{}", *root, name), [&](std::string_view line) {
                FilterLine one;
                if (!parse_filter_line(line, with, one)) return true;
                if (wanted.of_module(one.module) && matches_pattern(described, one.name)) {
                    if (with)
                        out.functions.push_back({std::string(one.name), std::string(one.module), one.address});
                    else
                        filterable.emplace_back(one.name);
                }
                return true;
            });
            if (!read) continue;
            by_filter = true;
            addresses = with && !out.functions.empty() && out.functions.front().address != 0;
            break;
        }
    }
    if (by_filter && !addresses) {
        for (const KernelFunction &f : out.functions) filterable.push_back(f.name);
        out.functions.clear();
    }
    stable_sort(filterable);
    stable_sort(out.functions, [](const KernelFunction &a, const KernelFunction &b) { return a.address < b.address; });

    TRY(each_kernel_symbol([&](const KernelSymbol &symbol) {
        if (!symbol.is_function() || !wanted.of_module(symbol.module)) return true;
        if (!matches_pattern(described, symbol.name)) {
            wanted.near.see(symbol.name);
            return true;
        }
        bool traceable = !by_filter;
        if (addresses && symbol.address == 0) { // hidden by kptr_restrict, which ftrace's file doesn't follow: by name, then
            if (filterable.empty()) {
                for (const KernelFunction &f : out.functions) filterable.push_back(f.name);
                stable_sort(filterable);
            }
            traceable = std::binary_search(filterable.begin(), filterable.end(), symbol.name);
        } else if (addresses) {
            auto at = std::lower_bound(out.functions.begin(), out.functions.end(), symbol.address,
                                       [](const KernelFunction &f, uint64_t address) { return f.address < address; });
            // ftrace's own place may lie some bytes behind the symbol: an endbr64, padding for the trampoline on arm64.
            traceable = at != out.functions.end() && at->address - symbol.address <= 16 && at->name == symbol.name;
            // The function's own address is what cookies and bpf_get_func_ip() go by. It isn't larger, so the order stays.
            if (traceable) at->address = symbol.address;
        } else if (by_filter) {
            traceable = std::binary_search(filterable.begin(), filterable.end(), symbol.name);
        }
        if (!traceable) {
            ++out.hidden;
            if (out.hidden_names.size() < kShownHidden) out.hidden_names.emplace_back(symbol.name);
        } else if (!addresses) {
            out.functions.push_back({std::string(symbol.name), std::string(symbol.module), symbol.address});
        }
        return true;
    }));
    if (out.functions.empty()) {
        if (out.hidden == 0) return Unexpected(wanted.nothing());
        return Unexpected(make_error(Errc::not_found,
                                     format("none of the {} functions that match \"{}\" can be traced", out.hidden, pattern),
                                     "they are marked notrace, or ftrace is off in this kernel"));
    }
    stable_sort(out.functions, [](const KernelFunction &a, const KernelFunction &b) { return a.address < b.address; });
    return out;
}

std::string describe_hidden(const MatchedFunctions &matched) {
    if (matched.hidden == 0) return {};
    std::string note =
        format("skipped {} of {} functions, which ftrace can't trace (notrace, or outside of its section): ", matched.hidden,
               matched.hidden + matched.functions.size());
    for (size_t i = 0; i < matched.hidden_names.size(); ++i) append(note, "{}{}", i ? ", " : "", matched.hidden_names[i]);
    if (matched.hidden > matched.hidden_names.size()) note += " ...";
    return note;
}

std::string why_no_kprobe(uint64_t address, const std::string &name) {
    std::string reason;
    std::string path = "/sys/kernel/debug/kprobes/blacklist";
    Fd own;
    if (!sys::exists(path)) {
        Result<Fd> mount = sys::mount_detached("debugfs");
        if (!mount) return reason;
        own = std::move(*mount);
        path = format("/proc/self/fd/{}/kprobes/blacklist", own.get());
    }
    (void)each_line(path, [&](std::string_view line) { // "0xffffffff81001000-0xffffffff81001020\tasm_exc_page_fault"
        TextCursor cursor(line);
        uint64_t from = 0, to = 0;
        if (!cursor.skip('0') || !cursor.skip('x') || !cursor.hex(from) || !cursor.skip('-') || !cursor.skip('0') ||
            !cursor.skip('x') || !cursor.hex(to))
            return true;
        bool named = cursor.rest().size() > 1 && cursor.rest().substr(1) == name;
        if (named || (address != 0 && address >= from && address < to))
            reason = "the kernel forbids kprobes there: it is on its list of functions that run while a "
                     "probe is handled (NOKPROBE, noinstr)";
        return reason.empty();
    });
    if (!reason.empty()) return reason;
    // Functions compiled without ftrace's call (the tracers' own) are refused unless CONFIG_KPROBE_EVENTS_ON_NOTRACE.
    Result<std::string> root = tracefs();
    if (!root || name.empty()) return reason;
    bool traceable = false;
    Result<void> read = each_line(*root + "/available_filter_functions", [&](std::string_view line) {
        FilterLine one;
        traceable = parse_filter_line(line, false, one) && one.name == name;
        return !traceable;
    });
    if (read && !traceable) reason = "it is marked notrace: ftrace can't trace it, and the kernel also refuses kprobes there";
    return reason;
}

} // namespace rawbpf::inline v0
