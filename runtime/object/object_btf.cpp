// Completes, on a copy, what the compiler leaves open in .BTF.
//
// clang writes .BTF before it knows the addresses of variables, so a DATASEC's size and the offsets of its global variables
// are zero. The kernel requires correct, ascending ones:
//
//      DATASEC ".data" size 0            DATASEC ".data" size 16
//        VAR b  offset 0 size 8    -->     VAR a  offset 0 size 4      from the symbols and the section header
//        VAR a  offset 0 size 4            VAR b  offset 8 size 8
//
// Variables and functions of hidden visibility become static: the kernel then verifies such functions with what their callers
// know, and nobody maps the data from outside. Externs (.ksyms, .kconfig) name things of the kernel. The kernel's BTF loader
// doesn't accept such variables, so each becomes an ordinary one: a 4-byte int for .ksyms (functions all share one invented
// variable), and its place in the .kconfig map for .kconfig. libbpf does the same (its bpf_object__collect_externs), since no
// other BTF is accepted by all kernels.
#include <elf.h>

#include <algorithm>

#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/object/image.h"

namespace rawbpf::inline v0::object {

namespace {

constexpr std::string_view kCallbackTag = "exception_callback:"; // __exception_cb(name) in bpf_experimental.h
constexpr uint32_t kStatic = 0, kGlobal = 1, kExtern = 2;        // BTF_VAR_* and BTF_FUNC_*
constexpr uint16_t kMagic = 0xeb9f;
constexpr uint32_t kHeaderSize = 24, kTypeSize = 12;
constexpr size_t kMostSections = 1024;
constexpr size_t kLongestString = 64 << 10; // lines of source are among them

/// Writes into the copy of .BTF that `types` reads.
class Patch {
  public:
    Patch(std::vector<std::byte> &bytes) : bytes_(bytes) {}
    void info(const btf::Type &type, uint32_t value) { store(start(type) + 4, value); }
    void size_or_type(const btf::Type &type, uint32_t value) { store(start(type) + 8, value); }
    void extra(const btf::Type &type, uint32_t word, uint32_t value) { store(start(type) + kTypeSize + word * 4, value); }
    /// FUNC keeps its linkage in the low half of info.
    void func_linkage(const btf::Type &type, uint32_t linkage) {
        const uint32_t old = load<uint32_t>(bytes_.data() + start(type) + 4);
        info(type, (old & ~0xffffu) | linkage);
    }

