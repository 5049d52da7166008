// The context of programs that get the arguments of a function: 8 bytes for each argument.
//
//      fentry/vfs_read(struct file *, char *, size_t, loff_t *)
//      r2 = *(u64 *)(r1 + 0)       a struct file
//      r3 = *(u64 *)(r1 + 16)      a number
//      r4 = *(u64 *)(r1 + 24)      a pointer to a number: a number
//      r5 = *(u64 *)(r1 + 32)      refused; fexit: the result
//
// The kernel does this in btf_ctx_access() of kernel/bpf/btf.c.
#include <algorithm>

#include "asm/attach_types.h"
#include "asm/kinds.h"
#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

namespace {

using btf::Kind;

bool is_number(const btf::Type &type) {
    return (type.kind == Kind::int_ && type.size_or_type <= 8) || type.kind == Kind::enum_ || type.kind == Kind::enum64 ||
           type.kind == Kind::struct_ || type.kind == Kind::union_;
}

} // namespace

// struct bpf_nf_ctx: two pointers.
bool Engine::netfilter_context(int64_t off, unsigned size, bool write, Value &loaded) {
    const bool fits = !write && size == 8 && (off == 0 || off == 8);
    if (!fits) return refuse("invalid bpf_context access off={} size={}", off, size);
    const std::optional<Value> value = object(off == 0 ? "nf_hook_state" : "sk_buff", Trust::trusted, false);
    if (!value) return false;
    loaded = *value;
    return true;
}

