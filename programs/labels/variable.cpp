// The machines' numbers of relocations are those of their ELF ABIs. On x86-64 blocks lie below the thread's pointer (variant II),
// on arm64 above it, behind 16 bytes (variant I).
//
// A descriptor's second word is a distance where the block has a fixed place, else the address of { module, offset }. A distance
// is small, on x86-64 negative; an address lies above the lowest that programs are linked to.
#include "programs/labels/variable.h"

#include <algorithm>

#include <elf.h>

#include "programs/languages/exports.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::labels {
namespace {

constexpr std::string_view kName = "otel_thread_ctx_v1";
constexpr uint64_t kFarthest = 4 << 20;  // of a variable with a fixed place: the lowest address of a program
constexpr uint64_t kMostModules = 65536; // with variables of threads, in one process
constexpr size_t kMostWords = 64;        // of the same variable: one suffices

uint64_t round_up(uint64_t value, uint64_t alignment) {
    return alignment <= 1 ? value : (value + alignment - 1) / alignment * alignment;
}

bool is_program(const elf::Elf &file) {
    if (file.type() == ET_EXEC) return true;
    for (const elf::Segment &segment : file.segments())
        if (segment.type == PT_INTERP) return true;
    const elf::Section *dynamic = file.find_section(".dynamic"); // static-pie has no interpreter
    if (!dynamic) return false;
    ByteReader in = file.reader(*dynamic);
    for (;;) {
        const auto tag = in.read<uint64_t>(), value = tag ? in.read<uint64_t>() : tag;
        if (!value || *tag == DT_NULL) return false;
        if (*tag == DT_FLAGS_1) return (*value & DF_1_PIE) != 0;
    }
}

/// From the thread's pointer to a program's variable, as its linker and the dynamic linker count it.
std::optional<uint64_t> distance_of(const elf::Elf &file, uint64_t offset) {
    for (const elf::Segment &segment : file.segments()) {
        if (segment.type != PT_TLS) continue;
        const uint64_t alignment = std::max<uint64_t>(segment.alignment, 1), shift = -segment.address % alignment;
        if (file.machine() == EM_X86_64) return offset - (round_up(segment.memory_size - shift, alignment) + shift);
        if (file.machine() == EM_AARCH64) return offset + round_up(16, alignment);
    }
    return std::nullopt;
}

std::optional<ThreadVariable::Kind> kind_of(uint16_t machine, uint32_t type) {
    struct Row {
        uint16_t machine;
        uint32_t type;
        ThreadVariable::Kind kind;
    };
    constexpr Row kRows[] = {
        {EM_X86_64, R_X86_64_TLSDESC, ThreadVariable::Kind::descriptor},
        {EM_X86_64, R_X86_64_DTPMOD64, ThreadVariable::Kind::module},
        {EM_X86_64, R_X86_64_TPOFF64, ThreadVariable::Kind::distance},
        {EM_AARCH64, R_AARCH64_TLSDESC, ThreadVariable::Kind::descriptor},
        {EM_AARCH64, R_AARCH64_TLS_DTPMOD, ThreadVariable::Kind::module},
        {EM_AARCH64, R_AARCH64_TLS_TPREL, ThreadVariable::Kind::distance},
    };
    for (const Row &row : kRows)
        if (row.machine == machine && row.type == type) return row.kind;
    return std::nullopt;
}

/// Of relocations those that say where the variable is, or another one of the same block: these name no symbol.
void add_words(const elf::Elf &file, const elf::Section &section, uint32_t symbol, ThreadVariable &to) {
    const auto relocations = file.relocations(section);
    if (!relocations) return;
    for (const elf::Relocation &one : *relocations) {
        const auto kind = kind_of(file.machine(), one.type);
        if (!kind || (one.symbol != symbol && one.symbol != 0) || to.words.size() >= kMostWords) continue;
        const uint64_t offset = static_cast<uint64_t>(one.addend) + (one.symbol == symbol ? to.offset : 0);
        to.words.push_back({one.offset, *kind, offset});
    }
}

LabelProcess in_process(uint64_t offset, uint64_t module) {
    LabelProcess out{};
    out.offset = offset;
    out.module = module;
    return out;
}

std::optional<LabelProcess> by_descriptor(const ThreadVariable::Word &word, const ThreadVariable &variable, uint64_t bias,
                                          languages::Memory &memory, Arch arch) {
    const auto resolves = memory.word(bias + word.address), says = memory.word(bias + word.address + 8);
    if (!resolves || !says || *resolves == 0) return std::nullopt; // not yet
    const uint64_t more = variable.offset - word.offset;
    if (*says == 0) return std::nullopt;
    const bool fixed = arch == Arch::x86_64 ? -*says < kFarthest : *says < kFarthest;
    if (fixed) return in_process(*says + more, 0);
    const auto module = memory.word(*says), offset = memory.word(*says + 8);
    if (!module || !offset || *module == 0 || *module > kMostModules || *offset != word.offset) return std::nullopt;
    return in_process(variable.offset, *module);
}

} // namespace

std::optional<ThreadVariable> exported_variable(const elf::Elf &file) {
    if (!file.is_64() || !languages::may_export(file, kName).value_or(true)) return std::nullopt;
    std::optional<ThreadVariable> out;
    languages::each_dynamic_symbol(file, [&](std::string_view name, const elf::Symbol &symbol, size_t number) {
        if (name != kName || symbol.type != STT_TLS || symbol.section == SHN_UNDEF) return true;
        out.emplace();
        out->offset = symbol.value;
        out->code = languages::executable_segments(file);
        if (is_program(file)) out->distance = distance_of(file, symbol.value);
        for (const elf::Section &relocations : file.sections())
            if (relocations.type == SHT_RELA && !out->distance) add_words(file, relocations, static_cast<uint32_t>(number), *out);
        return false;
    });
    return out;
}

std::optional<LabelProcess> locate(const ThreadVariable &variable, uint64_t bias, languages::Memory &memory, Arch arch,
                                   std::string &why) {
    if (variable.distance) return in_process(*variable.distance, 0);
    for (const ThreadVariable::Word &word : variable.words) {
        std::optional<LabelProcess> found;
        const auto value = memory.word(bias + word.address);
        switch (word.kind) {
        case ThreadVariable::Kind::descriptor: found = by_descriptor(word, variable, bias, memory, arch); break;
        case ThreadVariable::Kind::module:
            if (value && *value > 0 && *value <= kMostModules) found = in_process(variable.offset, *value);
            break;
        case ThreadVariable::Kind::distance:
            if (value && *value != 0) found = in_process(*value + (variable.offset - word.offset), 0);
            break;
        }
        if (found) return found;
    }
    why = variable.words.empty()
              ? "no relocation of its file says where the threads' variable otel_thread_ctx_v1 lies"
              : "the dynamic linker hasn't written down yet where the threads' variable otel_thread_ctx_v1 lies";
    return std::nullopt;
}

} // namespace rawbpf::inline v0::labels
