// Joining types: .BTF and .BTF.ext of several objects.
//
// Every file describes `int`, `struct task_struct` and so on again; together they need each once. Types refer to each other in
// circles, so they can't be compared one after the other. Instead all are put into classes and the classes are split until
// nothing more can tell two members apart:
//
//      at first      all that look alike from outside: kind, name, size, members' names and places
//      each round    two stay together if what they refer to was together in the round before
//      at the end    the first of each class is written; the others are it
//
// A forward declaration takes the place of the struct where all structs of that name look alike, so that it splits nothing. A
// function or variable that several files name is the one that the link chose, whoever declared it.
//
// A DATASEC is written anew for each section: the variables' places are the symbols' (clang leaves global ones zero), moved with
// their section. .BTF.ext's records keep their order, with instructions moved, types and strings renumbered.
#include <algorithm>
#include <unordered_map>

#include <elf.h>

#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/btf/compare.h"
#include "runtime/btf/flat.h"
#include "runtime/btf/print_c.h"
#include "runtime/object/link_image.h"

namespace rawbpf::inline v0::object {

namespace {

using btf::Kind;
using btf::TypeId;

constexpr uint32_t kRounds = 256; // real graphs need a dozen; what isn't done by then is left as it is
constexpr uint32_t kStatic = 0, kExtern = 2;
constexpr uint16_t kExtMagic = 0xeb9f;

using Key = std::vector<uint32_t>;
struct KeyHash {
    size_t operator()(const Key &key) const {
        uint64_t hash = 14695981039346656037u; // FNV-1a
        for (uint32_t word : key) hash = (hash ^ word) * 1099511628211u;
        return static_cast<size_t>(hash ^ hash >> 29);
    }
};

bool composite(Kind kind) { return kind == Kind::struct_ || kind == Kind::union_; }

/// The ids that a type refers to, in a fixed order.
template <class F> Result<void> for_each_reference(const btf::Btf &btf, const btf::Type &t, F visit) {
    if (btf::refers(t.kind)) visit(t.size_or_type);
    switch (t.kind) {
    case Kind::array: {
        const btf::Array a = btf.array(t);
        visit(a.element);
        visit(a.index);
        break;
    }
    case Kind::struct_:
    case Kind::union_:
        for (uint32_t i = 0; i < t.vlen; ++i) visit(TRY(btf.member(t, i)).type);
        break;
    case Kind::func_proto:
        for (uint32_t i = 0; i < t.vlen; ++i) visit(TRY(btf.param(t, i)).type);
        break;
    default: break;
    }
    return {};
}

class Merger {
  public:
    explicit Merger(const LinkImage &image) : image_(image) {}

    Result<LinkedTypes> merge() {
        LinkedTypes out;
        start_.push_back(1); // node 0 is void
        for (const LinkedFile &file : image_.files) start_.push_back(start_.back() + (file.types ? file.types->end_id() - 1 : 0));
        if (start_.back() == 1) return out;
        same_.resize(start_.back());
        for (uint32_t node = 0; node < same_.size(); ++node) same_[node] = node;
        TRY(check_references());
        TRY(replace_declarations());
        TRY(make_classes());
        TRY(collect_sections());
        TRY(write_types());
        out.btf_ext = TRY(write_ext()); // adds strings
        out.btf = writer_.finish();
        return out;
    }

  private:
    // ---- nodes: the types of all files, numbered through
    // --------------------------------------------------------------------------

    [[nodiscard]] uint32_t node_of(uint32_t file, TypeId id) const { return id == 0 ? 0 : start_[file] + id - 1; }
    [[nodiscard]] uint32_t file_of(uint32_t node) const {
        return static_cast<uint32_t>(std::upper_bound(start_.begin(), start_.end(), node) - start_.begin() - 1);
    }
    [[nodiscard]] const btf::Btf &types_of(uint32_t file) const { return *image_.files[file].types; }
    [[nodiscard]] Result<btf::Type> type(uint32_t node) const {
        const uint32_t file = file_of(node);
        return types_of(file).type(node - start_[file] + 1);
    }

