// Reads from an object's BTF what a verdict depends on.
//
//      struct { struct bpf_spin_lock lock; int n; }    a program can't read or write bytes 0 to 3 of such a value, only lock them
//      int sum(struct xdp_md *ctx, int n)              a global function: verified once, for any n
#include "runtime/verifier/types.h"

#include "runtime/btf/btf.h"
#include "runtime/verifier/context.h"

namespace rawbpf::inline v0::verifier {

namespace {

constexpr std::string_view kKernelParts[] = {"bpf_spin_lock", "bpf_res_spin_lock", "bpf_timer",   "bpf_wq",
                                             "bpf_list_head", "bpf_list_node",     "bpf_rb_root", "bpf_rb_node",
                                             "bpf_refcount",  "bpf_task_work"};
constexpr std::string_view kPointerTags[] = {"kptr", "kptr_untrusted", "percpu_kptr", "uptr"};

// "contains:node:link", at the member or the variable that is a root.
void find_contents(const btf::Btf &types, btf::TypeId of, int32_t member, KernelPart &root) {
    constexpr std::string_view kTag = "contains:";
    for (btf::TypeId id = types.first_id(); id < types.end_id(); ++id) {
        const Result<btf::Type> tag = types.type(id);
        if (!tag || tag->kind != btf::Kind::decl_tag || tag->size_or_type != of || !tag->name.starts_with(kTag)) continue;
        if (types.decl_tag_component(*tag) != member) continue;
        const std::string_view text = tag->name.substr(kTag.size());
        const size_t colon = text.find(':');
        const std::optional<btf::TypeId> node = types.find(text.substr(0, colon), btf::Kind::struct_);
        const Result<btf::Type> type = node ? types.type(*node) : types.type(0);
        if (!node || !type || colon == std::string_view::npos) return;
        root.contains = *node;
        for (uint32_t i = 0; i < type->vlen; ++i) {
            const Result<btf::Member> link = types.member(*type, i);
            if (link && link->name == text.substr(colon + 1)) root.node_offset = link->bit_offset / 8;
        }
        return;
    }
}

void find_parts(const btf::Btf &types, btf::TypeId id, uint32_t offset, int depth, std::vector<KernelPart> &out) {
    if (depth > 8) return;
    const Result<btf::Type> type = types.resolve(id);
    if (!type) return;
    if (type->kind == btf::Kind::ptr) {
        const Result<btf::Type> tag = types.type(type->size_or_type);
        if (tag && tag->kind == btf::Kind::type_tag)
            for (std::string_view name : kPointerTags)
                if (tag->name == name) out.push_back({std::string(name), offset, 8, tag->size_or_type});
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
            if (!variable || !var || var->kind != btf::Kind::var) continue;
            const size_t before = out.size();
            find_parts(types, var->size_or_type, offset + variable->offset, depth + 1, out);
            for (size_t n = before; n < out.size(); ++n)
                if ((out[n].name == "bpf_list_head" || out[n].name == "bpf_rb_root") && !out[n].contains)
                    find_contents(types, var->id, -1, out[n]);
            continue;
        }
        const Result<btf::Member> member = types.member(*type, i);
        if (!member || member->bit_size != 0) continue;
        const size_t before = out.size();
        find_parts(types, member->type, offset + member->bit_offset / 8, depth + 1, out);
        for (size_t n = before; n < out.size(); ++n)
            if ((out[n].name == "bpf_list_head" || out[n].name == "bpf_rb_root") && !out[n].contains)
                find_contents(types, type->id, static_cast<int32_t>(i), out[n]);
    }
}

GlobalFunction::Parameter parameter_of(const btf::Btf &types, btf::TypeId id, const ProgramSpec &program, uint32_t &size) {
    using P = GlobalFunction::Parameter;
    const ProgramRow *row = program_row(program.type);
    const Result<btf::Type> type = types.resolve(id);
    if (!type) return P::other;
    if (type->kind == btf::Kind::int_ || type->kind == btf::Kind::enum_ || type->kind == btf::Kind::enum64) return P::number;
    if (type->kind != btf::Kind::ptr) return P::other;
    const Result<btf::Type> to = types.resolve(type->size_or_type);
    if (!to) return P::other;
    if (to->kind == btf::Kind::struct_ && row && !row->context.empty() && to->name == row->context) return P::context;
    const Result<btf::Type> plain = types.type(type->size_or_type);
    if (plain && plain->kind == btf::Kind::typedef_ && plain->name == "bpf_user_pt_regs_t") return P::context;
    if (to->kind == btf::Kind::void_ || to->kind == btf::Kind::fwd || to->kind == btf::Kind::func_proto) return P::other;
    if (to->name == "bpf_dynptr") return P::other;
    const Result<uint64_t> bytes = types.size_of(to->id);
    if (!bytes || *bytes == 0 || *bytes > UINT32_MAX) return P::other;
    size = static_cast<uint32_t>(*bytes);
    return P::memory;
}

// What tags at a global function say of its parameters: the last part of "arg:nonnull", by parameter.
std::string_view tag_of(const btf::Btf &types, btf::TypeId function, uint32_t parameter) {
    for (btf::TypeId id = types.first_id(); id < types.end_id(); ++id) {
        const Result<btf::Type> tag = types.type(id);
        if (!tag || tag->kind != btf::Kind::decl_tag || tag->size_or_type != function) continue;
        if (types.decl_tag_component(*tag) == static_cast<int32_t>(parameter) && tag->name.starts_with("arg:"))
            return tag->name.substr(4);
    }
    return {};
}

// The function that a tag at the program's own names: "exception_callback:name".
std::optional<uint32_t> catches_of(const btf::Btf &types, const ProgramSpec &program, bool &many) {
    std::optional<uint32_t> found;
    bool tagged = false;
    if (program.func_info.empty()) return {};
    constexpr std::string_view kTag = "exception_callback:";
    for (btf::TypeId id = types.first_id(); id < types.end_id(); ++id) {
        const Result<btf::Type> tag = types.type(id);
        if (!tag || tag->kind != btf::Kind::decl_tag || tag->size_or_type != program.func_info.front().type ||
            !tag->name.starts_with(kTag))
            continue;
        many |= tagged;
        tagged = true;
        for (const ProgramSpec::Subprogram &function : program.subprograms)
            if (function.name == tag->name.substr(kTag.size())) found = function.insn;
    }
    return found;
}

} // namespace

