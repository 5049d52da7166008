// What a unit's object says of the kernel's types, in BTF of its own. Private to runtime/object.
//
//      @task_struct.real_parent.pid     struct task_struct { real_parent: 1408 }, { pid: 1392 }   sizes and places as in the kernel
//      call kfunc bpf_task_from_pid     FUNC_PROTO (pid: int) -> ptr to struct task_struct         a copy, by names through pointers
//
// CO-RE relocates from one layout to another, so an object has to contain the structs that it was written for. A unit names
// members by path; the structs on that path are written with only those members, at the offsets of the given kernel, since a
// relocation compares nothing else. A function's prototype is copied because the loader compares it with the running kernel's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "asm/unit.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::object {

/// A member that a unit names by its path.
struct KernelField {
    btf::TypeId root;   ///< in the object's BTF: the struct that the path is counted from
    uint32_t offset;    ///< bytes from its start
    std::string access; ///< as .BTF.ext has it: "0:1:0", numbers of members from the root on
};

class KernelTypes {
  public:
    /// `kernel` is nullptr if no kernel's types are at hand: then whatever needs them is refused (unsupported).
    KernelTypes(std::string_view unit, const btf::Btf *kernel, btf::Writer &types)
        : unit_(unit), kernel_(kernel), types_(types) {}

    void start(btf::TypeId int32) { int32_ = int32; }
    /// Writes the structs that the unit's paths go through. Errors: unsupported, invalid_argument (there is no such member).
    [[nodiscard]] Result<void> find_fields(const Unit &unit);
    /// One that find_fields() has found.
    [[nodiscard]] KernelField field(std::string_view path) const;
    /// A FUNC_PROTO as the kernel has it. Errors: unsupported, not_found, bad_input.
    [[nodiscard]] Result<btf::TypeId> prototype(const std::string &name);

  private:
    /// A struct of the kernel, with those of its members that are asked for.
    struct LocalStruct {
        std::string name;
        bool is_union = false;
        uint32_t size = 0;
        struct Field {
            std::string name;
            uint32_t bit_offset;
            btf::TypeId kernel_type; ///< of a leaf, in the kernel's BTF
            size_t inner = SIZE_MAX; ///< a struct inside, index into the list of all
        };
        std::vector<Field> fields;
        btf::TypeId id = 0;
    };
    struct FieldUse {
        size_t root; ///< index into structs_
        uint32_t offset;
        std::vector<std::pair<size_t, std::string>> steps; ///< struct and member, from the root on
        std::string access = {};                           ///< known when every struct has all its members
    };

    [[nodiscard]] Result<std::optional<btf::Member>> member(btf::TypeId id, std::string_view name, int depth = 0) const;
    size_t struct_for(const btf::Type &type, std::string_view name, size_t within);
    Result<FieldUse> find_field(const std::string &path);
    Result<btf::TypeId> stand_in(btf::TypeId kernel_type, int depth = 0);
    Result<btf::TypeId> write_struct(size_t index, int depth = 0);
    Result<btf::TypeId> copy_of(const btf::Type &proto, int depth);
    Result<btf::TypeId> pointing(btf::TypeId kernel_type, int depth);

    std::string_view unit_;
    const btf::Btf *kernel_;
    btf::Writer &types_;
    btf::TypeId int32_ = 0;
    std::vector<LocalStruct> structs_;
    std::map<std::string, FieldUse, std::less<>> uses_;
};

} // namespace rawbpf::inline v0::object
