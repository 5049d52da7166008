// A small BPF object, made by our own writers: what clang would emit for the program in sample.cpp.
#pragma once

#include <vector>

#include "asm/insn.h"
#include "runtime/base/bytes.h"

namespace rawbpf::test {

/// Ways in which the sample can be spoilt or varied.
struct SampleOptions {
    bool with_btf_ext = true;
    bool info_for_leaf = true;   ///< func_info and line_info for `leaf`
    bool hidden_leaf = false;    ///< `leaf` and the variable `limit` have hidden visibility
    uint32_t record_padding = 0; ///< extra bytes at the end of each .BTF.ext record, as a newer compiler might add
    bool with_externs = false;   ///< a kfunc, a ksym and .kconfig values
    uint32_t long_string = 0;    ///< characters of one more string in .BTF
    bool function_sizes = true;  ///< false: as hand-written assembly may leave them out
    bool undefined_call = false; ///< `second` calls `my_helper`, which nobody defines
    uint32_t pointers = 0;       ///< addresses of `seed` at the start of .data
};
std::vector<std::byte> sample_object(const SampleOptions &options = {});

/// An object with only these instructions as program `prog` in section `section`, and nothing else.
std::vector<std::byte> bare_object(std::string_view section, const std::vector<Insn> &insns);

/// Two maps, `first` and `second`, in a `maps` section, each of so many words, the last one being `extra`; a program uses
/// `second`.
std::vector<std::byte> legacy_maps_object(size_t words, uint32_t extra);

/// A program of four instructions (the first two a reference to it) with a jump table: what its two entries hold, what its symbol
/// covers, and what the reference adds.
struct TableOptions {
    uint64_t entries[2] = {16, 24};
    uint64_t start = 0, size = 16;
    int32_t addend = 0;
};
std::vector<std::byte> jump_table_object(const TableOptions &options = {});

/// struct_ops, an arena and an exception callback:
///     struct ops { int (*init)(int); long flags; char name[8]; };
///     SEC(".struct_ops.link") struct ops live = { .init = on_init, .flags = 5, .name = "live" };
///     SEC("?.struct_ops") struct ops spare = { .flags = 6 };
///     struct { type ARENA; max_entries 2 } arena SEC(".maps");   long __arena first, second = 7;
///     SEC("struct_ops/init") int on_init(int) { return second; }          tagged exception_callback:caught
///     int caught(long) { return helper(); }  int helper() { return 0; }   in .text
struct OpsOptions {
    bool tagged = true;            ///< the exception callback
    bool with_arena = true;        ///< the arena's map (its variables are there in any case)
    uint64_t relocation_at = 0;    ///< of .struct_ops.link: 0 is `init`
    bool relocate_to_text = false; ///< to `caught`, which is no program
};
std::vector<std::byte> ops_object(const OpsOptions &options = {});

/// An object whose call of `callee` has that imm. `callee` starts at byte 16 of .text.
std::vector<std::byte> call_object(int32_t imm);

/// Functions `one` (bytes 0..16) and `two` in a section of 32 bytes.
std::vector<std::byte> two_functions_object(uint64_t start, uint64_t size);

} // namespace rawbpf::test
