// Memory that a test makes: an interpreter's, or one that lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "programs/languages/memory.h"

namespace rawbpf::test {

/// Bytes that are 0 but for those that are put there, at `kBase`.
class MadeMemory final : public languages::Pages {
  public:
    static constexpr uint64_t kBase = 0x10000, kSize = 1 << 18;
    MadeMemory() : bytes_(kSize) {}
    bool read(uint64_t address, std::span<std::byte> page) override {
        if (address < kBase || address - kBase + page.size() > bytes_.size()) return false;
        std::memcpy(page.data(), bytes_.data() + (address - kBase), page.size());
        return true;
    }
    template <class T = uint64_t> void put(uint64_t at, T value) {
        std::memcpy(bytes_.data() + (at - kBase), &value, sizeof value);
    }
    void put_text(uint64_t at, const char *text) { std::memcpy(bytes_.data() + (at - kBase), text, std::strlen(text) + 1); }
    std::vector<std::byte> &bytes() { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

} // namespace rawbpf::test
