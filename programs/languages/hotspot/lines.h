// Java's methods: what they are called, in which file they are, and which line an instruction is of.
//
//      Method --> ConstMethod | bytecodes | table of lines | ...
//                   |            bci 0 ..   a byte a step: 5 bits of bytecodes, 3 bits of lines; 0xff: two numbers; 0: its end
//                   ConstantPool --> names of method and file, class
//
// What the tables of the virtual machine (vm_structs.h) don't say: that the bytecodes lie right behind a ConstMethod, and that
// the table of lines follows them (constMethod.hpp: code_base, compressed_linenumber_table).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "programs/languages/hotspot/vm_structs.h"
#include "programs/languages/memory.h"

namespace rawbpf::inline v0::languages::hotspot {

/// Where files and lines of methods are.
struct LineOffsets {
    Number words, code_bytes, flags; ///< of a ConstMethod: all of it, its bytecodes, what it has
    uint64_t bytes = 0;              ///< of a ConstMethod: in front of its bytecodes
    uint64_t has_lines = 0;          ///< of the flags
    Number file_index;               ///< of a ConstantPool: the file's name
    bool file_of_class = false;      ///< of its class instead (before JDK 12)
};

/// Where names of methods are.
struct MethodOffsets {
    Number const_method, constants, name_index, pool_holder, class_name, symbol_length;
    uint64_t pool_bytes = 0;            ///< a constant pool's entries lie behind it
    uint64_t symbol_body = 0;           ///< in a symbol
    std::optional<LineOffsets> lines{}; ///< nullopt: this virtual machine doesn't tell of them
};

/// nullopt: `why` says what is missing (half a sentence). PURE.
[[nodiscard]] std::optional<MethodOffsets> methods_of(const VmStructs &structs, std::string &why);

/// A method.
struct Method {
    std::string name;             ///< "app.Main.fib"; empty: it can't be told
    std::string file;             ///< "Main.java"; empty: unknown
    uint64_t code = 0;            ///< where its bytecodes begin; 0: unknown
    uint32_t code_bytes = 0;      ///< of these
    uint64_t lines = 0;           ///< where its table of lines begins; 0: it has none
    uint32_t most_line_bytes = 0; ///< no more than these belong to it

    /// The bytecode at an address; nullopt: it isn't in this method.
    [[nodiscard]] std::optional<uint32_t> bytecode_at(uint64_t address) const {
        return address >= code && address - code < code_bytes ? std::optional(static_cast<uint32_t>(address - code))
                                                              : std::nullopt;
    }
};

[[nodiscard]] Method read_method(Memory &memory, const MethodOffsets &layout, uint64_t method);

/// The line of a bytecode in a compressed table; 0: it has none, or makes no sense. PURE.
[[nodiscard]] uint32_t line_in(std::span<const std::byte> table, uint32_t bytecode);

/// The same of a method: its table is read.
[[nodiscard]] uint32_t line_of(Memory &memory, const Method &method, uint32_t bytecode);

} // namespace rawbpf::inline v0::languages::hotspot
