// Types by name, and "task_struct.mm.pgd" without an access string.
//
// A DSL program has no BTF of the kernel's types; it names the field, and the path is walked in the target directly:
//
//      task_struct . mm . pgd           task_struct: struct, union or typedef of that name
//                    |    |             mm: a member, 2304 bytes in; a pointer
//                    |    `------------ pgd: a member of what mm points at, counted from there
//                    `----------------- so "task_struct.mm" is 2304 and "task_struct.mm.pgd" is 72: one load each
//
// Anonymous structs and unions are looked through; name[3] is element 3 of an array.
#include "runtime/object/core_field.h"

#include <optional>

#include "runtime/base/fail.h"
#include "runtime/object/core_path.h"

namespace rawbpf::inline v0::object {

namespace {

using btf::Kind;

constexpr uint32_t kMostMembers = 1 << 20;
constexpr int kDeepest = 32; // anonymous structs in one another

bool same_kind(Kind a, Kind b) {
    auto is_enum = [](Kind kind) { return kind == Kind::enum_ || kind == Kind::enum64; };
    return a == b || (is_enum(a) && is_enum(b));
}

/// Finds members in one BTF.
class MemberSearch {
  public:
    explicit MemberSearch(const btf::Btf &btf) : btf_(btf) {}

    /// The member's bit offset and type, through anonymous members.
    Result<std::optional<btf::Member>> member(btf::TypeId id, std::string_view name, int depth = 0) {
        const btf::Type type = TRY(btf_.resolve(id));
        if (type.kind != Kind::struct_ && type.kind != Kind::union_) return std::optional<btf::Member>();
        if (depth == kDeepest) return fail(Errc::bad_input, "{}: BTF type {}: it is nested too deeply", btf_.name(), id);
        for (uint32_t i = 0; i < type.vlen; ++i) {
            if (++looked_at_ > kMostMembers)
                return fail(Errc::bad_input, "{}: BTF type {}: it has too many members", btf_.name(), id);
            btf::Member member = TRY(btf_.member(type, i));
            if (member.name == name) return std::optional(member);
            if (!member.name.empty()) continue;
            if (std::optional<btf::Member> inner = TRY(this->member(member.type, name, depth + 1))) {
                inner->bit_offset += member.bit_offset;
                return inner;
            }
        }
        return std::optional<btf::Member>();
    }

