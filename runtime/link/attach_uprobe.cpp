// uprobes: a function of a program or library, or as many as a pattern describes.
//
//      uprobe//usr/bin/bash:readline        the uprobe PMU: file and offset
//      uprobe/libc:malloc+0x4               a library by its name; an offset into the function
//      uprobe/./prog:0x1136                 an offset in the file, where there are no symbols
//      uretprobe/libc:malloc                at the return
//      uprobe.multi/libc:pthread_*          BPF_LINK_CREATE with an array of offsets (6.6): one link, 20 ms for 10,000 places
//
// A return probe replaces the return address on the stack. Go moves its stacks and checks them, so a return probe crashes a Go
// program: it is refused. Patterns skip code without a return address of its own (_start, the cold halves of functions).
//
// One bad place makes the whole multi attachment fail: 524 (ENOTSUPP) is an instruction that can't be single-stepped (LOCK
// prefixes, some nops). Bisection finds it. On a kernel without uprobe.multi, a uprobe for each place does the same; removing
// each takes 100 ms.
#include <algorithm>
#include <cerrno>
#include <optional>

#include "runtime/base/fail.h"
#include "runtime/base/numbers.h"
#include "runtime/link/attaching.h"
#include "runtime/link/bisect.h"
#include "runtime/link/event.h"
#include "runtime/link/instruction_set.h"
#include "runtime/link/names.h"
#include "runtime/link/one_by_one.h"
#include "runtime/link/probe_event.h"
#include "runtime/link/user_functions.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/facts.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/perf.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0 {
namespace {

constexpr uint32_t kMultiReturn = 1; // BPF_F_UPROBE_MULTI_RETURN
constexpr int kNotSupported = 524;   // ENOTSUPP
constexpr size_t kMostSingle = 256;

struct UserTarget {
    std::string binary, function; ///< function: a name or a pattern; empty: `offset` counts from the file's start
    uint64_t offset = 0;
};

Result<UserTarget> parse_target(const std::string &target) {
    size_t colon = target.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == target.size())
        return Unexpected(make_error(Errc::invalid_argument, format("\"{}\" is not of the form FILE:FUNCTION", target),
                                     "for example /usr/bin/bash:readline, libc:malloc+0x4, ./prog:0x1136"));
    UserTarget out{target.substr(0, colon), target.substr(colon + 1), 0};
    if (std::optional<uint64_t> offset = whole_number_or_hex<uint64_t>(out.function)) {
        out.offset = *offset;
        out.function.clear();
        return out;
    }
    if (size_t plus = out.function.rfind('+'); plus != std::string::npos && plus > 0) {
        std::optional<uint64_t> offset = whole_number_or_hex<uint64_t>(std::string_view(out.function).substr(plus + 1));
        if (!offset) return fail(Errc::invalid_argument, "\"{}\": the offset is not a number", target);
        out.offset = *offset;
        out.function.resize(plus);
    }
    return out;
}

Error explain_uprobe(Error error, const std::string &path, uint64_t offset) {
    switch (error.os) {
    case kNotSupported:
        error.kind = Errc::unsupported;
        error.context = format("{} at {:#x}: the kernel can't step over the instruction there", path, offset);
        error.os = 0;
        break;
    case EINVAL: error.hint = "the offset is outside of the file, or a semaphore can't be at the given place"; break;
    case EILSEQ: error.hint = "a debugger has a breakpoint there, or the offset is inside of an instruction"; break;
    case EPERM:
    case EACCES:
        error.kind = Errc::permission;
        error.hint = sys::refusal_hint({sys::Capability::perfmon});
        break;
    default: break;
    }
    return error;
}

Result<void> refuse_go_returns(const UserFunctions &file, bool returns) {
    if (!returns || !file.is_go()) return {};
    return Unexpected(make_error(
        Errc::unsupported, format("{} is a Go program, whose functions must not have probes at their returns", file.path()),
        "Go moves stacks, so such a probe would crash the program; `rawbpf trace -r` probes the return instructions instead"));
}