    Result<void> check_references() {
        for (uint32_t file = 0; file < image_.files.size(); ++file) {
            if (!image_.files[file].types) continue;
            const btf::Btf &btf = types_of(file);
            for (TypeId id = 1; id < btf.end_id(); ++id) {
                const btf::Type t = TRY(btf.type(id));
                TypeId beyond = 0;
                TRY(for_each_reference(btf, t, [&](TypeId to) { beyond = to >= btf.end_id() ? to : beyond; }));
                if (beyond)
                    return fail(Errc::bad_input, "{}: type {} refers to type {}, and the last is {}", btf.name(), id, beyond,
                                btf.end_id() - 1);
                if (static_cast<uint32_t>(t.kind) > static_cast<uint32_t>(Kind::enum64))
                    return fail(Errc::unsupported, "{}: type {} is of a kind that rawbpf doesn't know", btf.name(), id);
            }
        }
        return {};
    }

    Result<void> replace_declarations() {
        struct Structs {
            uint32_t node = 0;
            Key look;
            bool alike = true;
        };
        std::map<std::pair<std::string_view, bool>, Structs> structs;
        for (uint32_t file = 0; file < image_.files.size(); ++file) {
            if (!image_.files[file].types) continue;
            const btf::Btf &btf = types_of(file);
            for (TypeId id = 1; id < btf.end_id(); ++id) {
                const btf::Type t = TRY(btf.type(id));
                if (!composite(t.kind) || t.name.empty()) continue;
                Key look = TRY(look_of(node_of(file, id)));
                auto [at, fresh] = structs.try_emplace({t.name, t.kind == Kind::union_}, Structs{node_of(file, id), look, true});
                if (!fresh) at->second.alike &= at->second.look == look;
            }
            for (const auto &[name, id] : image_.files[file].globals)
                if (const LinkedSymbol *symbol = image_.find(name)) {
                    const LinkedFile &owner = image_.files[symbol->file];
                    auto theirs = owner.globals.find(name);
                    if (theirs == owner.globals.end()) continue;
                    if (TRY(types_of(symbol->file).type(theirs->second)).kind == TRY(btf.type(id)).kind)
                        same_[node_of(file, id)] = node_of(symbol->file, theirs->second);
                }
        }
        for (uint32_t node = 1; node < same_.size(); ++node) {
            const btf::Type t = TRY(type(node));
            if (t.kind != Kind::fwd) continue;
            auto at = structs.find({t.name, t.kind_flag});
            if (at != structs.end() && at->second.alike) same_[node] = at->second.node;
        }
        return {};
    }

    uint32_t word_of(std::string_view text) {
        return words_.try_emplace(text, static_cast<uint32_t>(words_.size())).first->second;
    }

    /// A type from outside: everything but what it refers to.
    Result<Key> look_of(uint32_t node) {
        const uint32_t file = file_of(node);
        const btf::Btf &btf = types_of(file);
        const btf::Type t = TRY(type(node));
        Key key{static_cast<uint32_t>(t.kind) << 24 | t.vlen, t.kind_flag, word_of(t.name)};
        switch (t.kind) {
        case Kind::int_: {
            const btf::IntEncoding e = btf.int_encoding(t);
            key.insert(key.end(), {t.size_or_type, e.bits, e.bit_offset,
                                   uint32_t{e.is_signed} << 2 | uint32_t{e.is_char} << 1 | uint32_t{e.is_bool}});
            break;
        }
        case Kind::float_: key.push_back(t.size_or_type); break;
        case Kind::array: key.push_back(btf.array(t).count); break;
        case Kind::struct_:
        case Kind::union_:
            key.push_back(t.size_or_type);
            for (uint32_t i = 0; i < t.vlen; ++i) {
                const btf::Member m = TRY(btf.member(t, i));
                key.insert(key.end(), {word_of(m.name), m.bit_offset, m.bit_size});
            }
            break;
        case Kind::enum_:
        case Kind::enum64:
            key.push_back(t.size_or_type);
            for (uint32_t i = 0; i < t.vlen; ++i) {
                const btf::EnumValue v = TRY(btf.enum_value(t, i));
                key.insert(key.end(), {word_of(v.name), static_cast<uint32_t>(v.value), static_cast<uint32_t>(v.value >> 32)});
            }
            break;
        case Kind::func_proto:
            for (uint32_t i = 0; i < t.vlen; ++i) key.push_back(word_of(TRY(btf.param(t, i)).name));
            break;
        case Kind::decl_tag: key.push_back(static_cast<uint32_t>(btf.decl_tag_component(t))); break;
        case Kind::var:
        case Kind::datasec: key.push_back(node); break; // each is its own
        default: break;
        }
        return key;
    }