bool Engine::btf_context(int64_t off, unsigned size, bool write, Value &loaded) {
    if (static_cast<ProgramType>(program_.type) == ProgramType::NETFILTER) return netfilter_context(off, size, write, loaded);
    if (!options_.kernel_types) return undecided("types of the kernel, which aren't at hand");
    if (!attached_.known)
        return undecided(format("the context of a program for {}, which isn't in the types of the kernel", program_.section));
    const btf::Btf &types = *options_.kernel_types;
    auto invalid = [&](std::string before) {
        return refuse("{}{}invalid bpf_context access off={} size={}", before, before.empty() ? "" : "; ", off, size);
    };
    constexpr int64_t kMostArguments = 12; // MAX_BPF_FUNC_ARGS
    if (off < 0 || off >= kMostArguments * 8 || write || off % size != 0) return invalid({});
    if (off % 8 != 0) return invalid(format("func '{}' offset {} is not multiple of 8", attached_.name, off));
    // Which parameter: large ones take more than 8 bytes.
    const uint32_t count = attached_.prototype.vlen - std::min(attached_.prototype.vlen, attached_.skipped);
    uint32_t number = 0;
    int64_t at = 0;
    for (; number < count; ++number) {
        const Result<btf::Param> param = types.param(attached_.prototype, number + attached_.skipped);
        const Result<uint64_t> bytes = param ? types.size_of(param->type) : Result<uint64_t>(uint64_t(8));
        at += static_cast<int64_t>(((bytes ? *bytes : 8) + 7) / 8 * 8);
        if (off < at) break;
    }
    if (number == count && off >= at + 8) number = count + 1;
    const auto attach = static_cast<AttachType>(program_.expected_attach_type);
    const bool result = program_.type == uint32_t(ProgramType::LSM)
                            ? attach == AttachType::LSM_MAC || attach == AttachType::LSM_CGROUP
                            : program_.type == uint32_t(ProgramType::TRACING) &&
                                  (attach == AttachType::TRACE_FEXIT || attach == AttachType::MODIFY_RETURN);
    if (number > count || (number == count && !result))
        return invalid(format("func '{}' doesn't have {}-th argument", attached_.name, number + 1));
    std::string_view name;
    btf::TypeId id = attached_.prototype.size_or_type;
    if (number < count) {
        const Result<btf::Param> param = types.param(attached_.prototype, number + attached_.skipped);
        if (!param) return undecided("a parameter that can't be read");
        id = param->type;
        name = param->name;
    }
    const Result<btf::Type> type = types.resolve(id);
    if (!type) return undecided("a parameter that can't be read");
    if (is_number(*type)) {
        loaded = any_number(node());
        return true;
    }
    if (type->kind == Kind::void_ && number == count) {
        loaded = any_number(node());
        return true;
    }
    if (type->kind != Kind::ptr)
        return invalid(format("func '{}' arg{} '{}' has type {}. Only pointer access is allowed", attached_.name, number, name,
                              kind_name(type->kind)));
    if (size != 8) return invalid(format("func '{}' size {} must be 8", attached_.name, size));
    ParameterNote note = ParameterNote::none;
    const bool iterator = program_.type == uint32_t(ProgramType::TRACING) && attach == AttachType::TRACE_ITER;
    const bool tracepoint = program_.type == uint32_t(ProgramType::TRACING) && attach == AttachType::TRACE_RAW_TP;
    if (iterator) note = iterator_parameter(attached_.name, number);
    if (tracepoint && rule(Rule::null_tracepoints)) note = tracepoint_parameter(attached_.name, number);
    if (note == ParameterNote::read_buffer || note == ParameterNote::write_buffer) {
        loaded = pointer(Sort::buffer, node());
        loaded.read_only = note == ParameterNote::read_buffer;
        loaded.maybe_null = true;
        loaded.id = new_id();
        return true;
    }
    const Result<btf::Type> tag = types.type(type->size_or_type);
    const Result<btf::Type> to = types.resolve(type->size_or_type);
    if (!to || !tag) return undecided("a parameter that can't be read");
    if (to->kind == Kind::void_ || to->kind == Kind::int_) {
        loaded = any_number(node());
        return true;
    }
    if (to->kind != Kind::struct_ && to->kind != Kind::union_)
        return invalid(format("func '{}' arg{} type {} is not a struct", attached_.name, number, kind_name(to->kind)));
    if (note == ParameterNote::error) {
        loaded = any_number(node());
        return true;
    }
    loaded = pointer(Sort::object, node());
    loaded.type = to->id;
    loaded.trust = attached_.trusted ? Trust::trusted : Trust::plain;
    if (iterator && note == ParameterNote::or_null) loaded.trust = Trust::plain;
    if (note == ParameterNote::or_null_rcu) loaded.trust = Trust::rcu;
    loaded.maybe_null = note != ParameterNote::none || name.ends_with("__nullable");
    if (!attached_.stub.empty() && !loaded.maybe_null) loaded.maybe_null = stub_says_null(number);
    if (tag->kind == Kind::type_tag) {
        loaded.user = tag->name == "user";
        loaded.per_cpu = tag->name == "percpu";
    }
    if (program_.type == uint32_t(ProgramType::STRUCT_OPS) && to->name == "sock" &&
        attached_.name.starts_with("tcp_congestion_ops.")) {
        const std::optional<btf::TypeId> tcp = types.find("tcp_sock", Kind::struct_);
        if (tcp) loaded.type = *tcp;
    }
    if (loaded.maybe_null) loaded.id = new_id();
    return true;
}

// The kernel's stub of a member of a struct of functions names its parameters: what__nullable.
bool Engine::stub_says_null(uint32_t number) const {
    const btf::Btf &types = *options_.kernel_types;
    const std::optional<btf::TypeId> id = types.find(attached_.stub, Kind::func);
    const Result<btf::Type> function = id ? types.type(*id) : types.type(0);
    const Result<btf::Type> prototype = id && function ? types.type(function->size_or_type) : types.type(0);
    if (!prototype || prototype->kind != Kind::func_proto || number >= prototype->vlen) return false;
    const Result<btf::Param> param = types.param(*prototype, number);
    return param && param->name.ends_with("__nullable");
}

} // namespace rawbpf::inline v0::verifier
