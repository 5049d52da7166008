// Explains an argument's instructions: the listing of a program that fetches only this argument, without its first and last
// lines.
//
//      .program fetch "uprobe"
//          r6 = r1
//          r7 = *(u64 *)(r6 + 80)     # eax        <- these
//          r7 <<= 32
//          r7 s>>= 32
//          r0 = 0
//          exit
#include "asm/print.h"
#include "programs/usdt/fetch.h"

namespace rawbpf::inline v0::usdt {

std::vector<std::string> explain_argument(const Argument &argument) {
    constexpr size_t kBefore = 2, kBehind = 2;
    if (!argument.problem.empty()) return {};
    Built built = fetching_program(argument);
    if (!built) return {built.report()}; // never: every place has its instructions
    std::vector<std::string> lines;
    const std::string text = print(built->functions[0]);
    for (std::string_view rest = text; !rest.empty();) {
        const size_t end = rest.find('\n');
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        while (line.starts_with(' ')) line.remove_prefix(1);
        lines.emplace_back(line);
    }
    if (lines.size() < kBefore + kBehind) return {};
    return {lines.begin() + kBefore, lines.end() - kBehind};
}

} // namespace rawbpf::inline v0::usdt