    Result<void> make_classes() {
        const uint32_t count = static_cast<uint32_t>(same_.size());
        class_.assign(count, 0);
        std::unordered_map<Key, uint32_t, KeyHash> known;
        known.emplace(Key{}, 0); // void
        for (uint32_t node = 1; node < count; ++node)
            class_[node] = known.try_emplace(TRY(look_of(node)), static_cast<uint32_t>(known.size())).first->second;
        std::vector<std::vector<uint32_t>> references(count);
        for (uint32_t node = 1; node < count; ++node) {
            const uint32_t file = file_of(node);
            TRY(for_each_reference(types_of(file), TRY(type(node)),
                                   [&](TypeId to) { references[node].push_back(same_[node_of(file, to)]); }));
        }
        size_t before = 0;
        for (uint32_t round = 0; known.size() != before; ++round) {
            if (round == kRounds) { // hostile: nothing is merged
                for (uint32_t node = 0; node < count; ++node) class_[node] = node;
                return {};
            }
            before = known.size();
            known.clear();
            known.emplace(Key{}, 0);
            std::vector<uint32_t> next(count);
            for (uint32_t node = 1; node < count; ++node) {
                Key key{class_[node]};
                for (uint32_t to : references[node]) key.push_back(class_[to]);
                next[node] = known.try_emplace(std::move(key), static_cast<uint32_t>(known.size())).first->second;
            }
            class_ = std::move(next);
        }
        return {};
    }

    // ---- sections of variables
    // -------------------------------------------------------------------------------------------------

    struct Entry {
        uint32_t node, size;
        uint64_t offset;
    };
    struct Variables {
        std::string_view name;
        std::vector<Entry> entries;
        uint64_t size = 0;
        bool is_extern = true;
    };

    Result<void> collect_sections() {
        std::map<std::string_view, size_t> by_name;
        for (uint32_t number = 0; number < image_.files.size(); ++number) {
            const LinkedFile &file = image_.files[number];
            if (!file.types) continue;
            for (TypeId id = 1; id < file.types->end_id(); ++id) {
                const btf::Type section = TRY(file.types->type(id));
                if (section.kind != Kind::datasec) continue;
                auto [at, fresh] = by_name.try_emplace(section.name, variables_.size());
                if (fresh) variables_.push_back({section.name, {}, 0, true});
                TRY(add_variables(number, section, variables_[at->second]));
            }
        }
        for (Variables &list : variables_) {
            stable_sort(list.entries, [](const Entry &a, const Entry &b) { return a.offset < b.offset; });
            for (const Entry &entry : list.entries) listed_.push_back(entry.node);
        }
        stable_sort(listed_);
        return {};
    }

    Result<void> add_variables(uint32_t number, const btf::Type &section, Variables &list) {
        const LinkedFile &file = image_.files[number];
        const elf::Section *own = nullptr;
        for (const elf::Section &s : file.elf.sections())
            if (s.name == section.name && file.places[s.index].section != kNoSection) own = &s;
        const LinkPlace place = own ? file.places[own->index] : LinkPlace{};
        if (own && !image_.holds(number, place))
            return {}; // the license of another file: its bytes and its variable are the section's
        if (own) {
            list.is_extern = false;
            list.size = image_.sections[place.section].size;
        }
        for (uint32_t i = 0; i < section.vlen; ++i) {
            const btf::VarSecinfo info = TRY(file.types->secinfo(section, i));
            const btf::Type var = TRY(file.types->type(info.type));
            const uint32_t node = node_of(number, info.type);
            if (same_[node] != node) continue; // another file has it
            if (var.kind != Kind::var && var.kind != Kind::func)
                return fail(Errc::bad_input, "{}: section {} lists type {}, which is a {} and not a variable or function",
                            file.types->name(), section.name, info.type, btf::kind_name(var.kind));
            Entry entry{node, info.size, info.offset};
            const uint32_t linkage = var.kind == Kind::var ? file.types->var_linkage(var) : kExtern;
            const LinkedSymbol *symbol = linkage == kStatic ? nullptr : image_.find(var.name);
            if (linkage != kExtern && !own) continue; // its section isn't linked
            if (symbol && symbol->defined && linkage != kExtern) {
                const elf::Symbol &definition = image_.files[symbol->file].symbols[symbol->symbol];
                entry.offset = definition.value;
                if (entry.size == 0) entry.size = static_cast<uint32_t>(definition.size);
            }
            if (linkage != kExtern) entry.offset += place.offset;
            list.entries.push_back(entry);
        }
        return {};
    }

