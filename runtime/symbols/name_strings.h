// A string table that stays where it is: names are read one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/error.h"
#include "runtime/base/fd.h"

namespace rawbpf::inline v0::symbols {

/// The strings of a symbol table: in a file that is kept open (not mapped: somebody may truncate it while we run, and a mapping
/// would then kill us with SIGBUS), in memory of somebody else's, or in memory of its own.
class NameStrings {
  public:
    NameStrings() = default;
    static NameStrings in_file(std::shared_ptr<Fd> fd, uint64_t offset, uint64_t size);
    static NameStrings in_memory(Bytes strings);
    static NameStrings owned(Bytes copied);

    /// The string at an offset, at most kMaxName bytes of it; empty when there is none, or it can't be read: read_failure() has
    /// that.
    [[nodiscard]] std::string at(uint32_t offset) const;
    [[nodiscard]] size_t memory() const { return copy_ ? copy_->size() : 0; }

    static constexpr size_t kMaxName = 64 << 10;

  private:
    std::shared_ptr<Fd> fd_;
    uint64_t offset_ = 0, size_ = 0;
    std::shared_ptr<const std::vector<std::byte>> copy_;
    Bytes memory_;
};

/// The first error that reading a name has given since this was asked last; nullopt: all could be read. Of the whole process:
/// names are asked for one at a time, and whoever asked says whose it was.
[[nodiscard]] std::optional<Error> read_failure();

} // namespace rawbpf::inline v0::symbols