Result<void> add_uprobe(Link &link, const Attaching &a, const ProbePlace &place, uint64_t cookie) {
    Result<Fd> event = open_probe(place);
    if (!event) return Unexpected(explain_uprobe(std::move(event).error(), place.name, place.offset));
    Fd on = TRY(run_on_event(event->get(), a.program_fd(), cookie));
    TRY(sys::perf_event_enable(event->get()));
    link.add(std::move(on), std::move(*event));
    return {};
}

struct Places {
    std::string path;
    std::vector<UserFunction> functions;
    std::vector<std::string> notes;
};

Result<Places> wanted_places(const Attaching &a, bool returns) {
    UserTarget target;
    if (a.options.functions.empty() || a.target.find(':') != std::string::npos) {
        target = TRY(parse_target(a.target));
    } else {
        target.binary = a.target; // with a list of functions the target is the file alone
    }
    Places out;
    out.path = TRY(find_binary(target.binary, a.options.pid));
    UserFunctions file = TRY(UserFunctions::open(out.path));
    TRY(refuse_go_returns(file, returns));
    for (size_t i = 0; i < a.options.functions.size(); ++i) {
        const std::string &name = a.options.functions[i];
        if (std::optional<uint64_t> offset = whole_number_or_hex<uint64_t>(name))
            out.functions.push_back({i < a.options.names.size() ? a.options.names[i] : name, *offset, 0});
        else
            out.functions.push_back(TRY(file.find(name)));
    }
    if (!out.functions.empty()) return out;
    if (target.function.empty()) {
        out.functions.push_back({format("{:#x}", target.offset), target.offset, 0});
        return out;
    }
    if (!is_pattern(target.function)) {
        out.functions.push_back(TRY(file.find(target.function)));
        out.functions.back().offset += target.offset;
        return out;
    }
    if (target.offset != 0) return fail(Errc::invalid_argument, "\"{}\": a pattern takes no offset", a.target);
    out.functions = TRY(file.match(target.function));
    if (returns) {
        std::string passed;
        size_t before = out.functions.size();
        std::erase_if(out.functions, [&](const UserFunction &f) {
            if (!returns_to_nobody(f.symbol)) return false;
            append(passed, "{}{}", passed.empty() ? "" : ", ", f.name);
            return true;
        });
        if (!passed.empty())
            out.notes.push_back(format("skipped {} of {} functions, which have no return address of their own: {}",
                                       before - out.functions.size(), before, passed));
        if (out.functions.empty())
            return fail(Errc::not_found, "{}: none of the functions can have a probe at its return", out.path);
    }
    return out;
}

Result<Link> one_by_one(const Attaching &a, const Places &places, bool returns) {
    if (a.kind.attachment == Attachment::uprobe_session)
        return Unexpected(make_error(Errc::unsupported, "this kernel has no uprobe sessions (6.13)",
                                     "use a uprobe and a uretprobe program that share a map"));
    if (places.functions.size() > kMostSingle)
        return fail(Errc::unsupported,
                    "{} places: this kernel has no uprobe.multi (6.6), and without it rawbpf attaches to at most {} places",
                    places.functions.size(), kMostSingle);
    const Singles singles{places.functions.size(), [&](size_t i) { return places.functions[i].name; }, "uprobe.multi (6.6)",
                          "uprobes"};
    return attach_one_by_one(a, singles, [&](Link &link, size_t i, uint64_t cookie) {
        ProbePlace place;
        place.user = true;
        place.returns = returns;
        place.name = places.path;
        place.offset = places.functions[i].offset;
        place.semaphore = a.options.semaphores.empty() ? a.options.semaphore : a.options.semaphores[i];
        place.pid = a.options.pid;
        return add_uprobe(link, a, place, cookie);
    });
}

} // namespace