    // ---- output
    // -----------------------------------------------------------------------------------------------------------------------

    [[nodiscard]] TypeId id_of(uint32_t node) const { return ids_[same_[node]]; }

    Result<void> write_types() {
        ids_.assign(same_.size(), 0);
        std::unordered_map<uint32_t, uint32_t> first; // class -> node
        std::vector<uint32_t> order;
        TypeId next = 1;
        for (uint32_t node = 1; node < same_.size(); ++node) {
            if (same_[node] != node) continue;
            const btf::Type t = TRY(type(node));
            if (t.kind == Kind::datasec) continue;
            if (t.kind == Kind::var && !std::binary_search(listed_.begin(), listed_.end(), node) &&
                types_of(file_of(node)).var_linkage(t) != kExtern)
                continue;
            auto [at, fresh] = first.try_emplace(class_[node], node);
            if (fresh) {
                order.push_back(node);
                ids_[node] = next++;
            } else {
                ids_[node] = ids_[at->second];
            }
        }
        for (uint32_t node : order) TRY(write_type(node));
        for (const Variables &list : variables_) {
            if (list.entries.empty()) continue;
            std::vector<btf::VarSecinfo> infos;
            for (const Entry &entry : list.entries)
                infos.push_back({id_of(entry.node), static_cast<uint32_t>(entry.offset), entry.size});
            writer_.add_datasec(list.name, list.is_extern ? 0 : static_cast<uint32_t>(list.size), infos);
        }
        return {};
    }

    Result<void> write_type(uint32_t node) {
        const uint32_t file = file_of(node);
        const btf::Btf &btf = types_of(file);
        const btf::Type t = TRY(type(node));
        auto id = [&](TypeId old) { return id_of(node_of(file, old)); };
        std::vector<uint32_t> extra;
        const uint32_t size_or_type = btf::refers(t.kind) ? id(t.size_or_type) : t.size_or_type;
        switch (t.kind) {
        case Kind::int_: writer_.add_int(t.name, t.size_or_type, btf.int_encoding(t)); return {};
        case Kind::array: {
            const btf::Array a = btf.array(t);
            writer_.add_array(id(a.element), id(a.index), a.count);
            return {};
        }
        case Kind::struct_:
        case Kind::union_:
            for (uint32_t i = 0; i < t.vlen; ++i) {
                const btf::Member m = TRY(btf.member(t, i));
                extra.push_back(writer_.string(m.name));
                extra.push_back(id(m.type));
                extra.push_back(t.kind_flag ? m.bit_size << 24 | m.bit_offset : m.bit_offset);
            }
            break;
        case Kind::enum_:
        case Kind::enum64:
            for (uint32_t i = 0; i < t.vlen; ++i) {
                const btf::EnumValue v = TRY(btf.enum_value(t, i));
                extra.push_back(writer_.string(v.name));
                extra.push_back(static_cast<uint32_t>(v.value));
                if (t.kind == Kind::enum64) extra.push_back(static_cast<uint32_t>(v.value >> 32));
            }
            break;
        case Kind::func_proto:
            for (uint32_t i = 0; i < t.vlen; ++i) {
                const btf::Param p = TRY(btf.param(t, i));
                extra.push_back(writer_.string(p.name));
                extra.push_back(id(p.type));
            }
            break;
        case Kind::var: extra.push_back(btf.var_linkage(t)); break;
        case Kind::decl_tag: extra.push_back(static_cast<uint32_t>(btf.decl_tag_component(t))); break;
        default: break;
        }
        const uint32_t info = uint32_t{t.kind_flag} << 31 | static_cast<uint32_t>(t.kind) << 24 | t.vlen;
        writer_.add_raw(writer_.string(t.name), info, size_or_type, std::as_bytes(std::span(extra)));
        return {};
    }

