#include "programs/languages/ruby/recognise.h"

#include <algorithm>
#include <array>

#include "programs/languages/exports.h"

namespace rawbpf::inline v0::languages::ruby {
namespace {

// ruby_version is its text, as "3.1.2".
uint32_t version_of(const elf::Elf &file, Bytes bytes, uint64_t address) {
    const auto at = file.file_offset(address);
    if (!at || *at + 12 > bytes.size()) return 0;
    uint32_t version = 0, number = 0;
    for (size_t i = 0, parts = 0; i < 12 && parts < 3; ++i) {
        const char c = static_cast<char>(bytes[*at + i]);
        if (c >= '0' && c <= '9' && number < 100) {
            number = number * 10 + static_cast<uint32_t>(c - '0');
        } else {
            version = version << 8 | number;
            number = 0;
            ++parts;
            if (c != '.' && parts < 3) return 0;
        }
    }
    return version;
}

} // namespace

std::optional<Interpreter> recognise(const elf::Elf &file, Bytes bytes) {
    if (!may_export(file, "ruby_version").value_or(true)) return std::nullopt;
    Interpreter out = exported(file, bytes, {"ruby_version", "ruby_current_ec"}, "rb_vm_exec");
    if (out.address("ruby_version") == 0) return std::nullopt;
    out.version = version_of(file, bytes, out.address("ruby_version"));
    // rb_vm_exec calls what runs the instructions, its largest callee, which it may also contain. Since 3.3 it isn't exported.
    only_largest_callee(file, bytes, out);
    if (out.evaluates.empty()) out.functions = all_functions(file);
    return out;
}

} // namespace rawbpf::inline v0::languages::ruby
