// kprobes: one function, or as many as a pattern describes.
//
//      kprobe/vfs_read+0x10        the kprobe PMU, by name and offset
//      kretprobe/vfs_read          the same, at the return
//      ksyscall/openat             by the architecture's name: __x64_sys_openat, __arm64_sys_openat
//      kprobe.multi/vfs_*          BPF_LINK_CREATE with an array of addresses (5.18, CONFIG_FPROBE): milliseconds for thousands
//      kprobe/nf_nat:nf_nat_init   one module's; kprobe.multi/nf_nat:nf_nat_* too
//
// Several static functions may share a name. Until 6.5 the kernel took the first; since 6.6 it says EADDRNOTAVAIL (5.10.0-32:
// EINVAL), and we attach to each by address. Multi attachments take only what ftrace can be put on, and one place that can't
// spoils all of them: those that the kernel lists are taken, the rest is found by halving, and what is passed over is said. Where
// the kernel has no kprobe.multi, a kprobe for each function does the same, slower: the program can't tell.
#include <algorithm>
#include <cerrno>

#include "asm/machines.h"
#include "runtime/base/fail.h"
#include "runtime/base/numbers.h"
#include "runtime/link/attaching.h"
#include "runtime/link/bisect.h"
#include "runtime/link/event.h"
#include "runtime/link/kernel_functions.h"
#include "runtime/link/names.h"
#include "runtime/link/one_by_one.h"
#include "runtime/link/probe_event.h"
#include "runtime/symbols/text.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/facts.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/perf.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0 {
namespace {

constexpr uint32_t kMultiReturn = 1; // BPF_F_KPROBE_MULTI_RETURN
constexpr size_t kMostSingle = 512;  // kprobes one by one: each is an event, and some 10 ms to take away again

#if defined(__s390x__)
constexpr std::string_view kSyscallPrefix = "__s390x_";
#else
constexpr std::string_view kSyscallPrefix = kHost.wrapper;
#endif

struct FunctionAndOffset {
    std::string name;
    uint64_t offset = 0;
};

// "vfs_read", "vfs_read+16", "vfs_read+0x10".
Result<FunctionAndOffset> parse_function(const std::string &target) {
    size_t plus = target.find('+');
    FunctionAndOffset out{target.substr(0, plus), 0};
    if (out.name.empty()) return fail(Errc::invalid_argument, "\"{}\" names no function", target);
    if (plus == std::string::npos) return out;
    const std::optional<uint64_t> offset = whole_number_or_hex<uint64_t>(std::string_view(target).substr(plus + 1));
    if (!offset) return fail(Errc::invalid_argument, "\"{}\": the offset is not a number", target);
    out.offset = *offset;
    return out;
}

Error explain_kprobe(Error error, const ProbePlace &place) {
    switch (error.os) {
    case EINVAL: {
        std::string reason = why_no_kprobe(place.address, place.name);
        error.kind = Errc::unsupported;
        error.hint = !reason.empty() ? reason
                     : place.offset  ? "no instruction begins at that offset, or the offset is outside of the function"
                     : place.returns && kHostArch == Arch::riscv64
                         ? "riscv64's kernel takes no kretprobe at functions that ftrace can trace; fexit sees them"
                         : "the kernel forbids kprobes there, or something else (ftrace, a jump label) has changed its code";
        return error;
    }
    case EILSEQ: error.kind = Errc::invalid_argument, error.hint = "the offset is inside of an instruction"; return error;
    case EPERM:
    case EACCES:
        error.kind = Errc::permission;
        error.hint = sys::refusal_hint({sys::Capability::perfmon});
        return error;
    default:
        if (place.offset != 0 && error.os != 0) error.hint = "the offset may lie outside of the function";
        return error;
    }
}

// riscv64's functions begin with 8 or 16 bytes (since and before 6.10) that are ftrace's, and its kernel takes no kprobe there
// (no CONFIG_KPROBES_ON_FTRACE; kernel/kprobes.c, check_ftrace_location()). Behind them the function has done nothing yet. The
// return of a function is found from its first byte only, so for returns there is no other place.
Result<Fd> open_behind_ftrace(const ProbePlace &place, Error refused) {
    if (kHostArch != Arch::riscv64 || refused.os != EINVAL || place.returns || place.offset != 0)
        return Unexpected(std::move(refused));
    for (const uint64_t bytes : {8, 16}) {
        ProbePlace behind = place;
        (place.name.empty() ? behind.address : behind.offset) += bytes;
        if (Result<Fd> event = open_probe(behind)) return event;
    }
    return Unexpected(std::move(refused));
}

Result<void> add_kprobe(Link &link, const Attaching &a, const ProbePlace &place, uint64_t cookie) {
    Result<Fd> event = open_probe(place);
    if (!event) event = open_behind_ftrace(place, std::move(event).error());
    if (!event) return Unexpected(explain_kprobe(std::move(event).error(), place));
    Fd on = TRY(run_on_event(event->get(), a.program_fd(), cookie));
    TRY(sys::perf_event_enable(event->get()));
    link.add(std::move(on), std::move(*event), true);
    return {};
}

// Each function that has that name, but for those where no probe may stand.
Result<Link> by_address(const Attaching &a, ProbePlace place) {
    const std::string name = place.name;
    std::vector<KernelFunction> functions = TRY(find_kernel_functions(name));
    if (place.offset != 0 && functions.size() > 1)
        return Unexpected(make_error(Errc::invalid_argument, format("{}: {} functions have that name", name, functions.size()),
                                     "several functions have that name, so an offset from it is ambiguous"));
    place.name.clear();
    const uint64_t offset = std::exchange(place.offset, 0);
    Link link;
    std::vector<PassedOver> failed;
    for (size_t i = 0; i < functions.size(); ++i) {
        place.address = functions[i].address + offset;
        Result<void> done = add_kprobe(link, a, place, a.options.cookie);
        if (!done && done.error().kind == Errc::permission) return Unexpected(std::move(done).error());
        if (!done) failed.push_back({i, std::move(done).error()});
    }
    const size_t attached = functions.size() - failed.size();
    if (attached == 0) return Unexpected(in_context(std::move(failed.front().error), name));
    link.name(a.what(), attached);
    if (functions.size() > 1)
        link.note(format("{}: {} functions have that name; attached to {}, by address", a.what(), functions.size(),
                         failed.empty() ? "each" : format("{} of them", attached)));
    auto where = [&](size_t i) { return format("{:#x}", functions[i].address); };
    if (std::string text = describe_passed_over(failed, functions.size(), where); !text.empty()) link.note(std::move(text));
    return link;
}

Result<Link> attach_one(const Attaching &a, const ProbePlace &place) {
    // A name's module is understood by the kernel since 6.7 only, here always.
    if (split_module(place.name).given) return by_address(a, place);
    Link link;
    Result<void> done = add_kprobe(link, a, place, a.options.cookie);
    if (done) return link;
    Error error = std::move(done).error();
    if (error.os == EADDRNOTAVAIL) {
        if (place.offset == 0) return by_address(a, place);
        error.kind = Errc::invalid_argument;
        error.hint = "several functions have that name, so an offset from it is ambiguous";
    }
    if (error.os == ENOENT || (error.os == EINVAL && place.address == 0)) {
        // Whether it is there at all: kernels differ in what they say of a function that isn't.
        Result<std::vector<KernelFunction>> found = find_kernel_functions(place.name);
        if (!found && found.error().kind == Errc::not_found) error = std::move(found).error();
        // 5.10.0-32 of Debian 11 says EINVAL of a name that several functions have.
        if (found && found->size() > 1 && place.offset == 0 && error.os == EINVAL) return by_address(a, place);
    }
    return Unexpected(std::move(error));
}

// Pattern or list -> functions with addresses where they can be had.
Result<std::vector<KernelFunction>> wanted_functions(const Attaching &a, std::vector<std::string> &notes) {
    if (!a.options.functions.empty()) {
        std::vector<KernelFunction> out;
        for (size_t i = 0; i < a.options.functions.size(); ++i) {
            const std::string &name = a.options.functions[i];
            KernelFunction function{i < a.options.names.size() ? a.options.names[i] : name, {}, 0};
            symbols::TextCursor cursor(name);
            if (name.starts_with("0x")) (void)(cursor.skip('0') && cursor.skip('x') && cursor.hex(function.address));
            out.push_back(std::move(function));
        }
        return out;
    }
    MatchedFunctions matched = TRY(match_kernel_functions(a.target));
    if (matched.hidden > 0) notes.push_back(describe_hidden(matched));
    return std::move(matched.functions);
}

// The loader has loaded it as an ordinary probe then; a session it can't.
bool multi_is_missing(const Attaching &a) {
    if (a.kind.attachment != Attachment::kprobe_session) return a.program.expected_attach_type == 0;
    return probe_attach_type(uapi::BPF_TRACE_KPROBE_SESSION).support == Support::no;
}

Result<Link> one_by_one(const Attaching &a, const std::vector<KernelFunction> &functions) {
    if (a.kind.attachment == Attachment::kprobe_session)
        return Unexpected(make_error(Errc::unsupported, "this kernel has no kprobe sessions (6.10)",
                                     "use a kprobe and a kretprobe program that share a map"));
    if (functions.size() > kMostSingle)
        return fail(Errc::unsupported,
                    "{} functions: this kernel has no kprobe.multi (5.18, CONFIG_FPROBE), and without it rawbpf attaches to at "
                    "most {} functions",
                    functions.size(), kMostSingle);
    const Singles singles{functions.size(), [&](size_t i) { return functions[i].name; }, "kprobe.multi (5.18, CONFIG_FPROBE)",
                          "kprobes"};
    return attach_one_by_one(a, singles, [&](Link &link, size_t i, uint64_t cookie) {
        ProbePlace place;
        place.returns = a.kind.attachment == Attachment::kretprobe_multi;
        place.address = functions[i].address;
        if (place.address == 0) place.name = functions[i].name;
        return add_kprobe(link, a, place, cookie);
    });
}

} // namespace