    // ---- .BTF.ext
    // --------------------------------------------------------------------------------------------------------------

    struct Part {
        uint32_t words;                                                                // of a record
        std::vector<std::pair<std::string_view, std::vector<uint32_t>>> sections = {}; // records by section
        std::vector<uint32_t> &of(std::string_view name) {
            for (auto &[known, records] : sections)
                if (known == name) return records;
            return sections.emplace_back(name, std::vector<uint32_t>()).second;
        }
    };

    Result<std::vector<std::byte>> write_ext() {
        Part parts[3] = {{2}, {4}, {4}}; // functions, lines, CO-RE
        bool any = false;
        for (uint32_t number = 0; number < image_.files.size(); ++number) {
            const LinkedFile &file = image_.files[number];
            if (!file.types || !file.btf_ext || file.btf_ext->size == 0) continue;
            any = true;
            TRY_IN(read_ext(number, parts), "{}: .BTF.ext", file.name);
        }
        if (!any) return std::vector<std::byte>();
        std::vector<uint32_t> out = {0, 32, 0, 0, 0, 0, 0, 0}; // magic and version, header length, (offset, length) of each part
        out[0] = kExtMagic | 1u << 16;
        for (uint32_t p = 0; p < 3; ++p) {
            const size_t begin = out.size();
            if (!parts[p].sections.empty()) out.push_back(parts[p].words * 4);
            for (const auto &[name, records] : parts[p].sections) {
                out.push_back(writer_.string(name));
                out.push_back(static_cast<uint32_t>(records.size() / parts[p].words));
                out.insert(out.end(), records.begin(), records.end());
            }
            out[2 + p * 2] = static_cast<uint32_t>(begin * 4 - 32);
            out[3 + p * 2] = static_cast<uint32_t>((out.size() - begin) * 4);
        }
        const Bytes bytes = std::as_bytes(std::span(out));
        return std::vector<std::byte>(bytes.begin(), bytes.end());
    }

    Result<void> read_ext(uint32_t number, Part (&parts)[3]) {
        const LinkedFile &file = image_.files[number];
        ByteReader header = file.elf.reader(*file.btf_ext);
        const uint16_t magic = TRY(header.read<uint16_t>());
        const uint16_t version = TRY(header.read<uint16_t>());
        if (magic != kExtMagic || (version & 0xff) != 1)
            return fail(Errc::bad_input, "magic number {:#x}, version {}: this isn't a .BTF.ext", magic, version & 0xff);
        const uint32_t header_size = TRY(header.read<uint32_t>());
        uint32_t fields[6] = {};
        for (size_t i = 0; i < std::size(fields) && header.offset() + 4 <= header_size; ++i)
            fields[i] = TRY(header.read<uint32_t>());
        for (uint32_t p = 0; p < 3; ++p) {
            if (fields[p * 2 + 1] == 0) continue;
            ByteReader whole = file.elf.reader(*file.btf_ext);
            TRY(whole.seek(uint64_t{header_size} + fields[p * 2]));
            ByteReader part(TRY(whole.take(fields[p * 2 + 1])), "part", whole.offset());
            const uint32_t record = TRY(part.read<uint32_t>());
            if (record < parts[p].words * 4 || record % 4)
                return fail(Errc::bad_input, "the records have {} bytes, which is too few or no multiple of 4", record);
            while (!part.done()) {
                const std::string_view name = TRY(file.types->string(TRY(part.read<uint32_t>())));
                const uint32_t count = TRY(part.read<uint32_t>());
                const Bytes records = TRY(part.take(uint64_t{count} * record));
                const elf::Section *own = file.elf.find_section(name);
                if (!own || file.places[own->index].section == kNoSection) continue;
                std::vector<uint32_t> &into = parts[p].of(image_.sections[file.places[own->index].section].name);
                for (size_t at = 0; at < records.size(); at += record)
                    TRY(add_record(number, p, *own, records.data() + at, into));
            }
        }
        return {};
    }

