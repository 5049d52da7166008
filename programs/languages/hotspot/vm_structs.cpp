#include "programs/languages/hotspot/vm_structs.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <span>

#include "programs/languages/exports.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::languages::hotspot {
namespace {

constexpr size_t kMostEntries = 8192, kLongestText = 256;

constexpr std::string_view kTables = "gHotSpotVMStructs";

/// C++'s own types, as the tables spell them. Whatever else a field is, it is a pointer or no number.
struct Width {
    std::string_view type;
    uint8_t bytes;
    bool negative;
};
constexpr Width kWidths[] = {
    {"bool", 1, false},         {"u1", 1, false},     {"u2", 2, false},       {"unsigned short", 2, false},
    {"uint16_t", 2, false},     {"int16_t", 2, true}, {"short", 2, true},     {"int", 4, true},
    {"unsigned int", 4, false}, {"uint", 4, false},   {"u4", 4, false},       {"uint32_t", 4, false},
    {"int32_t", 4, true},       {"size_t", 8, false}, {"uint64_t", 8, false}, {"address", 8, false},
};

/// One of the two tables: where it begins, its entries' distance, and the offsets in an entry.
template <size_t n> std::optional<std::array<uint64_t, n>> read_symbols(Memory &memory, const Interpreter &file, uint64_t bias,
                                                                        const std::array<std::string_view, n> &names,
                                                                        std::string &why) {
    std::array<uint64_t, n> out{};
    for (size_t i = 0; i < n; ++i) {
        const uint64_t address = file.address(names[i]);
        const auto value = address == 0 ? std::nullopt : memory.word(address + bias);
        if (!value) {
            why = address == 0 ? format("libjvm.so has no symbol {}", names[i]) : format("{} can't be read", names[i]);
            return std::nullopt;
        }
        out[i] = *value;
    }
    return out;
}

std::optional<std::string> text_at(Memory &memory, uint64_t pointer) {
    const auto address = memory.word(pointer);
    if (!address) return std::nullopt;
    return *address == 0 ? std::optional(std::string()) : memory.text(*address, kLongestText);
}

/// One whose entries are a name and a number: where it is, their distance, and the two offsets in an entry.
template <class Read> bool read_named(Memory &memory, const std::array<uint64_t, 4> &table, Read &&value_at,
                                      std::map<std::string, uint64_t, std::less<>> &into) {
    const auto &[first, stride, name_at, number_at] = table;
    for (size_t i = 0; i < kMostEntries; ++i) {
        const uint64_t entry = first + i * stride;
        auto name = text_at(memory, entry + name_at);
        if (name && name->empty()) break; // the last one
        const auto number = value_at(entry + number_at);
        if (!name || !number) return false;
        into.try_emplace(std::move(*name), *number);
    }
    return true;
}

} // namespace

std::optional<Interpreter> recognise(const elf::Elf &file, Bytes bytes) {
    if (!may_export(file, kTables).value_or(true)) return std::nullopt;
    Interpreter out = exported(file, bytes,
                               {kTables, "gHotSpotVMStructEntryArrayStride", "gHotSpotVMStructEntryTypeNameOffset",
                                "gHotSpotVMStructEntryFieldNameOffset", "gHotSpotVMStructEntryTypeStringOffset",
                                "gHotSpotVMStructEntryIsStaticOffset", "gHotSpotVMStructEntryOffsetOffset",
                                "gHotSpotVMStructEntryAddressOffset", "gHotSpotVMTypes", "gHotSpotVMTypeEntryArrayStride",
                                "gHotSpotVMTypeEntryTypeNameOffset", "gHotSpotVMTypeEntrySizeOffset", "gHotSpotVMIntConstants",
                                "gHotSpotVMIntConstantEntryArrayStride", "gHotSpotVMIntConstantEntryNameOffset",
                                "gHotSpotVMIntConstantEntryValueOffset"},
                               {});
    if (out.address(kTables) == 0) return std::nullopt;
    return out;
}

