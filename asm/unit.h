// SPDX-License-Identifier: MIT
// What the builder and the assembler produce: instructions with symbolic references.
//
// A Unit contains no fds and no BTF ids, and depends on no kernel. It says "this ld_imm64 means map `events`", "this call
// means function `walk`". object/ turns it into an ObjectSpec, as it does with an ELF file; from there on both use the same
// code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "asm/insn.h"

namespace rawbpf::inline v0 {

/// What a reference points at; the instruction it sits in decides how it is patched.
enum class RefKind : uint8_t {
    map,       ///< ld_imm64: the map named `symbol`
    map_value, ///< ld_imm64: address of the value of `symbol` (a one-entry array: .rodata, .bss ...) plus `addend`
    call,      ///< call: the function `symbol` of this unit
    function,  ///< ld_imm64: address of the function `symbol` (a callback)
    field,     ///< CO-RE: byte offset of `symbol` ("task_struct.mm.pgd") in the running kernel, into off or imm
    kfunc,     ///< call: the kernel function `symbol`
    ksym,      ///< ld_imm64: address of the kernel variable `symbol`
};

/// A symbolic reference: one instruction means something that has a name.
struct Ref {
    uint32_t insn = 0;           ///< index into Function::insns
    RefKind kind = RefKind::map; ///< what it points at
    std::string symbol;          ///< its name
    int64_t addend = 0;          ///< map_value, field: bytes added to the offset; else not used
};

/// Where an instruction comes from.
struct SourceLine {
    uint32_t insn = 0;   ///< index into Function::insns of the first one; the line is that of the following ones, too
    std::string file;    ///< as the compiler, or assemble(), was given it
    uint32_t line = 0;   ///< 1-based; the kernel takes up to 4,194,303
    uint32_t column = 0; ///< 1-based; 0: unknown. The kernel takes up to 1023
    std::string text;    ///< the line itself, where it is known
};

/// A program, or a function that programs call.
struct Function {
    std::string name;               ///< occurs once in the unit
    std::string section;            ///< SEC name ("perf_event"); empty for a subprogram
    std::vector<Insn> insns;        ///< a wide one is two; what a reference stands for is not filled in
    std::vector<Ref> refs;          ///< ascending by insn
    std::vector<SourceLine> lines;  ///< ascending by insn
    std::vector<std::string> notes; ///< comments, one an instruction or none; for printing only
    /// Of a subprogram: the verifier looks at it once, by itself, and not again where it is called (5.6; older kernels verify it
    /// as any other). So the verifier knows of its arguments, and of what it returns, only that they are numbers.
    bool global = false;
    uint8_t arguments = 0; ///< of a global one: 0 to 5
    uint32_t pointed = 0;  ///< its first argument is an address where so many bytes are, or 0 (5.12); 0: a number, too
};

/// A map.
struct MapDef {
    std::string name;              ///< occurs once in the unit; one that starts with a dot stands for a data section (".rodata")
    uint32_t type = 0;             ///< BPF_MAP_TYPE_*
    uint32_t key_size = 0;         ///< bytes
    uint32_t value_size = 0;       ///< bytes
    uint32_t max_entries = 0;      ///< of ring buffers: bytes; 0 for storage maps, and for perf event arrays: one a possible CPU
    uint32_t flags = 0;            ///< BPF_F_* of map creation
    std::vector<uint8_t> contents; ///< initial value of a one-entry array (globals), up to value_size; may be empty
    bool read_only = false;        ///< frozen after it is filled (.rodata)
    std::string key_type = {},     ///< "u32", "u8[16]", or a struct of Unit::types; empty where only the size is known
        value_type = {};           ///< likewise
};

/// A struct that the source declared, laid out as C would.
struct StructDef {
    /// A member.
    struct Field {
        std::string name;    ///< of the member
        std::string type;    ///< "u8" .. "s64", "char", "ptr", or a struct that stands before this one
        uint32_t count = 0;  ///< elements of an array; 0: not an array
        uint32_t offset = 0; ///< bytes from the struct's beginning
    };
    std::string name;          ///< occurs once in the unit
    uint32_t size = 0,         ///< bytes, with the padding at the end
        alignment = 1;         ///< bytes
    std::vector<Field> fields; ///< ascending by offset
};

/// A global variable: a place in the value of the map of that name (".data", ".rodata", ".bss").
struct Variable {
    std::string name,    ///< occurs once in the unit
        map;             ///< MapDef::name
    std::string type;    ///< as StructDef::Field::type
    uint32_t count = 0;  ///< elements of an array; 0: not an array
    uint32_t offset = 0, ///< bytes from the value's beginning
        size = 0;        ///< bytes, of all elements together
};

/// What a builder or the assembler makes: the programs of one source, with all that they refer to.
struct Unit {
    std::string name;                     ///< for messages, and in front of the kernel's names of data maps
    std::string license = "Dual MIT/GPL"; ///< of all programs; the kernel takes up to 127 characters
    std::vector<Function> functions;      ///< programs and subprograms, in the order of the source
    std::vector<MapDef> maps;             ///< in the order of the source
    std::vector<StructDef> types;         ///< each behind those that it contains
    std::vector<Variable> variables;      ///< of the assembler's .data, .rodata and .bss
};

} // namespace rawbpf::inline v0
