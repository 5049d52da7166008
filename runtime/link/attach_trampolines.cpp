// One program at many functions, by trampolines (fentry.multi and its kin, newer than Linux 7.2): the arguments that kprobe.multi
// has, at the price of fentry.
//
//      fentry.multi/vfs_*             the kernel's own functions
//      fentry.multi/nf_nat:nf_nat_*   a module's: the program is verified for its types (attach_btf_obj_fd), so the module stands in
//                                     the section's name, and no other can be named when it is attached
//
//      BPF_LINK_CREATE { prog_fd, attach_type, ids[], cookies[], cnt }
//
// The kernel is told BTF ids and takes all or none. What ftrace doesn't list, what has no types, and what a trampoline can't save
// the arguments of is left out before it is asked (kernel/bpf/trampoline.c, btf_distill_func_proto: at most 12 arguments, none of
// them variadic or larger than two registers, no struct as a result); what it refuses nevertheless is found by halving.
#include <algorithm>
#include <cerrno>
#include <map>

#include "runtime/base/fail.h"
#include "runtime/kernel/module_btf.h"
#include "runtime/link/attaching.h"
#include "runtime/link/bisect.h"
#include "runtime/link/kernel_functions.h"
#include "runtime/link/names.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0 {
namespace {

constexpr int kNotSupported = 524; // ENOTSUPP: leaks out of the kernel, though no header of user space has it
constexpr uint32_t kMostArguments = 12;
constexpr uint64_t kMostBytes = 16;

struct Types {
    std::shared_ptr<const btf::Btf> kernel;
    std::unique_ptr<ModuleTypes> modules;
    const btf::Btf *own = nullptr; // the kernel's or one module's
};

Result<Types> types_of(std::string_view module) {
    Types out;
    out.kernel = TRY(kernel_btf());
    out.own = out.kernel.get();
    if (module.empty()) return out;
    out.modules = std::make_unique<ModuleTypes>(out.kernel.get());
    const auto &all = out.modules->all();
    const auto at = std::find_if(all.begin(), all.end(), [&](const auto &one) { return one->name == module; });
    if (at == all.end()) return fail(Errc::not_found, "module {}: rawbpf found no BTF of it", module);
    out.own = &(*at)->types;
    return out;
}

// A function to attach to.
struct TargetFunction {
    std::string name;
    btf::TypeId id = 0;
};

// The program was verified for the types of the module that its section names; links go to those.
Result<std::string_view> module_of(const Attaching &a, const ModuleAndName &target) {
    const std::string_view own = split_module(section_target(a.kind, a.program.section)).module;
    if (!a.options.target.empty() && target.module != own)
        return Unexpected(make_error(Errc::invalid_argument,
                                     format("{}: the program was loaded for functions of {}", a.what(),
                                            own.empty() ? "the kernel itself" : format("module {}", own)),
                                     format("name the module in the section: {}/MODULE:PATTERN", a.kind.name)));
    return own;
}

} // namespace

Result<std::string> why_no_trampoline(const btf::Btf &types, const btf::Type &function) {
    const btf::Type proto = TRY(types.type(function.size_or_type));
    if (proto.kind != btf::Kind::func_proto) return std::string("has no prototype");
    if (proto.vlen > kMostArguments) return format("has {} arguments, and 12 are the most", proto.vlen);
    if (proto.size_or_type != 0) {
        const btf::Type result = TRY(types.resolve(proto.size_or_type));
        if (result.kind == btf::Kind::struct_ || result.kind == btf::Kind::union_) return std::string("returns a struct");
    }
    for (uint32_t i = 0; i < proto.vlen; ++i) {
        const btf::Param param = TRY(types.param(proto, i));
        if (param.type == 0) return std::string("a variable number of arguments");
        if (TRY(types.size_of(param.type)) > kMostBytes) return format("argument {} is larger than two registers", param.name);
    }
    return std::string();
}

