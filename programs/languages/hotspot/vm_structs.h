// What HotSpot tells debuggers of its own structures: the tables gHotSpotVMStructs and gHotSpotVMTypes in libjvm.so.
//
//      gHotSpotVMStructs --> { "CodeBlob", "_frame_size", "int", static? no, offset 28, address 0 }   one of 600 to 800
//                            { "CodeCache", "_heaps", "GrowableArray<CodeHeap*>*", yes, 0, 0x7f0e... }
//      gHotSpotVMTypes   --> { "HeapBlock", ..., 16 bytes }
//      gHotSpotVMIntConstants --> { "ConstMethod::_has_linenumber_table", 1 }
//
// Even the tables' own layout is told: how far one entry is from the next, and where in it a field lies, are symbols, too. So
// there is no table by version here: what a build says is what is used. Source: the JDK's serviceability agent reads the same
// (src/hotspot/share/runtime/vmStructs.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "programs/languages/memory.h"
#include "programs/languages/runtime.h"

namespace rawbpf::inline v0::languages::hotspot {

/// A file that has these tables: its exports are their symbols. nullopt: it is no HotSpot. PURE.
[[nodiscard]] std::optional<Interpreter> recognise(const elf::Elf &file, Bytes bytes);

/// Where a number lies in a structure, and how wide it is.
struct Number {
    uint64_t offset = 0;   ///< in its structure; of a static one its address
    uint8_t bytes = 8;     ///< 1, 2, 4 or 8
    bool negative = false; ///< it has a sign
};

class VmStructs {
  public:
    /// Of a process whose addresses are `bias` more than the file's. nullopt: `why` says what is missing (half a sentence).
    [[nodiscard]] static std::optional<VmStructs> read(Memory &memory, const Interpreter &file, uint64_t bias, std::string &why);

    /// A field of objects. nullopt: there is none, or its type is none of a number or pointer.
    [[nodiscard]] std::optional<Number> field(std::string_view type, std::string_view name) const;
    /// The address of a variable of the class. nullopt: there is none.
    [[nodiscard]] std::optional<uint64_t> variable(std::string_view type, std::string_view name) const;
    /// Where a field begins, whatever its type is.
    [[nodiscard]] std::optional<uint64_t> offset(std::string_view type, std::string_view name) const;
    /// Bytes of a structure; nullopt: it isn't told.
    [[nodiscard]] std::optional<uint64_t> size(std::string_view type) const;
    /// A constant, "Type::name" mostly; nullopt: it isn't told.
    [[nodiscard]] std::optional<uint64_t> constant(std::string_view name) const;
    [[nodiscard]] size_t fields() const { return fields_.size(); }

  private:
    struct Field {
        std::string type;
        bool is_variable;
        uint64_t offset, address;
    };
    [[nodiscard]] const Field *find(std::string_view type, std::string_view name) const;

    std::map<std::pair<std::string, std::string>, Field, std::less<>> fields_;
    std::map<std::string, uint64_t, std::less<>> sizes_, constants_;
};

/// Whether the virtual machine runs with a flag that is true or false; false where it doesn't tell of its flags.
[[nodiscard]] bool has_flag(Memory &memory, const VmStructs &structs, std::string_view name);

/// The number there; nullopt: it can't be read.
[[nodiscard]] std::optional<uint64_t> read_number(Memory &memory, uint64_t object, const Number &number);

} // namespace rawbpf::inline v0::languages::hotspot
