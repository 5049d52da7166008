// Minimal BTF.
//
// The relocations say what they need. For each of them this file repeats the search of relocate_core() over all types of that
// name, and keeps what the search touched:
//
//      byte_off of task_struct.mm.total_vm           kept: STRUCT task_struct, of its members only mm (and the anonymous structs
//                                                    that it lies in); PTR, to nothing
//      byte_off of mm_struct.total_vm                STRUCT mm_struct with total_vm; INT long
//      enumval_value of pid_type::PIDTYPE_TGID       ENUM pid_type with that value
//      type_exists of bpf_map_ops                    STRUCT bpf_map_ops without members; what its comparison looks at
//      type_matches                                  the type and everything below it
//
// Types that are kept stay in their order and get new ids; all others become void. A struct keeps its size and each member its
// offset, so offsets, sizes and existence have the same results. Ids don't: no such file can work for a relocation that asks
// for the id of a kernel type.
//
// Types that were examined and didn't match aren't kept: the result is the same without them.
#include "runtime/object/min_btf.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "runtime/base/fail.h"
#include "runtime/btf/flat.h"
#include "runtime/object/core_field.h"
#include "runtime/object/core_path.h"

namespace rawbpf::inline v0 {
namespace object {
namespace {

using btf::Kind;
using btf::TypeId;

constexpr int kMaxDepth = 64;

class Selection {
  public:
    explicit Selection(const btf::Btf &kernel) : kernel_(kernel) {}

    /// The type, and what it is made of up to the next name: sizes and kinds come out right. `behind`: pointers are followed.
    Result<void> keep(TypeId id, bool behind, int depth = kMaxDepth) {
        for (; id != 0; --depth) {
            const btf::Type t = TRY(type_at(id, depth));
            // Without what is behind its pointers, a kept type may have to be looked at once more.
            const bool fresh = types_.try_emplace(id).second;
            if (!fresh && (!behind || !followed_.insert(id).second)) return {};
            if (fresh && behind) followed_.insert(id);
            switch (t.kind) {
            case Kind::ptr:
                if (!behind) return {};
                id = t.size_or_type;
                break;
            case Kind::array: {
                const btf::Array a = kernel_.array(t);
                TRY(keep(a.index, behind, depth - 1));
                id = a.element;
                break;
            }
            case Kind::func_proto:
                for (uint32_t i = 0; i < t.vlen; ++i) TRY(keep(TRY(kernel_.param(t, i)).type, behind, depth - 1));
                id = t.size_or_type;
                break;
            default:
                if (!btf::stands_for_another(t.kind)) return {};
                id = t.size_or_type;
            }
        }
        return {};
    }

    Result<void> keep_member(TypeId holder, uint32_t index) {
        TRY(keep(holder, false));
        types_[holder].insert(index);
        return keep(TRY(kernel_.member(TRY(kernel_.type(holder)), index)).type, false);
    }
    Result<void> keep_value(TypeId type, uint32_t index) {
        TRY(keep(type, false));
        types_[type].insert(index);
        return {};
    }

    /// The type and everything that types_match() may look at.
    Result<void> keep_all(TypeId id, bool behind_pointer, int depth = kMaxDepth) {
        for (; id != 0; --depth) {
            const btf::Type t = TRY(type_at(id, depth));
            TRY(keep(id, true));
            const bool composite = btf::is_composite(t.kind);
            if ((composite && behind_pointer) || (composite && !whole_.insert(id).second)) return {};
            switch (t.kind) {
            case Kind::struct_:
            case Kind::union_:
                for (uint32_t i = 0; i < t.vlen; ++i) {
                    TRY(keep_member(id, i));
                    TRY(keep_all(TRY(kernel_.member(t, i)).type, false, depth - 1));
                }
                return {};
            case Kind::enum_:
            case Kind::enum64:
                for (uint32_t i = 0; i < t.vlen; ++i) types_[id].insert(i);
                return {};
            case Kind::ptr:
                behind_pointer = true;
                id = t.size_or_type;
                break;
            case Kind::array: id = kernel_.array(t).element; break;
            case Kind::func_proto:
                for (uint32_t i = 0; i < t.vlen; ++i) TRY(keep_all(TRY(kernel_.param(t, i)).type, behind_pointer, depth - 1));
                id = t.size_or_type;
                break;
            default:
                if (!btf::stands_for_another(t.kind)) return {};
                id = t.size_or_type;
            }
        }
        return {};
    }

