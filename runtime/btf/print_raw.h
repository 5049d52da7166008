// SPDX-License-Identifier: MIT
// Types as they are numbered, one a paragraph, in the form that bpftool made usual:
//
//      [57] STRUCT 'list_head' size=16 vlen=2
//              'next' type_id=58 bits_offset=0
//              'prev' type_id=58 bits_offset=64
#pragma once

#include <memory>
#include <string>

#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::btf {

class Flat;

/// Prints the types of one BTF. The Btf's bytes must outlive it.
class RawPrinter {
  public:
    /// Errors (bad_input): a name or id in it that leads nowhere.
    [[nodiscard]] static Result<RawPrinter> make(const Btf &btf);
    /// One type and its parts, with a final newline. `id` must exist. Names are escaped where they aren't printable ASCII.
    void append(std::string &out, TypeId id) const;

  private:
    std::shared_ptr<const Flat> types_;
};

} // namespace rawbpf::inline v0::btf
