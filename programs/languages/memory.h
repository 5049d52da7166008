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
    /// For who follows words that may be no addresses: only what is mapped now is read later. Most such words lead nowhere, and
    /// asking the kernel of one costs as much as reading a page. Errors: likewise, and those of reading /proc/PID/maps.
    [[nodiscard]] static Result<ProcessPages> open_mapped(uint32_t pid);
    bool read(uint64_t address, std::span<std::byte> page) override;
    /// The text of /proc/PID/maps, as open_mapped() read it.
    [[nodiscard]] const std::string &maps() const { return maps_; }

  private:
    struct Range {
        uint64_t start, end;
    };
    explicit ProcessPages(uint32_t pid) : pid_(pid) {}
    uint32_t pid_;
    std::string maps_;
    std::optional<std::vector<Range>> mapped_; ///< ascending, none touches the next; nullopt: it isn't known what is mapped
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
    void forget() {
        kept_.clear();
        last_ = nullptr;
    }
    /// Nothing more is read.
    [[nodiscard]] bool exhausted() const { return left_ == 0; }

  private:
    const std::byte *page(uint64_t address);

    Pages &pages_;
    size_t left_;
    std::unordered_map<uint64_t, std::vector<std::byte>> kept_; // empty: can't be read
    uint64_t last_address_ = 0;                                 // most words lie in the page of the one before
    const std::byte *last_ = nullptr;
};

} // namespace rawbpf::inline v0::languages