Result<Link> attach_uprobe(const Attaching &a) {
    UserTarget target = TRY(parse_target(a.target));
    ProbePlace place;
    place.user = true;
    place.returns = a.kind.attachment == Attachment::uretprobe;
    place.pid = a.options.pid;
    place.semaphore = a.options.semaphore;
    place.name = TRY(find_binary(target.binary, a.options.pid));
    place.offset = target.offset;
    if (place.returns && !target.function.empty() && target.offset != 0)
        return fail(Errc::invalid_argument, "{}: a probe at a return takes no offset", a.what());
    if (!target.function.empty() || place.returns) {
        UserFunctions file = TRY(UserFunctions::open(place.name));
        TRY(refuse_go_returns(file, place.returns));
        if (!target.function.empty()) place.offset += TRY(file.find(target.function)).offset;
    }
    Link link;
    TRY(add_uprobe(link, a, place, a.options.cookie));
    return link;
}

Result<Link> attach_uprobe_multi(const Attaching &a) {
    const AttachOptions &o = a.options;
    const bool returns = a.kind.attachment == Attachment::uretprobe_multi || a.kind.attachment == Attachment::uprobe_session;
    if (!o.cookies.empty() && o.cookies.size() != o.functions.size())
        return fail(Errc::invalid_argument, "{} cookies for {} functions", o.cookies.size(), o.functions.size());
    Places places = TRY(wanted_places(a, returns));

    const bool missing = a.kind.attachment == Attachment::uprobe_session
                             ? probe_attach_type(uapi::BPF_TRACE_UPROBE_SESSION).support == Support::no
                             : a.program.expected_attach_type == 0; // the loader has loaded it as an ordinary probe then
    if (missing) {
        Link link = TRY(one_by_one(a, places, returns));
        for (std::string &note : places.notes) link.note(std::move(note));
        return link;
    }

    auto attach = [&](const std::vector<size_t> &chosen) -> Result<Fd> {
        std::vector<unsigned long> offsets, semaphores; // the kernel's own words
        std::vector<uint64_t> cookies;
        for (size_t i : chosen) {
            offsets.push_back(static_cast<unsigned long>(places.functions[i].offset));
            if (!o.cookies.empty() || o.cookie != 0) cookies.push_back(o.cookies.empty() ? o.cookie : o.cookies[i]);
            if (!o.semaphores.empty() || o.semaphore != 0)
                semaphores.push_back(static_cast<unsigned long>(o.semaphores.empty() ? o.semaphore : o.semaphores[i]));
        }
        TRY(check_instruction_set(places.path, offsets));
        sys::LinkCreateAttr attr = link_attr(a);
        attr.uprobe_multi.path = sys::reg(places.path.c_str());
        attr.uprobe_multi.offsets = sys::reg(offsets.data());
        if (!cookies.empty()) attr.uprobe_multi.cookies = sys::reg(cookies.data());
        if (!semaphores.empty()) attr.uprobe_multi.ref_ctr_offsets = sys::reg(semaphores.data());
        attr.uprobe_multi.cnt = static_cast<uint32_t>(chosen.size());
        attr.uprobe_multi.flags = a.kind.attachment == Attachment::uretprobe_multi ? kMultiReturn : 0;
        attr.uprobe_multi.pid = o.pid > 0 ? static_cast<uint32_t>(o.pid) : 0;
        sys::Because why("run this program at every one of these places: one link for all");
        return sys::link_create(attr);
    };
    auto blames = [&](const Error &error) {
        return (o.functions.empty() || o.pass_over) &&
               (error.os == kNotSupported || error.os == EINVAL || error.os == EILSEQ || error.os == EIO);
    };
    Result<Bisected> done = attach_all_but_bad(places.functions.size(), attach, blames);
    if (!done)
        return Unexpected(in_context(explain_uprobe(std::move(done).error(), places.path, places.functions.front().offset),
                                     format("{} places", places.functions.size())));
    Link link;
    link.add(std::move(done->link));
    link.name(a.what(), done->attached.size());
    for (std::string &note : places.notes) link.note(std::move(note));
    std::string text =
        describe_passed_over(done->failed, places.functions.size(), [&](size_t i) { return places.functions[i].name; });
    if (!text.empty()) link.note(std::move(text));
    return link;
}

} // namespace rawbpf::inline v0