Result<Link> attach_kprobe(const Attaching &a) {
    FunctionAndOffset function = TRY(parse_function(a.target));
    ProbePlace place;
    place.returns = a.kind.attachment == Attachment::kretprobe;
    place.name = std::move(function.name);
    place.offset = function.offset;
    if (place.returns && place.offset != 0)
        return fail(Errc::invalid_argument, "{}: a probe at a return takes no offset", a.what());
    return attach_one(a, place);
}

Result<Link> attach_ksyscall(const Attaching &a) {
    ProbePlace place;
    place.returns = a.kind.attachment == Attachment::kretsyscall;
    std::vector<std::string> names;
    if (!kSyscallPrefix.empty()) names.push_back(format("{}sys_{}", kSyscallPrefix, a.target));
    names.push_back(format("__se_sys_{}", a.target)); // without CONFIG_ARCH_HAS_SYSCALL_WRAPPER
    names.push_back(format("sys_{}", a.target));
    for (const std::string &name : names) {
        place.name = name;
        Result<Link> link = attach_one(a, place);
        if (link) {
            link->name(format("{} ({})", a.what(), name), link->places());
            return link;
        }
        if (link.error().kind != Errc::not_found) return link;
    }
    NearestNames near(a.target);
    const std::string prefix = format("{}sys_", kSyscallPrefix);
    TRY(each_kernel_symbol([&](const KernelSymbol &symbol) {
        if (symbol.is_function() && symbol.name.starts_with(prefix)) near.see(symbol.name.substr(prefix.size()));
        return true;
    }));
    return Unexpected(make_error(Errc::not_found,
                                 format("system call {}: not in this kernel (looked for {})", a.target, names[0]), near.hint()));
}

