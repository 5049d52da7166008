// What the verifier knows along one run: the run says where it went, the verifier follows. PURE.
//
//      the run        r1 = 5        if r1 > 9 (no)        r2 += r1 ...
//      known          any number    from 0 to 9           a pointer to a value, 0 to 9 bytes on
//
// A walk of all paths (verify.h) meets a run only until it prunes, or refuses another path. A follower follows only the path of
// the run: at a branch it takes the side that the run took. This also tests the emulator and the verifier: no value of a run may
// be outside of what is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/verifier/state.h"
#include "runtime/verifier/verify.h"

namespace rawbpf::inline v0::verifier {

/// Goes along one run of one program. Both that and the object must outlive it.
class Follower {
  public:
    /// Whether something is known where it stands, and why not.
    enum class Standing : uint8_t {
        follows,    ///< state() has it
        refused,    ///< the verifier refused an instruction of this run
        undecided,  ///< it doesn't model one
        impossible, ///< the run went where it saw no way: one of the two is wrong
        elsewhere,  ///< the run left the program, or is in a callback
        too_far,    ///< more than kMostSteps
    };
    static constexpr uint32_t kMostSteps = 1'000'000; ///< 12 bytes each, and some kilobytes for each 512

    Follower(const ObjectSpec &spec, size_t program, const VerifyOptions &options);
    ~Follower();
    Follower(Follower &&) noexcept;
    Follower &operator=(Follower &&) noexcept;

    /// The run made a step: its next instruction, how deep it is now (0: the program itself), and its registers, which tell the
    /// sides of a branch that leads to one place. `elsewhere`: it isn't in this program's frames any more.
    void advance(uint32_t next, uint32_t depth, const uint64_t (&registers)[11], bool elsewhere = false);
    /// The run took its last step back.
    void back();

    /// Where it stands now.
    [[nodiscard]] Standing standing();
    /// Other than `follows`: why, in a few words.
    [[nodiscard]] const std::string &reason() const;
    /// What is known before the next instruction; nullptr where it doesn't follow. Good until the next call.
    [[nodiscard]] const State *state();

  private:
    struct Inside;
    std::unique_ptr<Inside> inside_;
};

} // namespace rawbpf::inline v0::verifier
