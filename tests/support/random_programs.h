// Several random programs that tail-call each other, as assembly text.
//
//      main   calls its functions; each may go to a program by the array `t`, or find an empty slot, or one that isn't there
//      b, c, d   do the same, until there were 33 tail calls in all
//
// A tail call stands in functions only: there it ends the function, and what called it goes on. Each step is counted in variables
// that all share, so that the order can be seen. Some call bpf_loop(), whose callback can't tail-call (Linux 6.18 refuses it).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "runtime/base/format.h"

namespace rawbpf::test {

class RandomPrograms {
  public:
    explicit RandomPrograms(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 1) {}

    /// Programs main, b, c, d of type tc; the map `t` has four entries, of which slots() are filled.
    std::string make() {
        std::string out = ".license \"GPL\"\n.map t prog_array key 4 value 4 entries 4\n.bss seen u64[4]\n";
        for (const char *name : {"main", "b", "c", "d"}) out += program(name);
        return out;
    }
    static constexpr std::pair<uint32_t, const char *> kSlots[] = {{0, "b"}, {1, "c"}, {3, "d"}};

  private:
    uint32_t next(uint32_t below) {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return static_cast<uint32_t>((state_ * 0x2545f4914f6cdd1d) >> 32) % below;
    }
    /// Changes what all programs see, and r7.
    std::string mark() {
        return format("r1 = seen + {} ll\nr2 = *(u64 *)(r1 + 0)\nr2 *= {}\nr2 += r7\n*(u64 *)(r1 + 0) = r2\nr7 = r2\nr7 {} {}\n",
                      8 * next(4), 2 * next(50) + 1, next(2) ? "+=" : "^=", next(1000));
    }
    std::string program(std::string_view name) {
        const uint32_t functions = 1 + next(3);
        std::string out = format(".program {} \"tc\"\nr6 = r1\nr7 = {}\n", name, next(1000));
        for (uint32_t n = 0; n < 1 + next(4); ++n) {
            if (next(2)) out += mark();
            append(out, "r1 = r6\nr2 = {}\ncall {}_{}\nr7 *= 31\nr7 += r0\n", next(100), name, next(functions));
        }
        const bool loops = next(3) == 0;
        if (loops) append(out, "r1 = {}\nr2 = {}_cb ll\nr3 = 0\nr4 = 0\ncall bpf_loop\nr7 += r0\n", next(6), name);
        out += mark() + "r0 = r7\nexit\n";
        for (uint32_t n = 0; n < functions; ++n) out += function(name, n, functions);
        if (loops) {
            append(out, ".function {}_cb\nr7 = r1\n{}r0 = {}\nexit\n", name, mark(), next(4) ? 0 : 1);
        }
        return out;
    }
    std::string function(std::string_view name, uint32_t n, uint32_t functions) {
        std::string out = format(".function {}_{}\nr6 = r1\nr7 = r2\n", name, n);
        if (next(2)) out += mark();
        if (n + 1 < functions && next(2)) // into a function behind it: no recursion
            append(out, "r1 = r6\nr2 = r7\ncall {}_{}\nr7 += r0\n", name, n + 1 + next(functions - n - 1));
        if (next(4)) {
            if (next(2)) append(out, "if r7 & {} goto over\n", 1 << next(6));
            append(out, "r1 = r6\nr2 = t ll\nr3 = {}\ncall bpf_tail_call\n", next(6));
            out += mark(); // it failed
        }
        return out + "over:\nr0 = r7\nr0 &= 0xffff\nexit\n";
    }

    uint64_t state_;
};

} // namespace rawbpf::test
