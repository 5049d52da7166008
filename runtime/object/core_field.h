// Types of the target by name, and fields by path for programs that have no types of their own. Private to the room.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/object/core.h"

namespace rawbpf::inline v0::object {

/// A type of the target.
struct Candidate {
    const btf::Btf *btf = nullptr;
    btf::TypeId id = 0;
};

/// Looks names up in the kernel's BTF and, only where that has none, in its modules'. Remembers what it found.
class TypeFinder {
  public:
    explicit TypeFinder(const CoreTargets &targets) : targets_(targets) {}

    /// Looks for many names in the kernel's BTF at once; find() then knows them.
    Result<void> prepare(const std::vector<std::string_view> &essentials);
    /// All types of that essential name and kind (ENUM and ENUM64 count as one). Errors: unsupported without any target.
    [[nodiscard]] Result<std::vector<Candidate>> find(std::string_view essential, btf::Kind kind);

  private:
    struct Named {
        Candidate place;
        btf::Kind kind;
    };
    [[nodiscard]] Result<const std::vector<Named> *> modules_with(std::string_view essential);
    Result<void> add(std::vector<Named> &list, const btf::Btf &btf, const std::vector<btf::TypeId> &ids);

    CoreTargets targets_;
    std::map<std::string, std::vector<Named>, std::less<>> kernel_, modules_;
    std::span<const btf::Btf *const> module_list_;
    bool asked_for_modules_ = false;
};

/// Where a FieldReference's path leads.
struct FieldPlace {
    uint64_t offset = 0; ///< in bytes
    std::string why;     ///< why there is no such place; empty: there is
};

/// Errors: invalid_argument for a path that makes no sense; unsupported without any target.
[[nodiscard]] Result<FieldPlace> find_field(std::string_view path, TypeFinder &finder);

} // namespace rawbpf::inline v0::object
