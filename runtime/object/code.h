// Functions before they are put together into programs. Private to runtime/object.
//
// An ELF file and a DSL unit both come down to this: a list of functions, each with its instructions and with the places in
// them that refer to something else. Instruction numbers count from the start of the section that the function lies in (a DSL
// function is its own section), because that is how relocations and .BTF.ext count.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/result.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::object {

/// One reference out of the code.
struct CodeRef {
    enum class Kind : uint8_t {
        call,      ///< call to functions[index]
        function,  ///< ld_imm64: the address of functions[index]
        map,       ///< ld_imm64: maps[index]
        map_value, ///< ld_imm64: offset `offset` in the value of maps[index]
        kfunc,     ///< call to externs[index]
        ksym,      ///< ld_imm64: the address of externs[index]
        table,     ///< ld_imm64: offset `offset` in Code::tables[index]
    };
    uint32_t insn = 0;
    Kind kind = Kind::map;
    uint32_t index = 0;
    uint32_t offset = 0;
};

/// One function and what belongs to it. All lists are ascending by instruction.
struct Code {
    std::string_view name;
    uint32_t section = 0; ///< index; functions are sorted by (section, start)
    uint32_t start = 0;   ///< its first instruction's number in its section
    Bytes insns;
    std::span<const CodeRef> refs;
    std::span<const Bytes> tables; ///< jump tables of the object: places in a section, 8 bytes each, counted in bytes
    std::span<const CoreRelocation> core;
    std::span<const FieldReference> fields;
    std::span<const FuncInfo> func_info;
    std::span<const LineInfo> line_info;

    [[nodiscard]] uint32_t count() const { return static_cast<uint32_t>(insns.size() / sizeof(Insn)); }
    [[nodiscard]] Insn insn(uint32_t number) const { return load<Insn>(insns.data() + (number - start) * sizeof(Insn)); }
};

/// Puts programs together from functions: see assemble.cpp.
class Assembler {
  public:
    /// The functions and externs must outlive it. `what` names the object in messages.
    Assembler(std::string_view what, std::span<const Code> functions, std::span<const ExternSpec> externs);
    /// Fills insns, fixups, relocations and infos of `program` from the function numbered `entry` and all that it calls.
    /// `exception_callback`: a function that the kernel enters by itself (bpf_throw), so that no call leads to it; or kNone.
    [[nodiscard]] Result<void> assemble(uint32_t entry, ProgramSpec &program, uint32_t exception_callback = kNone);
    static constexpr uint32_t kNone = UINT32_MAX;

  private:
    struct Step {
        uint32_t function;
        uint32_t next_insn; // in its section
        size_t next_ref;
    };
    [[nodiscard]] Result<void> append(uint32_t function, ProgramSpec &program);
    [[nodiscard]] Result<uint32_t> add_table(const Code &code, const CodeRef &ref, uint32_t base, ProgramSpec &program);
    [[nodiscard]] Result<void> append_callees(uint32_t function, ProgramSpec &program);
    [[nodiscard]] Unexpected too_large(const Code &code) const;
    [[nodiscard]] Result<uint32_t> callee_of(const Code &caller, uint32_t insn, int32_t imm) const;

    std::string what_;
    std::span<const Code> functions_;
    std::span<const ExternSpec> externs_;
    std::vector<uint32_t> placed_; // where each function lies in the program under construction; kNowhere
    std::vector<uint32_t> order_;  // those that were placed, to reset
    std::vector<uint32_t> tables_; // by table: where the function under construction has it among the program's; kNowhere
    uint64_t total_ = 0;           // bytes made so far, over all programs
    bool func_info_ = true, line_info_ = true;
};

/// The function that holds instruction `insn` of `section`; nullptr when none does.
[[nodiscard]] const Code *find_code(std::span<const Code> functions, uint32_t section, uint64_t insn);

/// Type, attach type, target and flags from the section's name. An unknown name leaves type 0, for the loader to explain.
void classify(ProgramSpec &program, std::string_view section);

/// The name that the kernel shows for a data section's map, by libbpf's rule: "profile.bpf.o" and ".rodata" give
/// "profile.rodata". The stem is cut so that 15 characters do, with 7 kept for the section; named variants (".rodata.foo") stand
/// alone.
[[nodiscard]] std::string data_map_name(std::string_view object, std::string_view section);

/// The part of a list that lies in instructions [from, from + count).
template <class T> [[nodiscard]] std::span<const T> part_of(const std::vector<T> &list, uint32_t from, uint32_t count) {
    auto before = [](const T &item, uint64_t insn) { return item.insn < insn; };
    auto first = std::lower_bound(list.begin(), list.end(), uint64_t(from), before);
    auto last = std::lower_bound(first, list.end(), uint64_t(from) + count, before);
    return {list.data() + (first - list.begin()), static_cast<size_t>(last - first)};
}

} // namespace rawbpf::inline v0::object
