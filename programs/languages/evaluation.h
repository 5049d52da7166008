// Which function of an interpreter evaluates the language's functions, where its file doesn't say so: many are stripped, and
// export only what extensions call.
//
//      list of the language, groups      3         2         4
//      native: how often  rb_yield       2         1         3
//                         main           1         1         1
//                         vm_exec        3         2         4      <- one of these two: the larger one
//                         vm_exec_core   3         2         4      <-
//
// A group is what ran without native code in between, so the function that evaluates is on the stack once for each (merge.h).
// What fits as well is what always calls it, or what a program without such variety always calls: all these are small, and a
// function that has code for each of a language's instructions is large. PURE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "programs/languages/runtime.h"

namespace rawbpf::inline v0::languages {

class EvaluationSearch {
  public:
    /// A stack that reaches its root: where in the interpreter's file its native frames are (calls, not the addresses that they
    /// return to), and how many groups its list has. `functions`: the file's, by where they begin.
    void add(std::span<const Interpreter::Range> functions, std::span<const uint64_t> offsets, size_t groups);
    /// nullopt: not enough stacks yet, or none fits.
    [[nodiscard]] std::optional<Interpreter::Range> found() const;
    [[nodiscard]] size_t stacks() const { return stacks_; }

  private:
    struct Function {
        Interpreter::Range range{};
        size_t agree = 0; ///< stacks that have it once for each group
    };
    std::unordered_map<uint64_t, Function> functions_; // by where they begin
    size_t stacks_ = 0;
};

} // namespace rawbpf::inline v0::languages