std::optional<VmStructs> VmStructs::read(Memory &memory, const Interpreter &file, uint64_t bias, std::string &why) {
    VmStructs out;
    const auto structs = read_symbols<8>(memory, file, bias,
                                         {kTables, "gHotSpotVMStructEntryArrayStride", "gHotSpotVMStructEntryTypeNameOffset",
                                          "gHotSpotVMStructEntryFieldNameOffset", "gHotSpotVMStructEntryTypeStringOffset",
                                          "gHotSpotVMStructEntryIsStaticOffset", "gHotSpotVMStructEntryOffsetOffset",
                                          "gHotSpotVMStructEntryAddressOffset"},
                                         why);
    const auto types = read_symbols<4>(memory, file, bias,
                                       {"gHotSpotVMTypes", "gHotSpotVMTypeEntryArrayStride", "gHotSpotVMTypeEntryTypeNameOffset",
                                        "gHotSpotVMTypeEntrySizeOffset"},
                                       why);
    if (!structs || !types) return std::nullopt;
    const auto &[first, stride, type_at, name_at, kind_at, static_at, offset_at, address_at] = *structs;
    for (size_t i = 0; i < kMostEntries; ++i) {
        const uint64_t entry = first + i * stride;
        auto type = text_at(memory, entry + type_at);
        if (type && type->empty()) break; // the last one
        auto name = text_at(memory, entry + name_at), kind = text_at(memory, entry + kind_at);
        const auto is_static = memory.word32(entry + static_at);
        const auto offset = memory.word(entry + offset_at), address = memory.word(entry + address_at);
        if (!type || !name || !kind || !is_static || !offset || !address) {
            why = "the virtual machine's table of structures can't be read";
            return std::nullopt;
        }
        out.fields_.try_emplace({std::move(*type), std::move(*name)},
                                Field{std::move(*kind), *is_static != 0, *offset, *address});
    }
    const auto word = [&](uint64_t at) { return memory.word(at); };
    const auto word32 = [&](uint64_t at) -> std::optional<uint64_t> { return memory.word32(at); };
    if (!read_named(memory, *types, word, out.sizes_)) {
        why = "the virtual machine's table of types can't be read";
        return std::nullopt;
    }
    std::string none; // what needs constants does without
    const auto constants = read_symbols<4>(memory, file, bias,
                                           {"gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntryArrayStride",
                                            "gHotSpotVMIntConstantEntryNameOffset", "gHotSpotVMIntConstantEntryValueOffset"},
                                           none);
    if (constants && !read_named(memory, *constants, word32, out.constants_)) out.constants_.clear();
    return out;
}

const VmStructs::Field *VmStructs::find(std::string_view type, std::string_view name) const {
    const auto at = fields_.find(std::pair(std::string(type), std::string(name)));
    return at == fields_.end() ? nullptr : &at->second;
}

std::optional<Number> VmStructs::field(std::string_view type, std::string_view name) const {
    const Field *found = find(type, name);
    if (!found || found->is_variable) return std::nullopt;
    if (found->type.ends_with('*')) return Number{found->offset, 8, false};
    const auto width =
        std::find_if(std::begin(kWidths), std::end(kWidths), [&](const Width &w) { return w.type == found->type; });
    if (width == std::end(kWidths)) return std::nullopt;
    return Number{found->offset, width->bytes, width->negative};
}

std::optional<uint64_t> VmStructs::variable(std::string_view type, std::string_view name) const {
    const Field *found = find(type, name);
    return found && found->is_variable && found->address != 0 ? std::optional(found->address) : std::nullopt;
}

std::optional<uint64_t> VmStructs::offset(std::string_view type, std::string_view name) const {
    const Field *found = find(type, name);
    return found && !found->is_variable ? std::optional(found->offset) : std::nullopt;
}

std::optional<uint64_t> VmStructs::size(std::string_view type) const {
    const auto at = sizes_.find(type);
    return at == sizes_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<uint64_t> VmStructs::constant(std::string_view name) const {
    const auto at = constants_.find(name);
    return at == constants_.end() ? std::nullopt : std::optional(at->second);
}

bool has_flag(Memory &memory, const VmStructs &structs, std::string_view name) {
    constexpr uint64_t kMostFlags = 1 << 14, kMostName = 128;
    constexpr std::string_view kType = "JVMFlag";
    const auto flags = structs.variable(kType, "flags"), count = structs.variable(kType, "numFlags"), size = structs.size(kType),
               its_name = structs.offset(kType, "_name"), its_value = structs.offset(kType, "_addr");
    if (!flags || !count || !size || *size == 0 || *size > kMostName || !its_name || !its_value) return false;
    const uint64_t first = memory.word(*flags).value_or(0), number = std::min(memory.word(*count).value_or(0), kMostFlags);
    if (first == 0) return false;
    for (uint64_t i = 0; i < number; ++i) {
        const uint64_t flag = first + i * *size;
        const auto text = memory.word(flag + *its_name);
        if (!text || *text == 0 || memory.text(*text, kMostName) != name) continue;
        const auto value = memory.word(flag + *its_value);
        std::byte byte{};
        return value && memory.read(*value, {&byte, 1}) && byte == std::byte{1};
    }
    return false;
}

std::optional<uint64_t> read_number(Memory &memory, uint64_t object, const Number &number) {
    uint64_t value = 0; // little-endian, as all machines with HotSpot that are known here
    if (!memory.read(object + number.offset, std::as_writable_bytes(std::span(&value, 1)).first(number.bytes)))
        return std::nullopt;
    const unsigned unused = 64 - 8u * number.bytes;
    return number.negative ? static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused) : value;
}

} // namespace rawbpf::inline v0::languages::hotspot
