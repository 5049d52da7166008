// A format file, which the kernel writes from the TRACE_EVENT macros:
//
//      name: sys_enter_openat
//      format:
//              field:unsigned short common_type;       offset:0;       size:2; signed:0;
//              field:const char * filename;            offset:24;      size:8; signed:0;
//              field:char comm[16];                    offset:8;       size:16;        signed:0;
//              field:__data_loc char[] name;           offset:8;       size:4; signed:0;
//      print fmt: ...
//
// A BPF program on the tracepoint gets that record. The first 8 bytes, the common fields, aren't for it: the verifier says no.
#include "programs/trace/format_file.h"

#include "runtime/base/fail.h"
#include "runtime/symbols/text.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr size_t kMostFields = 64;

// "offset:24;" -> 24, and the cursor behind it.
bool number_behind(std::string_view &line, std::string_view label, uint64_t &value) {
    const size_t at = line.find(label);
    if (at == std::string_view::npos) return false;
    symbols::TextCursor cursor(line.substr(at + label.size()));
    if (!cursor.decimal(value)) return false;
    line = cursor.rest();
    return true;
}

} // namespace

Result<Fields> parse_format(std::string_view text, std::string_view name) {
    Fields out;
    for (size_t number = 1; !text.empty(); ++number) {
        std::string_view line = symbols::take_line(text);
        constexpr std::string_view kField = "field:";
        const size_t begin = line.find(kField);
        if (begin == std::string_view::npos) continue;
        const size_t end = line.find(';', begin);
        if (end == std::string_view::npos) return fail(Errc::bad_input, "{}: format: line {}: no end of the field", name, number);
        const std::string_view declaration = line.substr(begin + kField.size(), end - begin - kField.size());
        std::string_view rest = line.substr(end);
        uint64_t offset = 0, size = 0, is_signed = 0;
        if (!number_behind(rest, "offset:", offset) || !number_behind(rest, "size:", size) || offset > 0xffff || size > 0xffff)
            return fail(Errc::bad_input, "{}: format: line {}: no offset and size", name, number);
        (void)number_behind(rest, "signed:", is_signed);
        Parameter field = parse_field(declaration, static_cast<uint32_t>(size), is_signed != 0);
        if (field.name.starts_with("common_") || field.name == "__syscall_nr" || offset < 8) continue;
        if (out.fields.size() == kMostFields) break;
        out.fields.push_back(std::move(field));
        out.offsets.push_back(static_cast<uint16_t>(offset));
    }
    return out;
}

} // namespace rawbpf::inline v0::trace
