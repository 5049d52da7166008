// remedies COUNT [SEED]: whether what explain proposes helps.
//
// Takes random programs that the verifier accepts, makes one mistake in each (a line left out, a number changed), and where it is
// refused then and explain proposes a change, makes that change. Says for how many of each kind the program is accepted again, by
// the kernel where it can be asked. REMEDIES_SHOW shows those that aren't. Fails below 80 %.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "tests/kernel/verdicts.h"
#include "tests/support/mend.h"

using namespace rawbpf;
using test::Said;

namespace {

struct Sum {
    unsigned proposed = 0, good = 0, refused = 0;
};

bool accepted(const ObjectSpec &spec, bool kernel) {
    if (!kernel) return verifier::verify(spec, 0).outcome == verifier::Outcome::accepted;
    return test::verdicts_on(spec, 0).kernel == Said::accepted;
}

// One line is left out, or a number in it changed; or the license.
std::string mistaken(std::string_view text, test::EdgeProgram &random) {
    std::vector<std::string> lines = test::lines_of(text);
    if (random.below(40) == 0) lines[0] = ".license \"Proprietary\"";
    size_t first = 0;
    while (first < lines.size() && !lines[first].starts_with(".program")) ++first;
    const size_t at = first + 1 + static_cast<size_t>(random.below(static_cast<int>(lines.size() - first - 1)));
    const size_t digit = lines[at].find_last_of("0123456789");
    if (random.below(2) || digit == std::string::npos || lines[at].find(':') != std::string::npos)
        lines[at] = lines[at].find(':') != std::string::npos ? lines[at] : "";
    else
        lines[at].insert(digit + 1, 1, static_cast<char>('0' + random.below(10)));
    std::string out;
    for (const std::string &line : lines) out += line + "\n";
    return out;
}

} // namespace

int main(int argc, char **argv) {
    const uint64_t most = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 1000;
    const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 1;
    const bool show = std::getenv("REMEDIES_SHOW"), kernel = !std::getenv("REMEDIES_OURS");
    std::map<std::string, Sum> kinds;
    Sum all;
    for (uint64_t n = seed; n < seed + most; ++n) {
        test::EdgeProgram random(n);
        const std::string text = random.make();
        const std::optional<ObjectSpec> base = test::assembled(text);
        if (!base || !accepted(*base, false)) continue;
        const std::string broken_text = mistaken(text, random);
        const std::optional<ObjectSpec> broken = test::assembled(broken_text);
        if (!broken) continue;
        const verifier::Verdict verdict = verifier::verify(*broken, 0);
        if (verdict.outcome != verifier::Outcome::refused) continue;
        const explain::Explanation e =
            explain::explain(*broken, broken->programs[0], explain::trace_of(*broken, broken->programs[0], verdict), nullptr);
        Sum &kind = kinds[e.refusal.kind.empty() ? "other" : std::string(e.refusal.kind)];
        ++kind.refused, ++all.refused;
        if (e.remedy.how == explain::Remedy::How::none) {
            if (show)
                std::printf("none %llu (%s): %s\n", static_cast<unsigned long long>(n), std::string(e.refusal.kind).c_str(),
                            verdict.reason.c_str());
            continue;
        }
        ++kind.proposed, ++all.proposed;
        const std::string mended_text = test::mended(broken_text, e.remedy);
        const std::optional<ObjectSpec> mended = test::assembled(mended_text);
        const bool good = mended && accepted(*mended, kernel);
        kind.good += good, all.good += good;
        if (!good && show)
            std::printf("bad %llu (%s): %s\n  remedy: %s\n  then: %s\n%s\n", static_cast<unsigned long long>(n),
                        std::string(e.refusal.kind).c_str(), verdict.reason.c_str(), e.remedy.text.c_str(),
                        mended ? verifier::verify(*mended, 0).reason.c_str() : "it can't be assembled", mended_text.c_str());
    }
    for (const auto &[name, sum] : kinds)
        std::printf("%-16s refused %u, a remedy for %u, which helps %u\n", name.c_str(), sum.refused, sum.proposed, sum.good);
    const double part = all.proposed ? 100.0 * all.good / all.proposed : 0;
    std::printf("%s remedies: of %u refused programs %u have a mechanical remedy; with it %u are accepted%s: %.1f%%\n",
                part >= 80 ? "PASS" : "FAIL", all.refused, all.proposed, all.good, kernel ? " by the kernel" : "", part);
    return part >= 80 ? 0 : 1;
}