    /// Everything on the way that match_core_path() found.
    Result<void> keep_path(const CorePath &path) {
        TRY(keep(path.root, false));
        if (is_enum_kind(path.kind)) return keep_value(path.last().type, path.last().index);
        TypeId at = path.root;
        for (uint32_t i = 0; i < path.length; ++i) {
            const CorePath::Step &step = path.steps[i];
            if (step.name.empty()) { // an element: its array was kept with the member that holds it
                TRY(keep(step.type, false));
                at = step.type;
                continue;
            }
            steps_ = 0;
            if (!TRY(keep_way(TRY(kernel_.resolve(at)).id, step, kMaxDepth)))
                return fail(Errc::internal, "{}: BTF type {} has no way to its member {}", kernel_.name(), at, step.name);
            at = TRY(kernel_.member(TRY(kernel_.type(step.type)), step.index)).type;
        }
        return {};
    }

    [[nodiscard]] Result<std::vector<std::byte>> write() const {
        std::map<TypeId, TypeId> ids;
        TypeId next = 1;
        for (const auto &[id, parts] : types_) ids[id] = next++;
        auto id_of = [&](TypeId id) {
            auto at = ids.find(id);
            return at == ids.end() ? 0 : at->second;
        };
        btf::Writer w;
        for (const auto &[id, parts] : types_) {
            const btf::Type t = TRY(kernel_.type(id));
            std::vector<uint32_t> extra;
            uint32_t vlen = 0, size_or_type = t.size_or_type;
            switch (t.kind) {
            case Kind::int_: {
                const btf::IntEncoding e = kernel_.int_encoding(t);
                w.add_int(t.name, t.size_or_type, e);
                continue;
            }
            case Kind::array: {
                const btf::Array a = kernel_.array(t);
                w.add_array(id_of(a.element), id_of(a.index), a.count);
                continue;
            }
            case Kind::struct_:
            case Kind::union_:
                for (uint32_t index : parts) {
                    const btf::Member m = TRY(kernel_.member(t, index));
                    extra.push_back(w.string(m.name));
                    extra.push_back(id_of(m.type));
                    extra.push_back(t.kind_flag ? m.bit_size << 24 | m.bit_offset : m.bit_offset);
                    ++vlen;
                }
                break;
            case Kind::enum_:
            case Kind::enum64:
                for (uint32_t index : parts) {
                    const btf::EnumValue v = TRY(kernel_.enum_value(t, index));
                    extra.push_back(w.string(v.name));
                    extra.push_back(static_cast<uint32_t>(v.value));
                    if (t.kind == Kind::enum64) extra.push_back(static_cast<uint32_t>(v.value >> 32));
                    ++vlen;
                }
                break;
            case Kind::func_proto:
                size_or_type = id_of(t.size_or_type);
                for (uint32_t i = 0; i < t.vlen; ++i) {
                    const btf::Param p = TRY(kernel_.param(t, i));
                    extra.push_back(w.string(p.name));
                    extra.push_back(id_of(p.type));
                    ++vlen;
                }
                break;
            case Kind::fwd:
            case Kind::float_: break;
            case Kind::ptr:
            case Kind::typedef_:
            case Kind::const_:
            case Kind::volatile_:
            case Kind::restrict_:
            case Kind::type_tag: size_or_type = id_of(t.size_or_type); break;
            default:
                return fail(Errc::bad_input, "{}: BTF type {} ({}) is used as the type of something, which its kind can't be",
                            kernel_.name(), id, kind_name(t.kind));
            }
            const uint32_t info = uint32_t{t.kind_flag} << 31 | static_cast<uint32_t>(t.kind) << 24 | vlen;
            w.add_raw(w.string(t.name), info, size_or_type, std::as_bytes(std::span(extra)));
        }
        return w.finish();
    }
    [[nodiscard]] size_t size() const { return types_.size(); }