  private:
    size_t start(const btf::Type &type) const { return static_cast<size_t>(type.extra - bytes_.data()) - kTypeSize; }
    void store(size_t at, uint32_t value) { std::memcpy(bytes_.data() + at, &value, sizeof value); }
    std::vector<std::byte> &bytes_;
};

Error in_btf(const Image &image, std::string_view problem) {
    return make_error(Errc::bad_input, format("{}: .BTF: {}", image.name, problem));
}

/// Rebuilds the BTF with types and strings added behind the existing ones.
Result<void> extend(Image &image, ObjectSpec &spec, Bytes types, std::string_view strings) {
    const std::byte *old = spec.btf.data();
    const uint64_t header = load<uint32_t>(old + 4), type_len = load<uint32_t>(old + 12), string_len = load<uint32_t>(old + 20);
    const uint64_t type_at = header + load<uint32_t>(old + 8), string_at = header + load<uint32_t>(old + 16);
    std::vector<std::byte> out(kHeaderSize + type_len + types.size() + string_len + strings.size());
    const uint32_t words[] = {load<uint32_t>(old),
                              kHeaderSize,
                              0,
                              static_cast<uint32_t>(type_len + types.size()),
                              static_cast<uint32_t>(type_len + types.size()),
                              static_cast<uint32_t>(string_len + strings.size())};
    std::byte *to = out.data();
    auto put = [&](const void *from, size_t size) {
        if (size) std::memcpy(to, from, size);
        to += size;
    };
    put(words, sizeof words);
    put(old + type_at, type_len);
    put(types.data(), types.size());
    put(old + string_at, string_len);
    put(strings.data(), strings.size());
    spec.btf = std::move(out);
    image.types = TRY(btf::Btf::parse(spec.btf, format("{}: .BTF", image.name)));
    return {};
}

/// Alignment of a .kconfig variable, and whether its type can hold a configuration value at all.
Result<uint32_t> kconfig_alignment(const Image &image, std::string_view variable, btf::TypeId id) {
    const btf::Btf &types = *image.types;
    btf::Type type = TRY(types.resolve(id));
    bool is_array = type.kind == btf::Kind::array;
    if (is_array) {
        type = TRY(types.resolve(types.array(type).element));
        is_array = type.kind == btf::Kind::int_ && type.size_or_type == 1;
    }
    const uint32_t size = type.size_or_type;
    const bool power = size && (size & (size - 1)) == 0 && size <= 8;
    if (is_array || (type.kind == btf::Kind::int_ && power)) return size;
    if ((type.kind == btf::Kind::enum_ || type.kind == btf::Kind::enum64) && type.name == "libbpf_tristate" && power) return size;
    return fail(Errc::unsupported, "{}: .kconfig: extern {} has a type that isn't an integer, bool, tristate or char array",
                image.name, variable);
}

Result<void> collect_extern(Image &image, ObjectSpec &spec, std::string_view section, const btf::Type &type) {
    if (type.name.empty() || type.name.size() > Image::kLongestName)
        return Unexpected(in_btf(image, format("section {}: the name of an extern has {} characters, and 1 to {} are possible",
                                               section, type.name.size(), Image::kLongestName)));
    ExternSpec external;
    external.name = type.name;
    external.section = section;
    external.is_function = type.kind == btf::Kind::func;
    external.type = external.is_function ? type.id : type.size_or_type;
    const elf::Symbol *symbol = image.find_symbol(type.name);
    if (!symbol || symbol->section != SHN_UNDEF)
        return Unexpected(in_btf(image, format("extern {} in {} has no undefined symbol of that name", type.name, section)));
    external.weak = symbol->binding == STB_WEAK;
    if (section == ".kconfig") {
        if (external.is_function) return Unexpected(in_btf(image, format("function {} can't be in .kconfig", type.name)));
        external.alignment = TRY(kconfig_alignment(image, type.name, external.type));
        const uint64_t size = TRY(image.types->size_of(external.type));
        if (size == 0 || size > 4096)
            return Unexpected(
                in_btf(image, format("extern {} in .kconfig has {} bytes, and 1 to 4096 are possible", type.name, size)));
        external.size = static_cast<uint32_t>(size);
    } else if (!external.is_function) {
        const btf::Type resolved = TRY(image.types->resolve(external.type));
        if (resolved.kind == btf::Kind::void_) external.type = 0;
    }
    spec.externs.push_back(std::move(external));
    return {};
}

/// Every look at a type measures its name, so a file whose types all share one name of a megabyte would take minutes.
Result<void> check_strings(const Image &image, Bytes btf) {
    const uint64_t start = uint64_t{load<uint32_t>(btf.data() + 4)} + load<uint32_t>(btf.data() + 16);
    const Bytes strings = btf.subspan(start, load<uint32_t>(btf.data() + 20)); // parse() checked that they are inside and end
    for (size_t at = 0; at < strings.size();) {
        const void *end = std::memchr(strings.data() + at, 0, strings.size() - at);
        const size_t length = static_cast<size_t>(static_cast<const std::byte *>(end) - strings.data()) - at;
        if (length > kLongestString)
            return Unexpected(
                in_btf(image, format("the string at {:#x} has {} characters, and {} are the most", at, length, kLongestString)));
        at += length + 1;
    }
    return {};
}

/// What one look over all types finds worth coming back to.
struct Found {
    std::vector<btf::TypeId> datasecs, hidden_functions, callback_tags;
    btf::TypeId int32 = 0;
};

Result<Found> look_over(const Image &image) {
    Found found;
    for (btf::TypeId id = 1; id < image.types->end_id(); ++id) {
        const btf::Type type = TRY(image.types->type(id));
        if (type.kind == btf::Kind::datasec)
            found.datasecs.push_back(id);
        else if (type.kind == btf::Kind::func && !image.hidden.empty() && type.vlen == kGlobal &&
                 std::binary_search(image.hidden.begin(), image.hidden.end(), type.name))
            found.hidden_functions.push_back(id);
        else if (type.kind == btf::Kind::int_ && type.size_or_type == 4 && !found.int32)
            found.int32 = id;
        else if (type.kind == btf::Kind::decl_tag && type.name.starts_with(kCallbackTag) &&
                 image.types->decl_tag_component(type) == -1)
            found.callback_tags.push_back(id);
    }
    return found;
}

/// Variables of one DATASEC, decoded with their types.
Result<std::vector<btf::VarSecinfo>> variables(const Image &image, const btf::Type &section) {
    std::vector<btf::VarSecinfo> out;
    out.reserve(section.vlen);
    for (uint32_t i = 0; i < section.vlen; ++i) out.push_back(TRY(image.types->secinfo(section, i)));
    return out;
}

void write_variables(Patch &patch, const btf::Type &section, const std::vector<btf::VarSecinfo> &vars) {
    for (uint32_t i = 0; i < vars.size(); ++i) {
        patch.extra(section, i * 3, vars[i].type);
        patch.extra(section, i * 3 + 1, vars[i].offset);
        patch.extra(section, i * 3 + 2, vars[i].size);
    }
}

/// .ksyms: every entry becomes a 4-byte int, one behind the other; functions get the made-up variable.
Result<void> rewrite_ksyms(Image &image, ObjectSpec &spec, btf::TypeId section_id, btf::TypeId int32) {
    const btf::Type before = TRY(image.types->type(section_id));
    std::vector<btf::VarSecinfo> vars = TRY(variables(image, before));
    bool functions = false;
    for (const btf::VarSecinfo &var : vars) functions |= TRY(image.types->type(var.type)).kind == btf::Kind::func;

    btf::TypeId dummy = 0;
    uint32_t dummy_name = 0;
    if (functions || !int32) {
        // [ INT "int" ] [ VAR "dummy_ksym" -> int ] with their strings
        const std::string_view names("int\0dummy_ksym\0", 15);
        const uint32_t names_at = load<uint32_t>(spec.btf.data() + 20);
        std::vector<uint32_t> added;
        btf::TypeId next = image.types->end_id();
        if (!int32) {
            added.insert(added.end(), {names_at, 1u << 24, 4, (1u << 24) | 32}); // signed, 32 bits
            int32 = next++;
        }
        dummy = next;
        dummy_name = names_at + 4;
        added.insert(added.end(), {dummy_name, 14u << 24, int32, kGlobal});
        TRY(extend(image, spec, std::as_bytes(std::span(added)), names));
    }

    Patch patch(spec.btf);
    uint32_t offset = 0;
    for (btf::VarSecinfo &var : vars) {
        const btf::Type type = TRY(image.types->type(var.type));
        if (type.kind == btf::Kind::func) {
            patch.func_linkage(type, kGlobal);
            const btf::Type proto = TRY(image.types->type(type.size_or_type));
            if (proto.kind != btf::Kind::func_proto)
                return Unexpected(in_btf(image, format("extern function {} has no prototype", type.name)));
            for (uint32_t i = 0; i < proto.vlen; ++i) {
                const btf::Param param = TRY(image.types->param(proto, i));
                if (param.type && param.name.empty()) patch.extra(proto, i * 2, dummy_name); // the kernel wants names
            }
            var.type = dummy;
        } else {
            patch.extra(type, 0, kGlobal);
            patch.size_or_type(type, int32);
        }
        var.offset = offset;
        var.size = 4;
        offset += 4;
    }
    const btf::Type section = TRY(image.types->type(section_id));
    patch.size_or_type(section, offset);
    write_variables(patch, section, vars);
    return {};
}

/// .kconfig: big alignments first, as libbpf lays the map out, so that the final instructions agree.
Result<void> lay_out_kconfig(Image &image, ObjectSpec &spec, btf::TypeId section_id) {
    uint32_t end = 0;
    std::vector<std::pair<std::string_view, uint32_t>> offsets;
    for (ExternSpec &external : spec.externs) {
        if (external.section != ".kconfig") continue;
        external.offset = (end + external.alignment - 1) / external.alignment * external.alignment;
        end = external.offset + external.size;
        offsets.emplace_back(external.name, external.offset);
    }
    stable_sort(offsets);

    Patch patch(spec.btf);
    const btf::Type section = TRY(image.types->type(section_id));
    std::vector<btf::VarSecinfo> vars = TRY(variables(image, section));
    for (btf::VarSecinfo &var : vars) {
        const btf::Type type = TRY(image.types->type(var.type));
        auto at = std::lower_bound(offsets.begin(), offsets.end(), std::pair(type.name, 0u));
        var.offset = at->second; // every variable of the section was collected
        patch.extra(type, 0, kGlobal);
    }
    patch.size_or_type(section, end);
    stable_sort(vars, [](auto &a, auto &b) { return a.offset < b.offset; });
    write_variables(patch, section, vars);
    return {};
}

Result<void> read_externs(Image &image, ObjectSpec &spec, const Found &found) {
    btf::TypeId ksyms = 0, kconfig = 0;
    for (btf::TypeId id : found.datasecs) {
        const btf::Type section = TRY(image.types->type(id));
        if (section.name != ".ksyms" && section.name != ".kconfig") continue;
        btf::TypeId &known = section.name == ".ksyms" ? ksyms : kconfig;
        if (known) return Unexpected(in_btf(image, format("two sections are called {}", section.name)));
        known = id;
        for (const btf::VarSecinfo &var : TRY(variables(image, section))) {
            const btf::Type type = TRY(image.types->type(var.type));
            if (type.kind != btf::Kind::var && type.kind != btf::Kind::func)
                return Unexpected(in_btf(
                    image, format("section {} holds type [{}], which isn't a variable or function", section.name, var.type)));
            TRY(collect_extern(image, spec, section.name, type));
        }
    }
    stable_sort(spec.externs, [](const ExternSpec &a, const ExternSpec &b) {
        if (a.section != b.section) return a.section < b.section; // .kconfig, .ksyms
        if (a.alignment != b.alignment) return a.alignment > b.alignment;
        if (a.size != b.size) return a.size < b.size;
        return a.name < b.name;
    });
    for (size_t i = 1; i < spec.externs.size(); ++i)
        if (spec.externs[i - 1].name == spec.externs[i].name)
            return Unexpected(in_btf(image, format("extern {} is declared twice", spec.externs[i].name)));
    image.extern_of_symbol.assign(image.symbols.size(), Image::kNone);
    for (uint32_t i = 0; i < spec.externs.size(); ++i)
        image.extern_of_symbol[image.symbol_index(*image.find_symbol(spec.externs[i].name))] = i;
    if (kconfig) TRY(lay_out_kconfig(image, spec, kconfig));
    if (ksyms) TRY(rewrite_ksyms(image, spec, ksyms, found.int32));
    return {};
}

Result<void> fix_datasec(Image &image, ObjectSpec &spec, btf::TypeId id) {
    const btf::Type section = TRY(image.types->type(id));
    if (section.name == ".ksyms" || section.name == ".kconfig") {
        image.datasecs.push_back({section.name, id, true});
        return {};
    }
    bool has_global = false;
    Patch patch(spec.btf);
    const bool unplaced = section.size_or_type == 0; // a linked object has its sizes and offsets already
    if (unplaced) {
        const elf::Section *place = image.find_section(section.name);
        if (!place || place->size == 0 || place->size > UINT32_MAX)
            return Unexpected(
                in_btf(image, format("section {} has variables, but the file has no section of that name, or an empty one",
                                     section.name)));
        patch.size_or_type(section, static_cast<uint32_t>(place->size));
    }
    std::vector<btf::VarSecinfo> vars = TRY(variables(image, section));
    for (btf::VarSecinfo &var : vars) {
        const btf::Type type = TRY(image.types->type(var.type));
        if (type.kind != btf::Kind::var)
            return Unexpected(
                in_btf(image, format("section {} holds type [{}], which isn't a variable", section.name, var.type)));
        const uint32_t linkage = image.types->var_linkage(type);
        has_global |= linkage == kExtern;
        if (linkage == kStatic || linkage == kExtern) continue;
        const elf::Symbol *symbol = image.find_symbol(type.name);
        if (!symbol) return Unexpected(in_btf(image, format("variable {} of section {} has no symbol", type.name, section.name)));
        if (unplaced) {
            if (symbol->value > UINT32_MAX)
                return Unexpected(
                    in_btf(image, format("variable {} is at {:#x}, beyond the largest offset", type.name, symbol->value)));
            var.offset = static_cast<uint32_t>(symbol->value);
        }
        const bool hidden = symbol->visibility == STV_HIDDEN || symbol->visibility == STV_INTERNAL;
        if (hidden) patch.extra(type, 0, kStatic);
        has_global |= !hidden;
    }
    stable_sort(vars, [](const btf::VarSecinfo &a, const btf::VarSecinfo &b) { return a.offset < b.offset; });
    write_variables(patch, section, vars);
    image.datasecs.push_back({section.name, id, has_global});
    return {};
}

} // namespace

Result<void> read_btf(Image &image, ObjectSpec &spec) {
    image.extern_of_symbol.assign(image.symbols.size(), Image::kNone);
    if (!image.btf) return {};
    const Bytes bytes = image.elf.contents(*image.btf);
    spec.btf.assign(bytes.begin(), bytes.end());
    image.types = TRY(btf::Btf::parse(spec.btf, format("{}: .BTF", image.name)));

    if (load<uint16_t>(spec.btf.data()) != kMagic) return Unexpected(in_btf(image, "it has another byte order than the object"));

    TRY(check_strings(image, spec.btf));
    const Found found = TRY(look_over(image));
    if (found.datasecs.size() > kMostSections)
        return Unexpected(
            in_btf(image, format("it has {} sections of variables, and {} are the most", found.datasecs.size(), kMostSections)));
    TRY(read_externs(image, spec, found));
    for (btf::TypeId id : found.datasecs) TRY(fix_datasec(image, spec, id));
    for (btf::TypeId id : found.callback_tags) {
        const btf::Type tag = TRY(image.types->type(id));
        const btf::Type function = TRY(image.types->type(tag.size_or_type));
        if (function.kind != btf::Kind::func) continue;
        image.exception_callbacks.push_back({std::string(function.name), std::string(tag.name.substr(kCallbackTag.size()))});
        if (image.exception_callbacks.size() > kMostSections)
            return Unexpected(in_btf(image, format("it has more than {} exception callbacks", kMostSections)));
    }
    Patch patch(spec.btf);
    for (btf::TypeId id : found.hidden_functions) patch.func_linkage(TRY(image.types->type(id)), kStatic);
    return {};
}

} // namespace rawbpf::inline v0::object
