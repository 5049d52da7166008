// Where the threads' variable lies, by what the dynamic linker wrote; tests/cli/labels_test.py has real files.
#include "programs/labels/variable.h"

#include "tests/support/test.h"
#include "tests/unit/languages/made_memory.h"

using namespace rawbpf;
using namespace rawbpf::labels;

namespace {

constexpr uint64_t kBias = test::MadeMemory::kBase, kWord = 0x2000, kIndex = 0x10003000;

// What is at kIndex in a process whose addresses are those of real ones.
class Process final : public languages::Pages {
  public:
    bool read(uint64_t address, std::span<std::byte> page) override {
        if (address == kIndex) {
            std::memcpy(page.data(), index, sizeof index);
            return true;
        }
        return made.read(address, page);
    }
    test::MadeMemory made;
    uint64_t index[2] = {};
};

std::optional<LabelProcess> located(Process &process, const ThreadVariable &variable, Arch arch = Arch::x86_64) {
    languages::Memory memory(process);
    std::string why;
    auto found = locate(variable, kBias, memory, arch, why);
    CHECK(found.has_value() == why.empty());
    return found;
}

} // namespace

TEST_CASE("labels: a descriptor has a distance, or leads to a module and an offset") {
    Process process;
    ThreadVariable variable;
    variable.offset = 0x10;
    variable.words = {{kWord, ThreadVariable::Kind::descriptor, 0x10}};
    CHECK(!located(process, variable)); // nobody has resolved it
    process.made.put(kBias + kWord, uint64_t{0x7f0000001000});
    CHECK(!located(process, variable));
    process.made.put(kBias + kWord + 8, uint64_t(-0x68));
    auto found = located(process, variable);
    REQUIRE(found);
    CHECK(found->offset == uint64_t(-0x68));
    CHECK(found->module == 0);
    variable.words[0].offset = 0; // of another variable of the block
    CHECK(located(process, variable)->offset == uint64_t(-0x58));
    process.made.put(kBias + kWord + 8, uint64_t{0x30});
    CHECK(located(process, variable, Arch::arm64)->offset == 0x40);
    CHECK(!located(process, variable)); // above the pointer there is nothing on x86-64

    process.made.put(kBias + kWord + 8, kIndex);
    variable.words[0].offset = 0x10;
    for (const uint64_t module : {uint64_t{0}, uint64_t{1} << 40, UINT64_MAX}) {
        process.index[0] = module, process.index[1] = 0x10;
        CHECK(!located(process, variable));
    }
    process.index[0] = 3, process.index[1] = 0x18;
    CHECK(!located(process, variable)); // it isn't about this variable
    process.index[1] = 0x10;
    found = located(process, variable);
    REQUIRE(found);
    CHECK(found->module == 3);
    CHECK(found->offset == 0x10);
}

TEST_CASE("labels: a module's number, a distance, and a file that says neither") {
    Process process;
    ThreadVariable variable;
    variable.offset = 8;
    CHECK(!located(process, variable));
    variable.words = {{kWord, ThreadVariable::Kind::module, 8}};
    CHECK(!located(process, variable));
    process.made.put(kBias + kWord, uint64_t{5});
    CHECK(located(process, variable)->module == 5);
    variable.words = {{kWord, ThreadVariable::Kind::distance, 8}};
    process.made.put(kBias + kWord, uint64_t(-16));
    CHECK(located(process, variable)->offset == uint64_t(-16));
    CHECK(located(process, variable)->module == 0);
    variable.distance = uint64_t(-8); // a program's comes first
    CHECK(located(process, variable)->offset == uint64_t(-8));
    variable = {};
    variable.words = {{UINT64_MAX - kBias, ThreadVariable::Kind::descriptor, 0}}; // an address that wraps
    CHECK(!located(process, variable));
}