  private:
    Result<btf::Type> type_at(TypeId id, int depth) const {
        if (depth <= 0) return fail(Errc::bad_input, "{}: BTF type {}: it is nested too deeply", kernel_.name(), id);
        return kernel_.type(id);
    }

    /// Keeps the members on the way from struct `at`, through anonymous ones, to the step's. False: there is no way.
    Result<bool> keep_way(TypeId at, const CorePath::Step &step, int depth) {
        if (at == step.type) {
            TRY(keep_member(at, step.index));
            return true;
        }
        const btf::Type t = TRY(kernel_.type(at));
        if (!btf::is_composite(t.kind) || depth <= 0 || ++steps_ > kMostSteps) return false;
        for (uint32_t i = 0; i < t.vlen; ++i) {
            const btf::Member m = TRY(kernel_.member(t, i));
            if (!m.name.empty()) continue;
            if (!TRY(keep_way(TRY(kernel_.resolve(m.type)).id, step, depth - 1))) continue;
            TRY(keep_member(at, i));
            return true;
        }
        return false;
    }

    static constexpr uint32_t kMostSteps = 1 << 20;
    const btf::Btf &kernel_;
    std::map<TypeId, std::set<uint32_t>> types_; // with the members or values to keep
    std::set<TypeId> followed_, whole_;
    uint32_t steps_ = 0;
};

} // namespace
} // namespace object

Result<MinimalBtf> minimal_btf(std::span<const ObjectSpec> objects, const btf::Btf &kernel) {
    using namespace object;
    MinimalBtf out;
    Selection selection(kernel);
    TypeFinder finder(CoreTargets{.kernel = &kernel});
    for (const ObjectSpec &spec : objects) {
        std::optional<btf::Btf> local;
        if (!spec.btf.empty()) local = TRY(btf::Btf::parse(spec.btf, format("{}: .BTF", spec.name)));
        std::set<std::tuple<TypeId, uint32_t, std::string>> seen;
        for (const ProgramSpec &program : spec.programs)
            for (const CoreRelocation &relocation : program.core_relocations) {
                if (!seen.emplace(relocation.type, relocation.kind, relocation.access).second) continue;
                if (!local) return fail(Errc::bad_input, "{}: the object has CO-RE relocations, but no .BTF", spec.name);
                const CorePath path = TRY_IN(parse_core_path(*local, relocation), "{}: program {}: instruction {}", spec.name,
                                             program.name, relocation.insn);
                if (path.kind == CoreKind::type_id_local) continue;
                const btf::Type root = TRY(local->type(relocation.type));
                if (root.name.empty()) return fail(Errc::bad_input, "{}: rawbpf can't search for an anonymous type", spec.name);
                CorePath found;
                Mismatch why;
                bool any = false;
                for (const Candidate &candidate : TRY(finder.find(btf::essential_name(root.name), root.kind))) {
                    if (!TRY(match_core_path(path, kernel, candidate.id, found, why))) continue;
                    any = true;
                    if (path.kind == CoreKind::type_matches)
                        TRY(selection.keep_all(candidate.id, false));
                    else if (is_type_kind(path.kind))
                        TRY(selection.keep(candidate.id, true));
                    else
                        TRY(selection.keep_path(found));
                }
                ++(any ? out.relocations : out.missing);
                out.type_ids += path.kind == CoreKind::type_id_target;
            }
        for (const ProgramSpec &program : spec.programs)
            if (!program.field_references.empty())
                return fail(Errc::unsupported, "{}: it names fields by path, so it has no types to search for", spec.name);
    }
    out.btf = TRY(selection.write());
    out.types = selection.size();
    return out;
}

} // namespace rawbpf::inline v0
