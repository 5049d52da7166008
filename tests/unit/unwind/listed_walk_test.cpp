// Walks of copies through code that whoever made it has listed: Java's.
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "programs/unwind/walk.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::unwind;

namespace {

/// At [0x40000, 0x50000): a rule for each 256 bytes; the last one is the outermost frame's.
class Listed final : public WalkTables {
  public:
    explicit Listed(std::vector<ListedRule> all) : rules_(std::move(all)) { rules_.push_back({{UNWIND_END, 0, 0, 0, 0}}); }
    [[nodiscard]] const std::byte *pool(uint32_t) const override { return nullptr; }
    [[nodiscard]] const UnwindRule *rule(uint32_t) const override { return nullptr; }
    std::map<uint64_t, uint64_t> words_of_code; ///< at an address: eight bytes
    [[nodiscard]] bool code(uint64_t address, std::span<std::byte> into) const override {
        for (size_t at = 0; at < into.size(); at += 8) {
            const auto found = words_of_code.find(address + at);
            if (found == words_of_code.end()) return false;
            std::memcpy(into.data() + at, &found->second, 8);
        }
        return true;
    }
    [[nodiscard]] std::optional<ListedRule> listed(uint64_t pc) const override {
        const uint64_t number = (pc - 0x40000) >> 8;
        return number < rules_.size() ? std::optional(rules_[number]) : std::nullopt;
    }
    /// sp is 0x7000.
    [[nodiscard]] Walked walk_it(const std::vector<uint64_t> &words, uint64_t pc, uint64_t fp, uint64_t its_code = 0) const {
        UnwindProgramOptions program;
        program.arch = Arch::x86_64;
        const UnwindMapping mapping{0x40000, 0x50000, 0, 0, 0, kListed};
        return walk(program, *this, {&mapping, 1}, {{pc, pc, 0x7000, fp, 0, 0, its_code}, std::as_bytes(std::span(words))});
    }

  private:
    std::vector<ListedRule> rules_;
};

using Frames = std::vector<uint64_t>;

} // namespace

TEST_CASE("unwind walk: listed code, with a caller's stack pointer of its own, and what a frame says of its function") {
    const Listed code({{{UNWIND_FP, 0, 2, -2, -1}, -1, -3, -4}, {{UNWIND_SP, 0, 2, -2, -1}}});
    // An interpreter's frame at 0x7020: its function (0x7008), a word, the caller's stack pointer, then the caller's fp and the
    // return address; two words that it has put there; from 0x7040 on the frame of what called it, of two words.
    std::vector<uint64_t> words{77, 0xabc, 1, 0x7040, 0x8888, 0x40110, 2, 3, 0x9999, 0x40205};
    const Walked walked = code.walk_it(words, 0x40010, 0x7020);
    CHECK(walked.ending == UNWIND_ENDED_ROOT);
    CHECK(walked.frames == Frames{0x40010, 0x40110, 0x40205});
    REQUIRE(walked.functions.size() == 1);
    CHECK((walked.functions[0].frame == 0 && walked.functions[0].word == 0xabc && walked.functions[0].position == 77));
    CHECK((walked.functions[0].running == 0 && code.walk_it(words, 0x40010, 0x7020, 78).functions[0].running == 78));
    // The register is the leaf's alone: not of what called it.
    CHECK(code.walk_it({0x7030, 0x40005, 77, 0xabc, 1, 0x7040, 0x8888, 0x40205}, 0x40110, 0, 78).functions[0].running == 0);
    for (const uint64_t lie : {uint64_t{0}, uint64_t{0x7028}, uint64_t{0x7041}}) { // down the stack, into the frame, at no word
        words[3] = lie;
        const Walked lied = code.walk_it(words, 0x40010, 0x7020); // then it is the end of this frame
        CHECK(lied.frames == Frames{0x40010, 0x40110});
        CHECK(lied.ending != UNWIND_ENDED_ROOT);
    }
    words[3] = uint64_t{1} << 40; // far away: nothing is read there
    CHECK(code.walk_it(words, 0x40010, 0x7020).ending == UNWIND_ENDED_UNREADABLE);
    CHECK(code.walk_it(words, 0x40310, 0x7020).ending == UNWIND_ENDED_NO_TABLE); // it isn't in the list
    CHECK(code.walk_it(words, 0x40310, 0x7020).pc == 0x40310);
}

