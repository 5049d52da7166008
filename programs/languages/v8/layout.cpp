#include "programs/languages/v8/layout.h"

#include <map>
#include <string_view>

#include <elf.h>

#include "programs/languages/exports.h"
#include "runtime/base/bytes.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::languages::v8 {
namespace {

constexpr std::string_view kPrefix = "v8dbg_";
constexpr size_t kMostSymbols = 8192;

using Symbols = std::map<std::string, int32_t, std::less<>>; // without the prefix

/// A variable that is 0 lies in .bss, of which a file has no bytes.
std::optional<int32_t> value_of(const elf::Elf &file, Bytes bytes, uint64_t address) {
    for (const elf::Section &section : file.sections()) {
        if (section.type != SHT_NOBITS || address < section.address || address - section.address >= section.size) continue;
        if ((section.flags & SHF_TLS) == 0) return 0;
    }
    const auto at = file.file_offset(address);
    if (!at || *at > bytes.size() || bytes.size() - *at < sizeof(int32_t)) return std::nullopt;
    return load<int32_t>(bytes.data() + *at);
}

Symbols read_symbols(const elf::Elf &file, Bytes bytes) {
    Symbols out;
    each_dynamic_symbol(file, [&](std::string_view name, const elf::Symbol &symbol, size_t) {
        if (!name.starts_with(kPrefix) || symbol.value == 0) return true;
        if (const auto value = value_of(file, bytes, symbol.value)) out[std::string(name.substr(kPrefix.size()))] = *value;
        return out.size() < kMostSymbols;
    });
    return out;
}

/// The numbers that a Layout needs.
class Numbers {
  public:
    Numbers(const Symbols &symbols, std::string &why) : symbols_(symbols), why_(why) {}
    bool take(int32_t &into, std::string_view name) {
        const auto at = symbols_.find(name);
        return at == symbols_.end() ? missing(name) : (into = at->second, true);
    }
    /// The first of them that there is, whatever its field's type is called.
    bool field(int32_t &into, std::initializer_list<std::string_view> names) {
        for (const std::string_view name : names) {
            const std::string prefix = format("class_{}__", name);
            const auto at = symbols_.lower_bound(prefix);
            if (at != symbols_.end() && at->first.starts_with(prefix)) return into = at->second, true;
        }
        return missing(*names.begin());
    }
    /// The type of a class, as "type_Script__SCRIPT_TYPE".
    bool type(int32_t &into, std::string_view name) { return take(into, format("type_{}", name)); }

    /// Says why, if nothing was missing before; false.
    bool missing(std::string_view name) {
        if (why_.empty()) why_ = format("the file doesn't have v8dbg_ symbols for {}", name);
        return false;
    }