Result<Link> attach_trampoline_multi(const Attaching &a) {
    const std::string_view module = TRY(module_of(a, split_module(a.target)));
    std::vector<std::string> names;
    std::string hidden;
    if (a.options.functions.empty()) {
        MatchedFunctions matched = TRY(match_kernel_functions(a.target));
        hidden = describe_hidden(matched);
        for (KernelFunction &one : matched.functions) names.push_back(std::move(one.name));
    } else {
        names = a.options.functions;
    }
    const std::vector<uint64_t> &given = a.options.cookies;
    if (!given.empty() && given.size() != a.options.functions.size())
        return fail(Errc::invalid_argument, "{} cookies for {} functions", given.size(), a.options.functions.size());

    // One pass over the types finds them all.
    const Types types = TRY_IN(types_of(module), "{}: its functions' types", a.what());
    std::map<std::string_view, btf::TypeId> ids;
    for (const std::string &name : names) ids.emplace(name, 0);
    for (btf::TypeId id = types.own->first_id(); id < types.own->end_id(); ++id) {
        const btf::Type type = TRY(types.own->type(id));
        if (type.kind != btf::Kind::func) continue;
        if (auto at = ids.find(type.name); at != ids.end()) at->second = id;
    }

    std::vector<TargetFunction> places;
    std::vector<uint64_t> cookies;
    std::vector<PassedOver> without;
    std::vector<std::string> without_names;
    size_t position = 0;
    for (const std::string &name : names) {
        const size_t cookie = position++;
        btf::TypeId &id = ids.find(name)->second;
        std::string reason = "not in the BTF";
        if (id != 0) reason = TRY(why_no_trampoline(*types.own, TRY(types.own->type(id))));
        if (!reason.empty()) {
            if (!a.options.functions.empty()) return fail(Errc::not_found, "{}: function {}: {}", a.what(), name, reason);
            without.push_back({without.size(), make_error(Errc::unsupported, std::move(reason))});
            without_names.push_back(name);
            continue;
        }
        places.push_back({name, id});
        if (!given.empty() || a.options.cookie != 0) cookies.push_back(given.empty() ? a.options.cookie : given[cookie]);
    }
    const std::string passed_over = describe_passed_over(without, names.size(), [&](size_t i) { return without_names[i]; });
    if (places.empty()) return fail(Errc::not_found, "{}: {}", a.what(), passed_over);

    auto attach = [&](const std::vector<size_t> &chosen) -> Result<Fd> {
        std::vector<uint32_t> wanted;
        std::vector<uint64_t> with;
        for (size_t i : chosen) {
            wanted.push_back(places[i].id);
            if (!cookies.empty()) with.push_back(cookies[i]);
        }
        sys::LinkCreateAttr attr = link_attr(a);
        attr.tracing_multi.ids = sys::reg(wanted.data());
        attr.tracing_multi.cookies = with.empty() ? 0 : sys::reg(with.data());
        attr.tracing_multi.cnt = static_cast<uint32_t>(wanted.size());
        sys::Because why("run this program at every one of these functions, by trampolines: one link for all");
        return sys::link_create(attr);
    };
    auto blames = [&](const Error &error) {
        return a.options.functions.empty() &&
               (error.os == EINVAL || error.os == ENOENT || error.os == EBUSY || error.os == E2BIG);
    };
    Result<Bisected> done = attach_all_but_bad(places.size(), attach, blames);
    if (!done) {
        Error error = std::move(done).error();
        if ((error.os == EINVAL || error.os == EOPNOTSUPP || error.os == kNotSupported) &&
            probe_attach_type(a.program.expected_attach_type).support == Support::no) {
            error.kind = Errc::unsupported;
            error.hint =
                "this kernel has no such links (they are newer than Linux 7.2); kprobe.multi (5.18) reaches the same functions";
        }
        return Unexpected(in_context(std::move(error), format("{}, {} functions", a.what(), places.size())));
    }
    Link link({}, std::move(done->link));
    link.name(a.what(), done->attached.size());
    if (!hidden.empty()) link.note(std::move(hidden));
    if (!passed_over.empty()) link.note(passed_over);
    if (std::string text = describe_passed_over(done->failed, places.size(), [&](size_t i) { return places[i].name; });
        !text.empty())
        link.note(std::move(text));
    return link;
}

} // namespace rawbpf::inline v0
