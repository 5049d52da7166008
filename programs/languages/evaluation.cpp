// While a function is entered or left, its native frame and the list's differ. So a function need not fit always, only nearly as
// often as the best.
#include "programs/languages/evaluation.h"

#include <algorithm>
#include <map>

namespace rawbpf::inline v0::languages {
namespace {

constexpr size_t kLeastStacks = 16;
constexpr size_t kAgree = 8, kOf = 10;     // of all stacks, at least
constexpr size_t kMostFunctions = 1 << 16; // that are kept

} // namespace

void EvaluationSearch::add(std::span<const Interpreter::Range> functions, std::span<const uint64_t> offsets, size_t groups) {
    if (groups == 0) return;
    ++stacks_;
    std::map<uint64_t, Function> here;
    for (const uint64_t offset : offsets) {
        const auto next = std::upper_bound(functions.begin(), functions.end(), offset,
                                           [](uint64_t at, const Interpreter::Range &function) { return at < function.start; });
        if (next == functions.begin() || offset >= (next - 1)->end) continue;
        Function &its = here[(next - 1)->start];
        its.range = *(next - 1);
        ++its.agree;
    }
    for (const auto &[start, its] : here) {
        if (its.agree != groups || functions_.size() >= kMostFunctions) continue;
        Function &function = functions_[start];
        function.range = its.range;
        ++function.agree;
    }
}

std::optional<Interpreter::Range> EvaluationSearch::found() const {
    if (stacks_ < kLeastStacks) return std::nullopt;
    size_t best = 0;
    for (const auto &[start, function] : functions_) best = std::max(best, function.agree);
    if (best * kOf < stacks_ * kAgree) return std::nullopt;
    const auto size = [](const Function &function) { return function.range.end - function.range.start; };
    const Function *largest = nullptr;
    for (const auto &[start, function] : functions_)
        if (function.agree * kOf >= best * kAgree && (!largest || size(function) > size(*largest))) largest = &function;
    return largest->range;
}

} // namespace rawbpf::inline v0::languages