TEST_CASE("unwind walk: a listed leaf at its beginning, at its end, and with words pushed") {
    Listed code({{{UNWIND_SP, 0, 4, -2, -1}, 0, 0, 0, true}});
    constexpr uint64_t kBack = 0x40120;
    code.words_of_code[kBack - 8] = 0xe8ull << 24; // a call: five bytes
    code.words_of_code[kBack] = 0;
    const auto returns = [&](const std::vector<uint64_t> &words) {
        const Walked walked = code.walk_it(words, 0x40010, 0x7777);
        return walked.ending == UNWIND_ENDED_ROOT && walked.frames == Frames{0x40010, kBack};
    };
    CHECK(returns({1, 2, 0x8888, kBack, 0}));                // as it is listed
    CHECK(returns({kBack, 2, 3, 4, 5, 6}));                  // not begun, or taken back
    CHECK(returns({0x8888, kBack, 3, 4, 5, 6}));             // but for the frame pointer
    CHECK(returns({9, 1, 2, 0x8888, kBack, 0}));             // a word is pushed
    CHECK(returns({9, 9, 9, 9, 9, 9, 1, 2, 0x8888, kBack})); // six
    CHECK(!returns({9, 9, 9, 9, 9, 9, 9, 1, 2, 0x8888, kBack}));
    code.words_of_code[kBack - 8] = 0; // no call
    CHECK(!returns({kBack, 2, 3, 4, 5, 6}));
}

TEST_CASE("unwind walk: a leaf that has taken its frame back has its caller's frame pointer") {
    // leave; here: ret. The second frame is left by what rbp is.
    const Listed code({{{UNWIND_SP, 0, 1, -2, -1}}, {{UNWIND_FP, 0, 2, -2, -1}}});
    const Walked walked = code.walk_it({0x40105, 0, 0x9999, 0x40205}, 0x40010, 0x7010);
    CHECK(walked.ending == UNWIND_ENDED_ROOT);
    CHECK(walked.frames == Frames{0x40010, 0x40105, 0x40205});
}

TEST_CASE("unwind walk: frames that were left by their frame pointers are told of, and a leaf that enters its function") {
    constexpr uint64_t kCall = 0xe8ull << 24, kPush = 0xe589'4855; // a call: five bytes; push rbp; mov rbp, rsp
    constexpr uint64_t kBack = 0x40020, kRoot = 0x40205;
    Listed code({{kGuess}, {{UNWIND_SP, 0, 2, -2, -1}}});
    code.words_of_code = {{0x40008, 0}, {0x40010, 0}, {kBack - 8, kCall}, {kBack, 0}, {kRoot - 8, kCall}, {kRoot, 0}};
    const std::vector<uint64_t> words{0, 0, 0x7030, kBack, 0, 0, 0x9999, kRoot};
    const Walked walked = code.walk_it(words, 0x40010, 0x7010);
    CHECK(walked.frames == Frames{0x40010, kBack, kRoot});
    REQUIRE(walked.pointed.size() == 2);
    CHECK((walked.pointed[0].frame == 0 && walked.pointed[0].fp == 0x7010 && !walked.pointed[0].enters));
    CHECK((walked.pointed[1].frame == 1 && walked.pointed[1].fp == 0x7030 && !walked.pointed[1].enters));
    code.words_of_code[0x40010] = kPush; // the pointer is its caller's
    const Walked entered = code.walk_it({kBack, 0, 0x7030, 1, 0, 0, 0x9999, kRoot}, 0x40010, 0x7030);
    CHECK(entered.frames == Frames{0x40010, kBack, kRoot});
    REQUIRE(entered.pointed.size() == 2);
    CHECK((entered.pointed[0].frame == 0 && entered.pointed[0].enters));
    CHECK((entered.pointed[1].frame == 1 && entered.pointed[1].fp == 0x7030 && !entered.pointed[1].enters));
    code.words_of_code[0x40010] = 0xc3; // ret: the function in the register may be any by now
    CHECK(code.walk_it({kBack, 0, 0x7030, 1, 0, 0, 0x9999, kRoot}, 0x40010, 0x7030).pointed.size() == 1);
    const Listed by_table(std::vector<ListedRule>{{{UNWIND_SP, 0, 2, -2, -1}}});
    CHECK(by_table.walk_it({0x8888, 0x40105, 0, 0}, 0x40010, 0x7010).pointed.empty());
}
