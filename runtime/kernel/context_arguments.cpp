// The verifier checks a global function alone, from the types of its parameters. Since Linux 6.8 a tag says that a pointer is
// the program's context; before, only the pointer's type said it:
//
//      int handle(void *ctx __arg_ctx)         DECL_TAG "arg:ctx" -> FUNC handle, parameter 0
//      int handle(struct xdp_md *ctx)          ... which one source can't say for programs of several types
//
// So for a kernel that doesn't know the tag, the function gets a second description, in which that parameter has the context's
// type. The program's function information points to it; the first description stays for other programs that share the
// function:
//
//      id:  ... what was there ... | STRUCT xdp_md, empty | PTR | FUNC_PROTO (int ctx*) | FUNC handle | DECL_TAG arg:ctx
//
// Names of contexts: asm/program_types.h; the empty struct is found by its name. libbpf does the same since 1.4.
#include "runtime/kernel/context_arguments.h"

#include <algorithm>
#include <map>

#include "asm/program_types.h"
#include "runtime/base/fail.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0 {
namespace {

using btf::Btf;
using btf::Kind;
using btf::TypeId;

constexpr std::string_view kTag = "arg:ctx";

// Whether a parameter of that type stands for the context and isn't yet of the type that says so.
Result<bool> needs_type(const Btf &types, TypeId parameter, uint32_t program_type, std::string_view context) {
    const btf::Type pointer = TRY(types.resolve(parameter));
    if (pointer.kind != Kind::ptr) return false;
    const btf::Type target = TRY(types.resolve(pointer.size_or_type));
    if (target.kind == Kind::void_) return true;
    const bool record = target.kind == Kind::struct_;
    if (record && target.name == context) return false;
    switch (static_cast<ProgramType>(program_type)) {
    case ProgramType::KPROBE: return record && target.name == "pt_regs";
    case ProgramType::PERF_EVENT: return record && (target.name == "pt_regs" || target.name == "user_pt_regs");
    case ProgramType::RAW_TRACEPOINT:
    case ProgramType::RAW_TRACEPOINT_WRITABLE: return target.kind == Kind::int_ && target.size_or_type == 8; // u64 *ctx
    default: return false;
    }
}

// The types and names of `more`, which goes on where `types` ends, become part of it.
std::vector<std::byte> joined(const Btf &types, Bytes more) {
    auto part = [](Bytes bytes, uint32_t field) {
        const uint32_t header = load<uint32_t>(bytes.data() + 4);
        return bytes.subspan(header + load<uint32_t>(bytes.data() + field), load<uint32_t>(bytes.data() + field + 4));
    };
    constexpr uint32_t kTypes = 8, kStrings = 16;
    const Bytes parts[] = {part(types.bytes(), kTypes), part(more, kTypes), part(types.bytes(), kStrings), part(more, kStrings)};
    const uint32_t types_size = static_cast<uint32_t>(parts[0].size() + parts[1].size());
    const uint32_t header[] = {0x0001eb9f, 24,         0,
                               types_size, types_size, static_cast<uint32_t>(parts[2].size() + parts[3].size())};
    std::vector<std::byte> out;
    for (Bytes bytes : {Bytes(std::as_bytes(std::span(header))), parts[0], parts[1], parts[2], parts[3]})
        out.insert(out.end(), bytes.begin(), bytes.end());
    return out;
}

struct Function {
    btf::Type type, prototype;
    std::vector<uint32_t> contexts; ///< parameters
};

// The global functions of a program that have marked parameters in need of a type, by the id of their FUNC.
Result<std::map<TypeId, Function>> marked_functions(const Btf &types, const ProgramSpec &program, std::string_view context) {
    constexpr uint32_t kGlobal = 1;
    std::map<TypeId, Function> out;
    for (TypeId id = types.first_id(); id < types.end_id(); ++id) {
        const btf::Type tag = TRY(types.type(id));
        if (tag.kind != Kind::decl_tag || tag.name != kTag) continue;
        bool ours = false;
        for (const FuncInfo &info : program.func_info) ours |= info.type == tag.size_or_type;
        if (!ours) continue;
        const btf::Type function = TRY(types.type(tag.size_or_type));
        if (function.kind != Kind::func || function.vlen != kGlobal) continue;
        const btf::Type prototype = TRY(types.type(function.size_or_type));
        const int32_t parameter = types.decl_tag_component(tag);
        if (prototype.kind != Kind::func_proto || parameter < 0 || static_cast<uint32_t>(parameter) >= prototype.vlen) continue;
        const uint32_t number = static_cast<uint32_t>(parameter);
        if (!TRY(needs_type(types, TRY(types.param(prototype, number)).type, program.type, context))) continue;
        Function &found = out[function.id];
        found.type = function;
        found.prototype = prototype;
        found.contexts.push_back(number);
    }
    return out;
}

} // namespace

Result<std::optional<ContextArguments>> type_context_arguments(Bytes btf, const ProgramSpec &program) {
    using None = std::optional<ContextArguments>;
    const std::string_view context = program_type_row(program.type).context;
    const std::string_view all(reinterpret_cast<const char *>(btf.data()), btf.size());
    if (context.empty() || program.func_info.empty() || all.find(kTag) == std::string_view::npos) return None();
    const Btf types = TRY(Btf::parse(btf, "BTF"));
    if (load<uint16_t>(btf.data()) != 0xeb9f) return None(); // of another byte order: the kernel wouldn't take it either
    const std::map<TypeId, Function> functions = TRY(marked_functions(types, program, context));
    if (functions.empty()) return None();

    btf::Writer added(types);
    const TypeId pointer = added.add_ptr(added.add_struct(context, 0, {}));
    ContextArguments out;
    out.func_info = program.func_info;
    for (const auto &[id, function] : functions) {
        std::vector<std::pair<std::string_view, TypeId>> parameters;
        for (uint32_t i = 0; i < function.prototype.vlen; ++i) {
            const btf::Param parameter = TRY(types.param(function.prototype, i));
            const bool marked = std::find(function.contexts.begin(), function.contexts.end(), i) != function.contexts.end();
            parameters.emplace_back(parameter.name, marked ? pointer : parameter.type);
        }
        const TypeId prototype = added.add_func_proto(function.prototype.size_or_type, parameters);
        const TypeId copy = added.add_func(function.type.name, prototype, function.type.vlen);
        for (uint32_t parameter : function.contexts) added.add_decl_tag(kTag, copy, static_cast<int32_t>(parameter));
        for (FuncInfo &info : out.func_info)
            if (info.type == id) info.type = copy;
    }
    out.btf = joined(types, added.finish());
    return std::optional(std::move(out));
}

} // namespace rawbpf::inline v0
