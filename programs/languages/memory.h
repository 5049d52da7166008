// Another process's memory, as what learns a build's layout reads it: many words, close to each other, of a process that runs on
// meanwhile and may say anything.
//
// Pages are kept, so that what is read twice is the same twice; and how many are read in all is limited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::languages {

/// Where pages come from: a process, or a test's.
class Pages {
  public:
    virtual ~Pages() = default;
    /// The page of kPage bytes at `address`, which is a multiple of it. False: it can't be read.
    virtual bool read(uint64_t address, std::span<std::byte> page) = 0;
    static constexpr size_t kPage = 4096;
};

/// A process's, by process_vm_readv(2): what isn't mapped is EFAULT there, while /proc/PID/mem says EIO, as a bad disk does.
class ProcessPages final : public Pages {
  public:
    /// Errors: not_found, when it has ended; permission.
    [[nodiscard]] static Result<ProcessPages> open(uint32_t pid);
    bool read(uint64_t address, std::span<std::byte> page) override;

  private:
    explicit ProcessPages(uint32_t pid) : pid_(pid) {}
    uint32_t pid_;
};

class Memory {
  public:
    /// `pages` must outlive it. `most`: pages that are read in all.
    explicit Memory(Pages &pages, size_t most = 4096) : pages_(pages), left_(most) {}

    /// False: a part of it can't be read, or too much was read already.
    bool read(uint64_t address, std::span<std::byte> into);
    /// The word there; nullopt likewise.
    [[nodiscard]] std::optional<uint64_t> word(uint64_t address);
    [[nodiscard]] std::optional<uint32_t> word32(uint64_t address);
    /// The text there, up to its NUL and at most `most` bytes; nullopt: it can't be read, or has no NUL there.
    [[nodiscard]] std::optional<std::string> text(uint64_t address, size_t most);
    /// What was read isn't kept any longer: for who reads much, once.
    void forget() { kept_.clear(); }
    /// Nothing more is read.
    [[nodiscard]] bool exhausted() const { return left_ == 0; }

  private:
    const std::byte *page(uint64_t address);

    Pages &pages_;
    size_t left_;
    std::unordered_map<uint64_t, std::vector<std::byte>> kept_; // empty: can't be read
};

} // namespace rawbpf::inline v0::languages
