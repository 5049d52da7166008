// Names of objects by their ids, so that no listing shows a bare number.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "programs/inspect/btf_source.h"
#include "runtime/sys/bpf.h"

namespace rawbpf::inline v0::running {

/// Remembers what it was asked. What can't be found out (the object has gone, no privilege) is an empty name.
class Names {
  public:
    /// A program's whole name. The kernel keeps 15 characters; a longer name is that of its first function, in its BTF.
    [[nodiscard]] std::string program(int fd, const sys::ProgInfo &info);
    [[nodiscard]] const std::string &program(uint32_t id);
    [[nodiscard]] const std::string &map(uint32_t id);
    /// "12 on_exec", or the id alone.
    ///@{
    [[nodiscard]] std::string labelled_program(uint32_t id);
    [[nodiscard]] std::string labelled_map(uint32_t id);
    ///@}
    /// Types that are loaded; nullptr: they can't be had.
    [[nodiscard]] const btf::Btf *btf(uint32_t id);
    /// The types that a map was loaded with; nullptr: none, or they can't be had.
    [[nodiscard]] const btf::Btf *btf_of(const sys::MapInfo &map) { return map.btf_id == 0 ? nullptr : btf(map.btf_id); }
    /// What a type id of loaded types is called; of the kernel's own where `object` is 0.
    [[nodiscard]] std::string type(uint32_t object, btf::TypeId id);

  private:
    std::map<uint32_t, std::string> programs_, maps_;
    std::map<uint32_t, std::optional<inspect::BtfSource>> types_;
    std::optional<inspect::BtfSource> kernel_;
};

/// A name of the kernel's: 16 characters, with or without a zero at their end.
[[nodiscard]] std::string name_text(const char (&name)[16]);
/// "12 on_exec", or the number alone where there is no name. PURE.
[[nodiscard]] std::string labelled(uint32_t id, std::string_view name);

} // namespace rawbpf::inline v0::running
