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

struct Ref {
    uint32_t insn = 0; ///< index into Function::insns
    RefKind kind = RefKind::map;
    std::string symbol;
    int64_t addend = 0;
};

/// Where an instruction comes from.
struct SourceLine {
    uint32_t insn = 0;
    std::string file;
    uint32_t line = 0;
    uint32_t column = 0;
    std::string text; ///< the line itself, where it is known
};

struct Function {
    std::string name;
    std::string section; ///< SEC name ("perf_event"); empty for a subprogram
    std::vector<Insn> insns;
    std::vector<Ref> refs;          ///< ascending by insn
    std::vector<SourceLine> lines;  ///< ascending by insn
    std::vector<std::string> notes; ///< comments, one an instruction or none; for printing only
    /// Of a subprogram: the verifier looks at it once, by itself, and not again where it is called (5.6; before, it is as any
    /// other). So it knows nothing of its arguments, which are numbers, nor of what it returns, which is a number, too.
    bool global = false;
    uint8_t arguments = 0; ///< of a global one
    uint32_t pointed = 0;  ///< its first argument is an address where so many bytes are, or 0 (5.12); 0: a number, too
};

struct MapDef {
    std::string name;
    uint32_t type = 0; ///< BPF_MAP_TYPE_*
    uint32_t key_size = 0;
    uint32_t value_size = 0;
    uint32_t max_entries = 0;
    uint32_t flags = 0;
    std::vector<uint8_t> contents;              ///< initial value of a one-entry array (globals); may be empty
    bool read_only = false;                     ///< frozen after it is filled (.rodata)
    std::string key_type = {}, value_type = {}; ///< "u32", or a struct of Unit::types; empty where only the size is known
};

/// A struct that the source declared, laid out as C would.
struct StructDef {
    struct Field {
        std::string name;
        std::string type;   ///< "u8" .. "s64", "ptr", or a struct that stands before this one
        uint32_t count = 0; ///< elements of an array; 0: not an array
        uint32_t offset = 0;
    };
    std::string name;
    uint32_t size = 0, alignment = 1;
    std::vector<Field> fields;
};

/// A global variable: a place in the value of the map of that name (".data", ".rodata", ".bss").
struct Variable {
    std::string name, map;
    std::string type; ///< as StructDef::Field::type
    uint32_t count = 0;
    uint32_t offset = 0, size = 0;
};

struct Unit {
    std::string name;
    std::string license = "Dual MIT/GPL";
    std::vector<Function> functions;
    std::vector<MapDef> maps;
    std::vector<StructDef> types;
    std::vector<Variable> variables;
};

} // namespace rawbpf::inline v0