const MapSpec &map_at(const ObjectSpec &spec, uint32_t number) {
    if (number < spec.maps.size()) return spec.maps[number];
    return *spec.maps[number - spec.maps.size()].inner;
}

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

std::vector<KernelPart> Types::parts_of_type(btf::TypeId type) const {
    std::vector<KernelPart> out;
    if (own_) find_parts(*own_, type, 0, 0, out);
    return out;
}

int Types::lock_of_type(btf::TypeId type) const {
    for (const KernelPart &part : parts_of_type(type))
        if (part.name == "bpf_spin_lock") return static_cast<int>(part.offset);
    return -1;
}

bool Types::has_part(btf::TypeId type, std::string_view name) const {
    for (const KernelPart &part : parts_of_type(type))
        if (part.name == name) return true;
    return false;
}

Types types_of(const ObjectSpec &spec, const ProgramSpec &program) {
    Types out;
    out.parts.resize(2 * spec.maps.size());
    if (spec.btf.empty()) return out;
    const Result<btf::Btf> types = btf::Btf::parse(spec.btf, spec.name);
    if (!types) return out;
    out.own_ = *types;
    for (size_t i = 0; i < spec.maps.size(); ++i)
        if (spec.maps[i].value_type) find_parts(*types, spec.maps[i].value_type, 0, 0, out.parts[i]);
    for (size_t i = 0; i < spec.maps.size(); ++i)
        if (spec.maps[i].inner && spec.maps[i].inner->value_type)
            find_parts(*types, spec.maps[i].inner->value_type, 0, 0, out.parts[spec.maps.size() + i]);
    out.catches = catches_of(*types, program, out.many_catch);
    for (const FuncInfo &info : program.func_info) {
        constexpr uint32_t kGlobal = 1; // BTF_FUNC_GLOBAL
        const Result<btf::Type> function = types->type(info.type);
        if (!function || info.insn == 0 || function->kind != btf::Kind::func || function->vlen != kGlobal) continue;
        GlobalFunction global{info.insn, std::string(function->name), {}, {}, false};
        const Result<btf::Type> prototype = types->type(function->size_or_type);
        if (!prototype) continue;
        for (uint32_t i = 0; i < prototype->vlen; ++i) {
            const Result<btf::Param> param = types->param(*prototype, i);
            uint32_t size = 0;
            auto parameter = param ? parameter_of(*types, param->type, program, size) : GlobalFunction::Parameter::other;
            const std::string_view tag = tag_of(*types, info.type, i);
            if (tag == "ctx")
                parameter = GlobalFunction::Parameter::context;
            else if (tag == "arena")
                parameter = GlobalFunction::Parameter::arena;
            else if (tag == "nonnull" && parameter == GlobalFunction::Parameter::memory)
                parameter = GlobalFunction::Parameter::memory_not_null;
            else if (!tag.empty() && tag != "nullable")
                parameter = GlobalFunction::Parameter::other;
            global.parameters.push_back(parameter);
            global.sizes.push_back(size);
        }
        global.returns_nothing = prototype->size_or_type == 0;
        const Result<btf::Type> answer = types->resolve(prototype->size_or_type);
        global.returns_number =
            answer && (answer->kind == btf::Kind::int_ || answer->kind == btf::Kind::enum_ || answer->kind == btf::Kind::enum64);
        out.global.push_back(std::move(global));
    }
    return out;
}

} // namespace rawbpf::inline v0::verifier