Result<Link> attach_kprobe_multi(const Attaching &a) {
    const AttachOptions &o = a.options;
    if (!o.cookies.empty() && o.cookies.size() != o.functions.size())
        return fail(Errc::invalid_argument, "{} cookies for {} functions", o.cookies.size(), o.functions.size());
    Link link;
    std::vector<std::string> notes;
    std::vector<KernelFunction> functions = TRY(wanted_functions(a, notes));
    if (multi_is_missing(a)) {
        link = TRY(one_by_one(a, functions));
        for (std::string &note : notes) link.note(std::move(note));
        return link;
    }
    const bool by_name = std::any_of(functions.begin(), functions.end(), [](const KernelFunction &f) { return f.address == 0; });

    auto attach = [&](const std::vector<size_t> &places) -> Result<Fd> {
        std::vector<unsigned long> where; // the kernel's own words
        std::vector<uint64_t> cookies;
        for (size_t i : places) {
            where.push_back(static_cast<unsigned long>(by_name ? sys::reg(functions[i].name.c_str()) : functions[i].address));
            if (!o.cookies.empty() || o.cookie != 0) cookies.push_back(o.cookies.empty() ? o.cookie : o.cookies[i]);
        }
        sys::LinkCreateAttr attr = link_attr(a);
        attr.kprobe_multi.cnt = static_cast<uint32_t>(places.size());
        attr.kprobe_multi.flags = a.kind.attachment == Attachment::kretprobe_multi ? kMultiReturn : 0;
        (by_name ? attr.kprobe_multi.syms : attr.kprobe_multi.addrs) = sys::reg(where.data());
        if (!cookies.empty()) attr.kprobe_multi.cookies = sys::reg(cookies.data());
        sys::Because why("run this program at every one of these functions: one link for all");
        return sys::link_create(attr);
    };
    // EINVAL and ENOENT: ftrace doesn't know the address; ESRCH: no such name; EBUSY: in use in another way (live patching).
    auto blames = [&](const Error &error) {
        return (o.functions.empty() || o.pass_over) &&
               (error.os == EINVAL || error.os == ENOENT || error.os == ESRCH || error.os == EBUSY);
    };
    Result<Bisected> done = attach_all_but_bad(functions.size(), attach, blames);
    if (!done) {
        Error error = std::move(done).error();
        if (!o.functions.empty() && !o.pass_over && error.os == ESRCH)
            for (const std::string &name : o.functions)
                if (Result<std::vector<KernelFunction>> found = find_kernel_functions(name); !found)
                    return Unexpected(std::move(found).error());
        if (error.os == EINVAL || error.os == ENOENT)
            error.hint = "one of the functions can't be traced: notrace, or not a function's start";
        return Unexpected(in_context(std::move(error), format("{} functions", functions.size())));
    }
    link.add(std::move(done->link));
    link.name(a.what(), done->attached.size());
    for (std::string &note : notes) link.note(std::move(note));
    if (std::string text = describe_passed_over(done->failed, functions.size(), [&](size_t i) { return functions[i].name; });
        !text.empty())
        link.note(std::move(text));
    return link;
}

} // namespace rawbpf::inline v0
