// The walk of a copied stack, whatever the registers, the stack, the tables and the mappings hold.
//
//      | depth, machine | UnwindRegisters | 8 rules | 4 mappings | 256 bytes of the pool | the stack ... |
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

#include "programs/unwind/walk.h"

using namespace rawbpf;

namespace {

constexpr size_t kRules = 8, kMappings = 4, kPool = 256;

struct Input {
    uint8_t depth, machine;
    uint8_t padding[6];
    UnwindRegisters registers;
    UnwindRule rules[kRules];
    UnwindMapping mappings[kMappings];
    std::byte pool[kPool];
};

struct Given final : unwind::WalkTables {
    explicit Given(const Input &input) : given(input) {
        std::copy(std::begin(input.pool), std::end(input.pool), bytes.begin());
        std::copy(std::begin(input.pool), std::end(input.pool), bytes.end() - kPool);
    }
    [[nodiscard]] const std::byte *pool(uint32_t number) const override { return number < 2 ? bytes.data() : nullptr; }
    [[nodiscard]] const UnwindRule *rule(uint32_t number) const override {
        return number < kRules ? &given.rules[number] : nullptr;
    }
    [[nodiscard]] bool code(uint64_t address, std::span<std::byte> into) const override {
        const auto all = std::as_bytes(std::span(given.rules));
        if (address % 3 == 0) return false;
        std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(address % (all.size() - into.size())), into.size(), into.begin());
        return true;
    }
    const Input &given;
    inline static std::vector<std::byte> bytes = std::vector<std::byte>(UNWIND_POOL_BYTES); // zeros in between
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Input input{};
    std::memcpy(&input, data, std::min(size, sizeof input));
    const size_t rest = size - std::min(size, sizeof input);
    const std::vector<std::byte> stack(
        reinterpret_cast<const std::byte *>(data + size - rest), // a copy: reads beyond it are seen
        reinterpret_cast<const std::byte *>(data + size));

    std::vector<UnwindMapping> mappings; // ascending, without overlap
    for (UnwindMapping mapping : input.mappings) {
        const __u64 from = mappings.empty() ? 0 : mappings.back().end;
        mapping.start = std::max(mapping.start, from);
        mapping.end = std::max(mapping.end, mapping.start);
        mappings.push_back(mapping);
    }
    UnwindProgramOptions program;
    program.depth = 1 + input.depth % UNWIND_MAX_FRAMES;
    program.arch = unwind::kMachines[input.machine % std::size(unwind::kMachines)].arch;
    const unwind::Walked walked = unwind::walk(program, Given(input), mappings, {input.registers, stack});
    if (walked.frames.empty() || walked.frames.size() > program.depth || walked.ending >= UNWIND_ENDINGS) std::abort();
    return 0;
}