  private:
    const btf::Btf &btf_;
    uint32_t looked_at_ = 0;
};

/// Takes the next part off a path: "a.b[3].c" gives "a", then "b" with [3] left in front, and so on.
std::string_view next_part(std::string_view &path) {
    if (path.starts_with('.')) path.remove_prefix(1);
    const size_t end = path.find_first_of(".[");
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(part.size());
    return part;
}

Result<uint64_t> next_index(std::string_view &path) {
    const size_t end = path.find(']');
    uint64_t index = 0;
    bool good = end != std::string_view::npos && end > 1;
    for (size_t i = 1; good && i < end; ++i) {
        good = path[i] >= '0' && path[i] <= '9' && index <= INT32_MAX;
        index = index * 10 + static_cast<uint64_t>(path[i] - '0');
    }
    if (!good) return fail(Errc::invalid_argument, "field path \"{}\": write an index as [NUMBER]", path);
    path.remove_prefix(end + 1);
    return index;
}

/// One candidate for the path's root.
Result<FieldPlace> walk(std::string_view path, const btf::Btf &btf, btf::TypeId root) {
    FieldPlace place;
    MemberSearch walk(btf);
    btf::TypeId id = root;
    bool first = true;
    uint64_t bits = 0;
    while (!path.empty()) {
        btf::Type type = TRY(btf.resolve(id));
        if (type.kind == Kind::ptr && !first) {
            type = TRY(btf.resolve(type.size_or_type));
            bits = 0;
        }
        first = false;
        if (path.starts_with('[')) {
            const uint64_t index = TRY(next_index(path));
            const btf::Array array = btf.array(type);
            if (type.kind != Kind::array || (array.count > 0 && index >= array.count)) {
                place.why = format("{} has no element {}", describe_type(btf, type.id), index);
                return place;
            }
            bits += index * TRY(btf.size_of(array.element)) * 8;
            id = array.element;
            continue;
        }
        const std::string_view name = next_part(path);
        if (name.empty()) return fail(Errc::invalid_argument, "a field path has an empty name");
        const std::optional<btf::Member> member = TRY(walk.member(type.id, name));
        if (!member) {
            place.why = format("{} has no field {}", describe_type(btf, type.id), name);
            return place;
        }
        bits += member->bit_offset;
        if (member->bit_size) {
            place.why = format("{}.{} is a bitfield, which has no byte offset", describe_type(btf, type.id), name);
            return place;
        }
        id = member->type;
    }
    place.offset = bits / 8;
    return place;
}

} // namespace

Result<void> TypeFinder::prepare(const std::vector<std::string_view> &essentials) {
    if (!targets_.kernel) return {}; // find() says so, if it is ever asked
    const std::vector<std::vector<btf::TypeId>> found = targets_.kernel->find_flavours(essentials);
    for (size_t i = 0; i < essentials.size(); ++i) TRY(add(kernel_[std::string(essentials[i])], *targets_.kernel, found[i]));
    return {};
}

Result<void> TypeFinder::add(std::vector<Named> &list, const btf::Btf &btf, const std::vector<btf::TypeId> &ids) {
    for (btf::TypeId id : ids) list.push_back({{&btf, id}, TRY(btf.type(id)).kind});
    return {};
}

Result<const std::vector<TypeFinder::Named> *> TypeFinder::modules_with(std::string_view essential) {
    auto known = modules_.find(essential);
    if (known != modules_.end()) return &known->second;
    if (!asked_for_modules_ && targets_.modules) module_list_ = targets_.modules(targets_.context);
    asked_for_modules_ = true;
    std::vector<Named> list;
    for (const btf::Btf *module : module_list_)
        if (module) TRY(add(list, *module, module->find_flavours(essential)));
    return &modules_.emplace(essential, std::move(list)).first->second;
}

Result<std::vector<Candidate>> TypeFinder::find(std::string_view essential, btf::Kind kind) {
    if (!targets_.kernel)
        return fail(Errc::unsupported, "needs the kernel's own types (BTF), and there are none (CONFIG_DEBUG_INFO_BTF)");
    auto known = kernel_.find(essential);
    if (known == kernel_.end()) {
        std::vector<Named> list;
        TRY(add(list, *targets_.kernel, targets_.kernel->find_flavours(essential)));
        known = kernel_.emplace(essential, std::move(list)).first;
    }
    auto of_kind = [kind](const std::vector<Named> &list) {
        std::vector<Candidate> out;
        for (const Named &type : list)
            if (same_kind(type.kind, kind)) out.push_back(type.place);
        return out;
    };
    std::vector<Candidate> out = of_kind(known->second);
    if (out.empty()) out = of_kind(*TRY(modules_with(essential)));
    return out;
}

Result<FieldPlace> find_field(std::string_view path, TypeFinder &finder) {
    std::string_view rest = path;
    const std::string_view root = next_part(rest);
    if (root.empty() || rest.empty()) return fail(Errc::invalid_argument, "field path \"{}\": write it as TYPE.FIELD", path);
    FieldPlace found;
    bool any = false;
    for (Kind kind : {Kind::struct_, Kind::union_, Kind::typedef_}) {
        for (const Candidate &candidate : TRY(finder.find(root, kind))) {
            FieldPlace place = TRY_IN(walk(rest, *candidate.btf, candidate.id), "{}", path);
            if (!any || (!found.why.empty() && place.why.empty())) {
                found = std::move(place);
            } else if (found.why.empty() && place.why.empty() && found.offset != place.offset) {
                return fail(Errc::unsupported, "{}: the kernel's types disagree: offsets {} and {}", path, found.offset,
                            place.offset);
            }
            any = true;
        }
        if (any) break;
    }
    if (!any) found.why = format("there is no type {} in this kernel", root);
    return found;
}

} // namespace rawbpf::inline v0::object
