// What each type and enumerator is called in C, where one name may stand for one thing only. Private to the room.
#pragma once

#include <string>
#include <unordered_map>

#include "runtime/btf/flat.h"

namespace rawbpf::inline v0::btf {

/// The type of C that an int or float of BTF is written as.
struct CBase {
    std::string_view word;  ///< "unsigned int": it is known to C by its own name
    std::string_view alias; ///< else: what a typedef of its name stands for; empty: nothing of C has that size
};
[[nodiscard]] CBase c_base(const Flat &types, TypeId id);

class CNames {
  public:
    /// Takes all names once. The Flat must outlive it. `cplusplus`: tags and all other names are one set, and keywords are more.
    CNames(const Flat &types, bool cplusplus);

    /// For named types: the name to write, without "struct".
    [[nodiscard]] std::string_view of(TypeId id) const {
        if (!changed_[id]) [[likely]]
            return types_.type_name(id);
        return renamed_.at(key(id, kItself));
    }
    [[nodiscard]] std::string_view enumerator(TypeId id, uint32_t index, std::string_view as_is) const {
        if (!changed_values_[id]) [[likely]]
            return as_is;
        auto at = renamed_.find(key(id, index));
        return at == renamed_.end() ? as_is : std::string_view(at->second);
    }
    /// Takes the name of a function or variable; false when it is taken or not C: it can't have another one.
    [[nodiscard]] bool claim(TypeId id);
    /// A member or parameter: its name made legal.
    [[nodiscard]] bool legal(std::string_view name) const;
    [[nodiscard]] std::string legalised(std::string_view name) const;

  private:
    /// Names in use. Texts are kept by address: those of the BTF, or of names_.
    class Used {
      public:
        /// How often it was asked for before; its owner's id in `owner` when it was.
        uint32_t add(std::string_view text, TypeId id, TypeId *owner = nullptr);

      private:
        struct Slot {
            const char *text = nullptr;
            uint32_t length = 0, hash = 0, count = 0;
            TypeId owner = 0;
        };
        void grow();
        std::vector<Slot> slots_;
        size_t used_ = 0;
    };
    static constexpr uint32_t kItself = UINT32_MAX;
    static uint64_t key(TypeId id, uint32_t index) { return uint64_t{id} << 32 | index; }
    void name(Used &used, TypeId id, uint32_t index, std::string_view wanted);
    void rename(Used &used, TypeId id, uint32_t index, const std::string &wanted, uint32_t count);
    void set(TypeId id, uint32_t index, std::string text);

    const Flat &types_;
    bool cplusplus_;
    Used all_, c_tags_;
    Used &ordinary_ = all_;
    Used &tags_;
    std::vector<bool> changed_, changed_values_;
    std::unordered_map<uint64_t, std::string> renamed_;
};

} // namespace rawbpf::inline v0::btf
