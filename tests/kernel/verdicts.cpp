// verdicts SECONDS [SEED], verdicts FILE...: what the kernel's verifier and ours say of programs, compared.
//
// verdicts --lines FILE...: a line a program, fields between tabs, for tests/corpus/verdicts.py.
//
// Of random programs until time is up, or of all programs in files (objects, source text). A program that ours accepts and the
// kernel refuses is a failure; other differences are listed. Random programs that ours accepts are run in the emulator, too: a
// number that leaves the range that ours derived is a failure. Set VERDICTS_SHOW to see each.
#include "tests/kernel/verdicts.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "asm/print.h"
#include "runtime/base/bytes.h"
#include "runtime/object/core.h"
#include "tests/support/ranges.h"

using namespace rawbpf;
using test::Said;

namespace {

struct Sum {
    unsigned long long compared = 0, decided = 0, agreed = 0, both_refuse = 0, same_place = 0, wrong = 0, kernel_refused = 0,
                       policy = 0, runs = 0, numbers = 0, left = 0;
};

const char *word(Said said) { return said == Said::accepted ? "accepts" : said == Said::refused ? "refuses" : "-"; }

void add(Sum &sum, const test::Verdicts &v, const std::string &name, const ProgramSpec &program) {
    ++sum.compared;
    if (v.kernel == Said::neither) ++sum.policy;
    if (v.kernel == Said::refused) ++sum.kernel_refused;
    static const bool all = std::getenv("VERDICTS_SHOW");
    if (v.kernel != Said::neither && v.ours == Said::neither && all)
        std::printf("undecided %s: %s\n", name.c_str(), v.our_reason.c_str());
    if (!v.decided()) return;
    ++sum.decided;
    if (v.agree()) {
        ++sum.agreed;
        if (v.kernel != Said::refused) return;
        ++sum.both_refuse;
        if (v.kernel_insn == v.our_insn) {
            ++sum.same_place;
            return;
        }
        if (all)
            std::printf("place %s: kernel %lld: %s\n   ours %lld: %s\n", name.c_str(), static_cast<long long>(v.kernel_insn),
                        v.kernel_reason.c_str(), static_cast<long long>(v.our_insn), v.our_reason.c_str());
        return;
    }
    sum.wrong += v.wrongly_accepted();
    std::printf("%s %s: the kernel %s (%lld: %s)\n   ours %s (%lld: %s)\n", v.wrongly_accepted() ? "WRONG" : "differs",
                name.c_str(), word(v.kernel), static_cast<long long>(v.kernel_insn), v.kernel_reason.c_str(), word(v.ours),
                static_cast<long long>(v.our_insn), v.our_reason.c_str());
    if (all)
        for (size_t i = 0; i < program.insns.size(); i += is_wide(program.insns[i]) ? 2 : 1)
            std::printf("  %4zu: %s\n", i, print(std::span(program.insns).subspan(i)).c_str());
    std::fflush(stdout);
}

// What ours derived, beside three runs.
void run(Sum &sum, const ObjectSpec &spec, uint64_t seed) {
    verifier::VerifyOptions options;
    options.kernel = test::running_kernel();
    for (uint64_t n = 0; n < 3; ++n) {
        const test::Ranged ran = test::run_in_ranges(spec, 0, test::random_bytes(seed + n * 7919, n == 2 ? 20 : 64), options);
        ++sum.runs;
        sum.numbers += ran.compared;
        if (ran.mistake.empty()) continue;
        ++sum.left;
        std::printf("LEFT seed %llu, run %llu: %s\n", static_cast<unsigned long long>(seed), static_cast<unsigned long long>(n),
                    ran.mistake.c_str());
        static const bool all = std::getenv("VERDICTS_SHOW");
        if (all)
            for (size_t i = 0; i < spec.programs[0].insns.size(); i += is_wide(spec.programs[0].insns[i]) ? 2 : 1)
                std::printf("  %4zu: %s\n", i, print(std::span(spec.programs[0].insns).subspan(i)).c_str());
        std::fflush(stdout);
        return;
    }
}

// Tabs and newlines separate.
std::string one_field(std::string text) {
    for (char &c : text)
        if (c == '\t' || c == '\n') c = ' ';
    return text;
}

// What the kernel's own tests say of a program by tags at its function (tools/testing/selftests/bpf/progs/bpf_misc.h):
// "success", "failure", or nothing; then the messages that they expect, joined by "|".
std::pair<std::string, std::string> expected_of(const ObjectSpec &spec, const ProgramSpec &program) {
    std::pair<std::string, std::string> out;
    if (spec.btf.empty() || program.func_info.empty()) return out;
    const Result<btf::Btf> types = btf::Btf::parse(spec.btf, spec.name);
    if (!types) return out;
    for (btf::TypeId id = types->first_id(); id < types->end_id(); ++id) {
        const Result<btf::Type> tag = types->type(id);
        if (!tag || tag->kind != btf::Kind::decl_tag || tag->size_or_type != program.func_info.front().type) continue;
        std::string_view text = tag->name;
        if (!text.starts_with("comment:")) continue;
        text.remove_prefix(8);
        if (text == "test_expect_success") out.first = "success";
        if (text == "test_expect_failure") out.first = "failure";
        if (!text.starts_with("test_expect_msg=")) continue;
        text.remove_prefix(16);
        while (!text.empty() && text.front() >= '0' && text.front() <= '9') text.remove_prefix(1); // of __COUNTER__, since 6.10
        if (text.starts_with('=')) text.remove_prefix(1);
        out.second += (out.second.empty() ? "" : "|") + std::string(text);
    }
    return out;
}

void print_line(const char *path, const ObjectSpec &spec, const ProgramSpec &program, const test::Verdicts &v) {
    const auto [expected, messages] = expected_of(spec, program);
    std::printf("%s\t%s\t%s\t%s\t%lld\t%s\t%s\t%lld\t%s\t%s\t%s\n", path, program.name.c_str(), program.section.c_str(),
                word(v.kernel), static_cast<long long>(v.kernel_insn), one_field(v.kernel_reason).c_str(), word(v.ours),
                static_cast<long long>(v.our_insn), one_field(v.our_reason).c_str(), expected.c_str(),
                one_field(messages).c_str());
    std::fflush(stdout);
}

void compare_file(Sum &sum, const char *path, bool lines) {
    FILE *file = std::fopen(path, "rb");
    if (!file) return;
    std::string bytes(16 << 20, '\0');
    bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
    std::fclose(file);
    ObjectSpec spec;
    if (std::string_view(path).ends_with(".asm")) {
        const Assembled made = assemble(bytes);
        Result<ObjectSpec> made_spec =
            made ? object_of(made.unit) : Result<ObjectSpec>(Unexpected(make_error(Errc::bad_input, "assembly")));
        if (!made_spec) return;
        spec = std::move(*made_spec);
    } else {
        Result<ObjectSpec> read = exec::read_program(bytes_of(bytes), path);
        if (!read) return;
        spec = std::move(*read);
    }
    for (ProgramSpec &program : spec.programs) program.autoload = true; // others wouldn't be relocated
    const Result<std::shared_ptr<const btf::Btf>> types = kernel_btf();
    if (types && !relocate_core(spec, CoreTargets{.kernel = types->get()})) return;
    verifier::VerifyOptions options;
    if (types) options.kernel_types = types->get();
    for (size_t n = 0; n < spec.programs.size(); ++n) {
        const test::Verdicts both = test::verdicts_on(spec, n, options);
        if (lines)
            print_line(path, spec, spec.programs[n], both);
        else
            add(sum, both, std::string(path) + ":" + spec.programs[n].name, spec.programs[n]);
    }
}

} // namespace

