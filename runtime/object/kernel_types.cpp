#include "runtime/object/kernel_types.h"

#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/base/stable_sort.h"

namespace rawbpf::inline v0::object {

using btf::Kind;
using btf::TypeId;

// A member through anonymous ones; the type is the kernel's.
Result<std::optional<btf::Member>> KernelTypes::member(TypeId id, std::string_view name, int depth) const {
    const btf::Type type = TRY(kernel_->resolve(id));
    if ((type.kind != Kind::struct_ && type.kind != Kind::union_) || depth > 16) return std::optional<btf::Member>();
    for (uint32_t i = 0; i < type.vlen; ++i) {
        const btf::Member found = TRY(kernel_->member(type, i));
        if (found.name == name) return std::optional(found);
        if (!found.name.empty()) continue;
        if (std::optional<btf::Member> inner = TRY(member(found.type, name, depth + 1))) {
            inner->bit_offset += found.bit_offset;
            return inner;
        }
    }
    return std::optional<btf::Member>();
}

size_t KernelTypes::struct_for(const btf::Type &type, std::string_view name, size_t within) {
    for (size_t i = 0; within == SIZE_MAX && i < structs_.size(); ++i)
        if (!name.empty() && structs_[i].name == name) return i;
    LocalStruct local;
    local.name = name;
    local.is_union = type.kind == Kind::union_;
    local.size = type.size_or_type;
    structs_.push_back(std::move(local));
    return structs_.size() - 1;
}

Result<KernelTypes::FieldUse> KernelTypes::find_field(const std::string &path) {
    if (!kernel_)
        return Unexpected(make_error(
            Errc::unsupported,
            format("{}: @{} is a member of a kernel struct, and there are no kernel types to look it up in", unit_, path),
            "--btf FILE gives them"));
    auto nothing = [&](std::string_view what) { return fail(Errc::invalid_argument, "{}: @{}: {}", unit_, path, what); };
    std::string_view rest(path);
    auto next = [&] {
        const size_t dot = rest.find('.');
        const std::string_view part = rest.substr(0, dot);
        rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
        return part;
    };
    const std::string_view first = next();
    std::optional<TypeId> root = kernel_->find(first, Kind::struct_);
    if (!root) root = kernel_->find(first, Kind::union_);
    if (!root) root = kernel_->find(first, Kind::typedef_);
    if (!root) return nothing(format("the kernel has no struct {}", first));
    btf::Type type = TRY(kernel_->resolve(*root));
    if (type.kind != Kind::struct_ && type.kind != Kind::union_) return nothing(format("{} isn't a struct", first));
    if (type.name.empty()) return nothing(format("{} stands for a struct without a name", first));
    size_t at = struct_for(type, type.name, SIZE_MAX);
    FieldUse use{at, 0, {}};
    while (!rest.empty()) {
        const std::string_view name = next();
        const std::optional<btf::Member> found = TRY(member(type.id, name));
        if (!found) return nothing(format("struct {} has no member {}", type.name, name));
        if (found->bit_size != 0 || found->bit_offset % 8 != 0) return nothing(format("{} is a bit-field", name));
        size_t place = 0;
        while (place < structs_[at].fields.size() && structs_[at].fields[place].name != name) ++place;
        if (place == structs_[at].fields.size())
            structs_[at].fields.push_back({std::string(name), found->bit_offset, found->type});
        use.steps.emplace_back(at, name);
        use.offset += found->bit_offset / 8;
        if (rest.empty()) break;
        type = TRY(kernel_->resolve(found->type));
        if (type.kind == Kind::ptr) { // the place of what follows is counted from where the pointer leads
            type = TRY(kernel_->resolve(type.size_or_type));
            if ((type.kind != Kind::struct_ && type.kind != Kind::union_) || type.name.empty())
                return nothing(format("{} doesn't lead to a struct with a name", name));
            at = struct_for(type, type.name, SIZE_MAX);
            use = {at, 0, {}};
            continue;
        }
        if (type.kind != Kind::struct_ && type.kind != Kind::union_) return nothing(format("{} isn't a struct", name));
        if (structs_[at].fields[place].inner == SIZE_MAX) {
            const size_t inner = struct_for(type, type.name, type.name.empty() ? at : SIZE_MAX);
            structs_[at].fields[place].inner = inner;
        }
        at = structs_[at].fields[place].inner;
    }
    if (use.steps.empty()) return nothing("the path has no member");
    return use;
}

// A type that compares equal with the kernel's where CO-RE looks: kind, and the name of an enum.
Result<TypeId> KernelTypes::stand_in(TypeId kernel_type, int depth) {
    const btf::Type type = TRY(kernel_->resolve(kernel_type));
    switch (type.kind) {
    case Kind::int_: return types_.add_int(type.name, type.size_or_type, kernel_->int_encoding(type));
    case Kind::float_: return types_.add_float(type.name, type.size_or_type);
    case Kind::array: {
        const btf::Array array = kernel_->array(type);
        if (depth > 8) return fail(Errc::invalid_argument, "{}: arrays are nested more than 8 deep", unit_);
        return types_.add_array(TRY(stand_in(array.element, depth + 1)), int32_, array.count);
    }
    case Kind::enum_:
    case Kind::enum64: return types_.add_enum(type.name, type.size_or_type, {});
    case Kind::struct_:
    case Kind::union_: return types_.add_struct(type.name, type.size_or_type, {}, type.kind == Kind::union_);
    default: return types_.add_ptr(0);
    }
}

Result<TypeId> KernelTypes::write_struct(size_t index, int depth) {
    if (structs_[index].id != 0) return structs_[index].id;
    if (depth > 32) return fail(Errc::invalid_argument, "{}: structs are nested more than 32 deep", unit_);
    std::vector<btf::Writer::Field> fields;
    for (const LocalStruct::Field &field : structs_[index].fields) {
        const TypeId id = field.inner != SIZE_MAX ? TRY(write_struct(field.inner, depth + 1)) : TRY(stand_in(field.kernel_type));
        fields.push_back({field.name, id, field.bit_offset});
    }
    const LocalStruct &local = structs_[index];
    structs_[index].id = types_.add_struct(local.name, local.size, fields, local.is_union);
    return structs_[index].id;
}

Result<void> KernelTypes::find_fields(const Unit &unit) {
    for (const Function &function : unit.functions)
        for (const Ref &ref : function.refs)
            if (ref.kind == RefKind::field && uses_.find(ref.symbol) == uses_.end())
                uses_.emplace(ref.symbol, TRY(find_field(ref.symbol)));
    // Members stand in the order of their places, or the kernel refuses the types.
    for (LocalStruct &local : structs_)
        stable_sort(local.fields, [](const auto &a, const auto &b) { return a.bit_offset < b.bit_offset; });
    for (auto &[path, use] : uses_) {
        (void)TRY(write_struct(use.root));
        use.access = "0";
        for (auto &[at, name] : use.steps) {
            size_t place = 0;
            while (structs_[at].fields[place].name != name) ++place;
            append(use.access, ":{}", place);
        }
    }
    return {};
}

// Whoever loads the object compares: kinds of types, through pointers.
Result<TypeId> KernelTypes::prototype(const std::string &name) {
    if (!kernel_)
        return Unexpected(make_error(
            Errc::unsupported,
            format("{}: {} is a kernel function, and there are no kernel types to look up its prototype in", unit_, name),
            "--btf FILE gives them"));
    const std::optional<TypeId> id = kernel_->find(name, Kind::func);
    if (!id)
        return Unexpected(make_error(Errc::not_found, format("{}: the kernel has no function {}", unit_, name),
                                     "the prototype of a module's function is in the module's types"));
    const btf::Type function = TRY(kernel_->type(*id)), proto = TRY(kernel_->type(function.size_or_type));
    if (proto.kind != Kind::func_proto) return fail(Errc::bad_input, "{}: the kernel's {} has no prototype", unit_, name);
    return copy_of(proto, 0);
}

Result<TypeId> KernelTypes::copy_of(const btf::Type &proto, int depth) {
    std::vector<std::string> names;
    std::vector<TypeId> ids;
    for (uint32_t i = 0; i < proto.vlen; ++i) {
        const btf::Param param = TRY(kernel_->param(proto, i));
        names.emplace_back(param.name.empty() ? format("a{}", i + 1) : std::string(param.name));
        ids.push_back(TRY(pointing(param.type, depth + 1)));
    }
    std::vector<std::pair<std::string_view, TypeId>> params;
    for (size_t i = 0; i < ids.size(); ++i) params.emplace_back(names[i], ids[i]);
    return types_.add_func_proto(TRY(pointing(proto.size_or_type, depth + 1)), params);
}

// stand_in(), but a pointer leads to what it leads to in the kernel. A struct is one by its name only.
Result<TypeId> KernelTypes::pointing(TypeId kernel_type, int depth) {
    const btf::Type type = TRY(kernel_->resolve(kernel_type));
    if (depth > 16) return fail(Errc::unsupported, "{}: pointers to pointers are nested more than 16 deep", unit_);
    switch (type.kind) {
    case Kind::void_: return TypeId{0};
    case Kind::ptr: return types_.add_ptr(TRY(pointing(type.size_or_type, depth + 1)));
    case Kind::fwd: return types_.add_fwd(type.name, type.kind_flag);
    case Kind::func_proto: return copy_of(type, depth);
    default: return stand_in(type.id);
    }
}

KernelField KernelTypes::field(std::string_view path) const {
    const FieldUse &use = uses_.find(path)->second;
    return {structs_[use.root].id, use.offset, use.access};
}

} // namespace rawbpf::inline v0::object
