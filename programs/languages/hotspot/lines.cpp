#include "programs/languages/hotspot/lines.h"

#include <algorithm>
#include <vector>

#include "programs/languages/hotspot/fields.h"
#include "programs/languages/hotspot/unsigned5.h"
#include "runtime/symbols/long_names.h"

namespace rawbpf::inline v0::languages::hotspot {
namespace {

constexpr uint32_t kMostBytecodes = UINT16_MAX;
constexpr uint32_t kMostLineBytes = 1 << 18; // each bytecode may have a line of its own

std::string symbol_text(Memory &memory, const MethodOffsets &layout, uint64_t symbol) {
    const auto length = read_number(memory, symbol, layout.symbol_length);
    if (symbol == 0 || !length || *length == 0) return {};
    std::string out(std::min<uint64_t>(*length, symbols::kLongestName), '\0');
    if (!memory.read(symbol + layout.symbol_body, std::as_writable_bytes(std::span(out)))) return {};
    // It is the process's word: a name stays one line, and one name.
    std::replace_if(
        out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }, '?');
    return out;
}

std::string entry_text(Memory &memory, const MethodOffsets &layout, uint64_t constants, uint64_t index) {
    const auto symbol = memory.word(constants + layout.pool_bytes + index * sizeof(uint64_t));
    return symbol ? symbol_text(memory, layout, *symbol) : std::string();
}

void read_lines(Memory &memory, const MethodOffsets &layout, const LineOffsets &its, uint64_t const_method, uint64_t constants,
                uint64_t holder, Method &out) {
    if (const auto index = read_number(memory, its.file_of_class ? holder : constants, its.file_index); index && *index != 0)
        out.file = symbols::within_bound(entry_text(memory, layout, constants, *index));
    const auto words = read_number(memory, const_method, its.words), flags = read_number(memory, const_method, its.flags),
               bytes = read_number(memory, const_method, its.code_bytes);
    if (!words || !flags || !bytes || *bytes == 0 || *bytes > kMostBytecodes) return;
    const uint64_t behind = its.bytes + *bytes;
    out.code = const_method + its.bytes;
    out.code_bytes = static_cast<uint32_t>(*bytes);
    if ((*flags & its.has_lines) == 0 || *words > UINT32_MAX || *words * sizeof(uint64_t) <= behind) return;
    out.lines = const_method + behind;
    out.most_line_bytes = static_cast<uint32_t>(std::min<uint64_t>(*words * sizeof(uint64_t) - behind, kMostLineBytes));
}

std::optional<LineOffsets> lines_of(const VmStructs &structs) {
    std::string why;
    Fields fields(structs, why);
    LineOffsets out;
    for (const std::string_view name : {"ConstMethod::_has_linenumber_table", "ConstMethodFlags::_misc_has_linenumber_table"})
        if (const auto flag = structs.constant(name)) out.has_lines = *flag;
    out.file_of_class = !structs.offset("ConstantPool", "_source_file_name_index").has_value();
    const bool all =
        out.has_lines != 0 && fields.take(out.words, "ConstMethod", {"_constMethod_size"}) &&
        fields.take(out.code_bytes, "ConstMethod", {"_code_size"}) &&
        fields.take(out.flags, "ConstMethod", {"_flags", "_flags._flags"}) && fields.take_size(out.bytes, "ConstMethod") &&
        fields.take(out.file_index, out.file_of_class ? "InstanceKlass" : "ConstantPool", {"_source_file_name_index"});
    return all ? std::optional(out) : std::nullopt;
}

} // namespace

std::optional<MethodOffsets> methods_of(const VmStructs &structs, std::string &why) {
    MethodOffsets out;
    Fields fields(structs, why);
    const bool all =
        fields.take(out.const_method, "Method", {"_constMethod"}) && fields.take(out.constants, "ConstMethod", {"_constants"}) &&
        fields.take(out.name_index, "ConstMethod", {"_name_index"}) &&
        fields.take(out.pool_holder, "ConstantPool", {"_pool_holder"}) && fields.take_size(out.pool_bytes, "ConstantPool") &&
        fields.take(out.class_name, "Klass", {"_name"}) && fields.take(out.symbol_length, "Symbol", {"_length"}) &&
        fields.take_offset(out.symbol_body, "Symbol", {"_body", "_body[0]"});
    if (!all) return std::nullopt;
    out.lines = lines_of(structs);
    return out;
}

Method read_method(Memory &memory, const MethodOffsets &layout, uint64_t method) {
    Method out;
    const auto const_method = read_number(memory, method, layout.const_method);
    if (!const_method) return out;
    const auto constants = read_number(memory, *const_method, layout.constants),
               index = read_number(memory, *const_method, layout.name_index);
    if (!constants || !index) return out;
    const auto holder = read_number(memory, *constants, layout.pool_holder);
    const auto class_symbol = holder ? read_number(memory, *holder, layout.class_name) : std::nullopt;
    if (!class_symbol) return out;
    std::string type = symbol_text(memory, layout, *class_symbol), name = entry_text(memory, layout, *constants, *index);
    if (type.empty() || name.empty()) return out;
    std::replace(type.begin(), type.end(), '/', '.');
    out.name = symbols::within_bound(type + "." + name);
    if (layout.lines) read_lines(memory, layout, *layout.lines, *const_method, *constants, *holder, out);
    return out;
}

// Entries ascend by bytecodes, not by lines; the last one that begins at the bytecode or before it counts, and of several at one
// bytecode the first, as the JVM has it (Method::line_number_from_bci). Whether the numbers behind 0xff know a byte of 0 is told
// by the first of them: a distance in bytecodes, whose sign is its lowest bit, and which isn't negative.
uint32_t line_in(std::span<const std::byte> table, uint32_t bytecode) {
    constexpr uint8_t kLong = 0xff;
    constexpr int kLineBits = 3;
    const auto first_long =
        std::find_if(table.begin(), table.end(), [](std::byte one) { return one == std::byte{kLong} || one == std::byte{0}; });
    const bool odd =
        table.end() - first_long > 1 && *first_long != std::byte{0} && (first_long[1] & std::byte{1}) != std::byte{0};
    Numbers in(table, odd);
    int64_t at = 0, line = 0, found = 0;
    while (at < bytecode || found == 0) {
        const auto step = in.byte();
        if (!step) return 0; // it has no end
        if (*step == 0) break;
        if (*step == kLong) {
            const auto bytes = in.next_signed(), lines = in.next_signed();
            if (!bytes || !lines || *bytes < 0) return 0;
            at += *bytes, line += *lines;
        } else {
            at += *step >> kLineBits, line += *step & ((1 << kLineBits) - 1);
        }
        if (at > bytecode) break;
        found = line;
    }
    return found > 0 && found <= UINT16_MAX ? static_cast<uint32_t>(found) : 0; // a class file has 16 bits for a line
}

uint32_t line_of(Memory &memory, const Method &method, uint32_t bytecode) {
    constexpr uint32_t kMostly = 256; // bytes of a table
    if (method.lines == 0) return 0;
    for (const uint32_t bytes : {std::min(method.most_line_bytes, kMostly), method.most_line_bytes}) {
        std::vector<std::byte> table(bytes);
        if (!memory.read(method.lines, table)) return 0;
        if (const uint32_t line = line_in(table, bytecode)) return line;
    }
    return 0;
}

} // namespace rawbpf::inline v0::languages::hotspot
