// Reads from an object's BTF what changes a verdict.
//
//      struct { struct bpf_spin_lock lock; int n; }    bytes 0 to 3 of such a value can't be read or written, but locked
//      int sum(struct xdp_md *ctx, int n)              a global function: verified once, for any n
#include "runtime/verifier/types.h"

#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::verifier {

namespace {

constexpr std::string_view kKernelParts[] = {"bpf_spin_lock", "bpf_res_spin_lock", "bpf_timer",   "bpf_wq",
                                             "bpf_list_head", "bpf_list_node",     "bpf_rb_root", "bpf_rb_node",
                                             "bpf_refcount",  "bpf_task_work"};
constexpr std::string_view kPointerTags[] = {"kptr", "kptr_untrusted", "percpu_kptr", "uptr"};

void find_parts(const btf::Btf &types, btf::TypeId id, uint32_t offset, int depth, std::vector<KernelPart> &out) {
    if (depth > 8) return;
    const Result<btf::Type> type = types.resolve(id);
    if (!type) return;
    if (type->kind == btf::Kind::ptr) {
        const Result<btf::Type> tag = types.type(type->size_or_type);
        if (tag && tag->kind == btf::Kind::type_tag)
            for (std::string_view name : kPointerTags)
                if (tag->name == name) out.push_back({std::string(name), offset, 8});
        return;
    }
    if (type->kind == btf::Kind::array) {
        const btf::Array array = types.array(*type);
        const Result<uint64_t> size = types.size_of(array.element);
        for (uint32_t i = 0; size && i < array.count && i < 64; ++i)
            find_parts(types, array.element, offset + i * static_cast<uint32_t>(*size), depth + 1, out);
        return;
    }
    if (type->kind == btf::Kind::struct_)
        for (std::string_view name : kKernelParts)
            if (type->name == name) {
                out.push_back({std::string(name), offset, type->size_or_type});
                return;
            }
    if (type->kind != btf::Kind::struct_ && type->kind != btf::Kind::union_ && type->kind != btf::Kind::datasec) return;
    for (uint32_t i = 0; i < type->vlen; ++i) {
        if (type->kind == btf::Kind::datasec) {
            const Result<btf::VarSecinfo> variable = types.secinfo(*type, i);
            const Result<btf::Type> var = variable ? types.type(variable->type) : types.type(0);
            if (variable && var && var->kind == btf::Kind::var)
                find_parts(types, var->size_or_type, offset + variable->offset, depth + 1, out);
            continue;
        }
        const Result<btf::Member> member = types.member(*type, i);
        if (member && member->bit_size == 0) find_parts(types, member->type, offset + member->bit_offset / 8, depth + 1, out);
    }
}

GlobalFunction::Parameter parameter_of(const btf::Btf &types, btf::TypeId id) {
    using P = GlobalFunction::Parameter;
    const Result<btf::Type> type = types.resolve(id);
    if (!type) return P::other;
    if (type->kind == btf::Kind::int_ || type->kind == btf::Kind::enum_ || type->kind == btf::Kind::enum64) return P::number;
    if (type->kind != btf::Kind::ptr) return P::other;
    const Result<btf::Type> to = types.resolve(type->size_or_type);
    if (to && to->kind == btf::Kind::struct_)
        for (std::string_view name : {"__sk_buff", "xdp_md", "bpf_perf_event_data", "bpf_raw_tracepoint_args"})
            if (to->name == name) return P::context;
    return P::other;
}

} // namespace

const GlobalFunction *Types::find_global(uint32_t insn) const {
    for (const GlobalFunction &function : global)
        if (function.insn == insn) return &function;
    return nullptr;
}

int Types::lock_of(size_t map) const {
    if (map < parts.size())
        for (const KernelPart &part : parts[map])
            if (part.name == "bpf_spin_lock") return static_cast<int>(part.offset);
    return -1;
}

Types types_of(const ObjectSpec &spec, const ProgramSpec &program) {
    Types out;
    out.parts.resize(spec.maps.size());
    if (spec.btf.empty()) return out;
    const Result<btf::Btf> types = btf::Btf::parse(spec.btf, spec.name);
    if (!types) return out;
    for (size_t i = 0; i < spec.maps.size(); ++i)
        if (spec.maps[i].value_type) find_parts(*types, spec.maps[i].value_type, 0, 0, out.parts[i]);
    for (const FuncInfo &info : program.func_info) {
        constexpr uint32_t kGlobal = 1; // BTF_FUNC_GLOBAL
        const Result<btf::Type> function = types->type(info.type);
        if (!function || info.insn == 0 || function->kind != btf::Kind::func || function->vlen != kGlobal) continue;
        GlobalFunction global{info.insn, std::string(function->name), {}, false};
        const Result<btf::Type> prototype = types->type(function->size_or_type);
        if (!prototype) continue;
        for (uint32_t i = 0; i < prototype->vlen; ++i) {
            const Result<btf::Param> param = types->param(*prototype, i);
            global.parameters.push_back(param ? parameter_of(*types, param->type) : GlobalFunction::Parameter::other);
        }
        global.returns_nothing = prototype->size_or_type == 0;
        out.global.push_back(std::move(global));
    }
    return out;
}

} // namespace rawbpf::inline v0::verifier