  private:
    const Symbols &symbols_;
    std::string &why_;
};

std::optional<CodeLayout> code_layout_of(const Symbols &symbols, std::string &why) {
    CodeLayout out;
    Numbers numbers(symbols, why);
    bool all = numbers.take(out.bytecodes, "off_fp_bytecode_array") && numbers.take(out.offset, "off_fp_bytecode_offset") &&
               numbers.field(out.bytecodes_data, {"BytecodeArray__data"}) &&
               numbers.type(out.bytecodes_type, "BytecodeArray__BYTECODE_ARRAY_TYPE") &&
               numbers.type(out.bytes_type, "ByteArray__BYTE_ARRAY_TYPE");
    const auto optional = [&](std::string_view name) {
        const auto at = symbols.find(name);
        return at == symbols.end() ? std::nullopt : std::optional(at->second);
    };
    out.trusted_bytes_type = optional("type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE").value_or(out.bytes_type);
    constexpr std::string_view kCodeType = "type_InstructionStream__INSTRUCTION_STREAM_TYPE";
    out.code_type = optional(kCodeType);
    out.container_type = optional("type_CodeDataContainer__CODE_DATA_CONTAINER_TYPE");
    if (out.code_type)
        all = all && numbers.field(out.begin, {"InstructionStream__instruction_start"});
    else
        all = all && (out.container_type ? numbers.field(out.begin, {"Code__instruction_start"}) : numbers.missing(kCodeType));
    if (!all) return std::nullopt;
    std::string unneeded;
    int32_t size = 0;
    if (Numbers(symbols, unneeded).field(size, {"Code__instruction_size"})) out.code_size = size;
    constexpr int32_t kMostOffset = 4096;
    for (const int32_t offset : {-out.bytecodes, -out.offset, out.bytecodes_data, out.begin, size})
        if (offset < 0 || offset > kMostOffset) {
            why = format("a field's offset is {}, which makes no sense", offset);
            return std::nullopt;
        }
    return out;
}

std::optional<Layout> layout_of(const Symbols &symbols, std::string &why) {
    Layout out;
    Numbers numbers(symbols, why);
    // Offsets of objects and frames that aren't any would only lead to nothing, but those of pointers that are compressed (as in
    // Chrome) are four bytes wide.
    int32_t word = sizeof(uint64_t), smi_shift = 0;
    if (!numbers.take(word, "TaggedSize")) word = sizeof(uint64_t), why.clear(); // before V8 8.0
    if (!numbers.take(smi_shift, "SmiShiftSize")) smi_shift = 31, why.clear();
    if (word != sizeof(uint64_t) || smi_shift != 31) {
        why = "its pointers are compressed, which isn't read";
        return std::nullopt;
    }
    const bool frame = numbers.take(out.context, "off_fp_context") && numbers.take(out.function, "off_fp_function");
    const bool objects =
        numbers.field(out.map, {"HeapObject__map"}) && numbers.field(out.instance_type, {"Map__instance_type"}) &&
        numbers.field(out.shared, {"JSFunction__shared"}) &&
        numbers.field(out.name_or_scope, {"SharedFunctionInfo__name_or_scope_info"}) &&
        numbers.field(out.script, {"SharedFunctionInfo__script", "SharedFunctionInfo__script_or_debug_info"}) &&
        numbers.field(out.script_name, {"Script__name"}) && numbers.field(out.script_source, {"Script__source"}) &&
        numbers.field(out.line_ends, {"Script__line_ends"}) && numbers.field(out.array_length, {"FixedArrayBase__length"}) &&
        numbers.field(out.array_data, {"FixedArray__data"});
    const bool strings =
        numbers.field(out.string_length, {"String__length"}) && numbers.field(out.one_byte_chars, {"SeqOneByteString__chars"}) &&
        numbers.field(out.two_byte_chars, {"SeqTwoByteString__chars"}) && numbers.field(out.cons_first, {"ConsString__first"}) &&
        numbers.field(out.cons_second, {"ConsString__second"}) && numbers.field(out.sliced_parent, {"SlicedString__parent"}) &&
        numbers.field(out.sliced_offset, {"SlicedString__offset"}) && numbers.field(out.thin_actual, {"ThinString__actual"}) &&
        numbers.take(out.first_nonstring, "FirstNonstringType") &&
        numbers.take(out.representation_mask, "StringRepresentationMask") && numbers.take(out.one_byte, "OneByteStringTag") &&
        numbers.take(out.cons, "ConsStringTag") && numbers.take(out.sliced, "SlicedStringTag") &&
        numbers.take(out.thin, "ThinStringTag") && numbers.take(out.external, "ExternalStringTag") &&
        numbers.field(out.resource, {"ExternalString__resource"});
    const bool types = numbers.type(out.shared_type, "SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE") &&
                       numbers.type(out.script_type, "Script__SCRIPT_TYPE") &&
                       numbers.type(out.scope_type, "ScopeInfo__SCOPE_INFO_TYPE") &&
                       numbers.type(out.array_type, "FixedArray__FIXED_ARRAY_TYPE") &&
                       numbers.type(out.first_function, "JSFunction__JS_FUNCTION_TYPE") &&
                       numbers.take(out.scope_locals, "scopeinfo_idx_ncontextlocals") &&
                       numbers.take(out.scope_first, "scopeinfo_idx_first_vars");
    if (!frame || !objects || !strings || !types) return std::nullopt;
    // V8 9.0 to 11.9 have subclasses of functions behind it, and don't say how many: constructors of the arrays' kinds, of
    // classes, promises, regular expressions.
    constexpr int32_t kSubclasses = 31;
    if (!numbers.take(out.last_function, "LastJSFunctionType")) out.last_function = out.first_function + kSubclasses, why.clear();
    constexpr int32_t kMostOffset = 4096;
    const int32_t offsets[] = {
        out.map,           out.instance_type, out.shared,        out.name_or_scope,  out.script,         out.script_name,
        out.script_source, out.line_ends,     out.string_length, out.one_byte_chars, out.two_byte_chars, out.cons_first,
        out.cons_second,   out.sliced_parent, out.sliced_offset, out.resource,       out.thin_actual,    out.array_length,
        out.array_data,    out.scope_locals,  out.scope_first,   -out.context,       -out.function};
    for (const int32_t offset : offsets)
        if (offset < 0 || offset > kMostOffset) {
            why = format("a field's offset is {}, which makes no sense", offset);
            return std::nullopt;
        }
    return out;
}

} // namespace

std::optional<File> recognise(const elf::Elf &file, Bytes bytes) {
    constexpr std::string_view kOne = "v8dbg_SmiTag";
    if (!may_export(file, kOne).value_or(true) || !file.is_64() || file.big_endian()) return std::nullopt;
    const Symbols symbols = read_symbols(file, bytes);
    if (symbols.empty()) return std::nullopt;
    File out;
    out.code = executable_segments(file);
    out.told = symbols.size();
    out.layout = layout_of(symbols, out.why);
    if (!out.layout) return out;
    out.layout->code = code_layout_of(symbols, out.why_no_lines);
    for (const elf::Segment &segment : file.segments()) // with what is only read
        if (!out.sizes && out.layout->code && segment.type == PT_LOAD && (segment.flags & PF_W) == 0 &&
            segment.offset <= bytes.size() && segment.file_size <= bytes.size() - segment.offset)
            out.sizes = BytecodeSizes::find(bytes.subspan(segment.offset, segment.file_size));
    return out;
}

} // namespace rawbpf::inline v0::languages::v8