int main(int argc, char **argv) {
    Sum sum;
    if (argc > 1 && std::string_view(argv[1]) == "--lines") {
        for (int n = 2; n < argc; ++n) compare_file(sum, argv[n], true);
        return 0;
    }
    const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
    if (seconds > 0) {
        const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 0) : static_cast<uint64_t>(time(nullptr)) * 1'000'000;
        const uint64_t most = argc > 3 ? std::strtoull(argv[3], nullptr, 0) : UINT64_MAX;
        const time_t end = time(nullptr) + static_cast<time_t>(seconds);
        for (uint64_t n = seed; time(nullptr) < end && n - seed < most; ++n) {
            const std::optional<ObjectSpec> spec = test::random_spec(n);
            if (std::getenv("VERDICTS_SHOW")) std::fprintf(stderr, "seed %llu\n", static_cast<unsigned long long>(n));
            if (!spec) continue;
            const test::Verdicts verdicts = test::verdicts_on(*spec, 0);
            add(sum, verdicts, "seed " + std::to_string(n), spec->programs[0]);
            if (verdicts.ours == Said::accepted) run(sum, *spec, n);
        }
        std::printf("from seed %llu on\n", static_cast<unsigned long long>(seed));
    } else {
        for (int n = 1; n < argc; ++n) compare_file(sum, argv[n], false);
    }
    std::printf(
        "%s verdicts: %llu programs, %llu refused by the kernel for safety, %llu for other reasons; decided %.2f%%, of "
        "these alike %.2f%%, "
        "refused at the same instruction %.2f%%, wrongly accepted %llu; %llu runs, %llu numbers beside their ranges, %llu "
        "runs left them\n",
        sum.wrong || sum.left ? "FAIL" : "PASS", sum.compared, sum.kernel_refused, sum.policy,
        100.0 * static_cast<double>(sum.decided) / static_cast<double>(std::max(1ULL, sum.compared - sum.policy)),
        100.0 * static_cast<double>(sum.agreed) / static_cast<double>(std::max(1ULL, sum.decided)),
        100.0 * static_cast<double>(sum.same_place) / static_cast<double>(std::max(1ULL, sum.both_refuse)), sum.wrong, sum.runs,
        sum.numbers, sum.left);
    return sum.wrong || sum.left ? 1 : 0;
}