    Result<void> add_record(uint32_t number, uint32_t part, const elf::Section &own, const std::byte *raw,
                            std::vector<uint32_t> &into) {
        const LinkedFile &file = image_.files[number];
        const uint32_t offset = load<uint32_t>(raw);
        if (offset >= own.size)
            return fail(Errc::bad_input, "a record is for byte {:#x} of section {}, which has {:#x}", offset, own.name, own.size);
        auto word = [&](size_t i) { return load<uint32_t>(raw + i * 4); };
        auto text = [&](uint32_t at) -> Result<uint32_t> { return writer_.string(TRY(file.types->string(at))); };
        auto type_id = [&](TypeId id) -> Result<uint32_t> {
            if (id >= file.types->end_id())
                return fail(Errc::bad_input, "a record has type {}, and the last is {}", id, file.types->end_id() - 1);
            return id_of(node_of(number, id));
        };
        into.push_back(offset + static_cast<uint32_t>(file.places[own.index].offset));
        if (part == 0) {
            into.push_back(TRY(type_id(word(1))));
        } else if (part == 1) {
            into.push_back(TRY(text(word(1))));
            into.push_back(TRY(text(word(2))));
            into.push_back(word(3));
        } else {
            into.push_back(TRY(type_id(word(1))));
            into.push_back(TRY(text(word(2))));
            into.push_back(word(3));
        }
        return {};
    }

    const LinkImage &image_;
    std::vector<uint32_t> start_; // first node of each file; one more for the end
    std::vector<uint32_t> same_;  // by node: who stands for it
    std::vector<uint32_t> class_;
    std::vector<TypeId> ids_;
    std::unordered_map<std::string_view, uint32_t> words_;
    std::vector<Variables> variables_;
    std::vector<uint32_t> listed_;
    btf::Writer writer_;
};

/// The declared type of a VAR or FUNC, modifiers and typedefs off.
Result<btf::Type> declared(const LinkedFile &file, TypeId id) {
    return file.types->resolve(TRY(file.types->type(id)).size_or_type);
}

/// A map's definition is numbers in the guise of types (`int (*max_entries)[8]`), so all of it counts, but an extern may declare
/// it by a forward declaration alone. Of other variables and of functions only what the code relies on counts.
Result<bool> agree(const LinkedFile &a, const btf::Type &x, const LinkedFile &b, const btf::Type &y, bool map) {
    if (x.kind == Kind::void_ || y.kind == Kind::void_) return true; // `extern const void symbol`
    if (!map || x.kind == Kind::fwd || y.kind == Kind::fwd) return btf::declarations_match(*a.types, x.id, *b.types, y.id);
    return TRY(btf::types_match(*a.types, x.id, *b.types, y.id)) && TRY(btf::types_match(*b.types, y.id, *a.types, x.id));
}

} // namespace

Result<void> check_link_types(std::string_view name, const LinkedFile &a, const LinkedFile &b, bool map) {
    auto x = a.globals.find(name), y = b.globals.find(name);
    if (x == a.globals.end() || y == b.globals.end()) return {};
    const btf::Type in_a = TRY(a.types->type(x->second)), in_b = TRY(b.types->type(y->second));
    if (in_a.kind == in_b.kind && TRY_IN(agree(a, TRY(declared(a, x->second)), b, TRY(declared(b, y->second)), map), "{}", name))
        return {};
    return Unexpected(make_error(Errc::invalid_argument, format("{} and {} disagree about {}", a.name, b.name, name),
                                 format("{}: {}\n{}: {}", a.name, btf::describe(*a.types, in_a.size_or_type), b.name,
                                        btf::describe(*b.types, in_b.size_or_type))));
}

Result<LinkedTypes> link_types(const LinkImage &image) { return Merger(image).merge(); }

} // namespace rawbpf::inline v0::object
