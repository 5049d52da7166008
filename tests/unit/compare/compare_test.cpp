// Figures of files side by side: which are the same, which differ, and how often chance passes for a difference.
#include "programs/compare/compare.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/format.h"
#include "tests/support/sanitized.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::compare;

namespace {

constexpr std::string_view kHeader =
    R"({"type":"header","schema":1,"command":["rawbpf"],"version":"1","kernel":"6.12.9","arch":"x86_64","cpus":2,)"
    R"("environment":{"cpu":"c","governor":"performance","bpf_jit":1,"load":[0.5,1,2],"mitigations":{"mds":"no"},"unread":{}}})"
    "\n";

Document document(std::string_view lines, std::string_view name = "a.json", std::string_view header = kHeader) {
    Result<Document> out = read_document(format("{}{}", header, lines), name);
    if (!out) MESSAGE(out.error().message());
    REQUIRE(out);
    return std::move(*out);
}
std::string refusal(std::string_view text) {
    const Result<Document> out = read_document(text, "a.json");
    return out ? "taken" : out.error().message();
}
std::string series(std::string_view variant, std::string_view name, const std::vector<double> &values) {
    std::string out = format(R"({{"type":"figure","variant":"{}","figure":"{}","values":[)", variant, name);
    for (size_t i = 0; i < values.size(); ++i) append(out, "{}{}", i == 0 ? "" : ",", values[i]);
    return out + "],\"minimum\":0}\n";
}
Comparison compared(const Document &a, const Document &b) {
    const std::vector<Document> both = {a, b};
    Comparison out = with_first(both);
    for (Row &row : out.rows) row.before = row.after = nullptr; // they go with `both`
    return out;
}

/// Times as a machine's: mostly close together, one in ten far above; whole numbers where that is asked.
class Times {
  public:
    std::vector<double> series(size_t n, bool whole) {
        std::vector<double> out(n);
        for (double &one : out) {
            const double share = uniform(), time = 100 - 3 * std::log(1 - uniform());
            one = share < 0.1 ? time + 50 : time;
            if (whole) one = std::round(one);
        }
        return out;
    }

  private:
    double uniform() { // Knuth's 64-bit linear generator, its upper bits
        state_ = state_ * 6364136223846793005 + 1442695040888963407;
        return static_cast<double>(state_ >> 11) / 9007199254740992.0;
    }
    uint64_t state_ = 11;
};

} // namespace

TEST_CASE("compare: lines of every kind are figures") {
    const Document d = document(series("block=4k", "ns", {1, 2, 3}) +
                                "{\"type\":\"measure\",\"name\":\"reads\",\"value\":7}\n"
                                "{\"type\":\"measure\",\"name\":\"reads\",\"value\":8}\n"
                                "{\"type\":\"entry\",\"map\":\"m\"}\n\n"
                                "{\"type\":\"program\",\"object\":\"/x/a.bpf.o\",\"program\":\"parse\",\"loaded\":true,"
                                "\"insns\":9,\"insn_hash\":\"ab\",\"verified_insns\":12,\"total_states\":1,"
                                "\"stack_depth\":\"16+8\",\"verification_time_us\":53}\n"
                                "{\"type\":\"variant\",\"file\":\"v/b.asm\",\"program\":\"main\",\"insns\":3,"
                                "\"kernel\":{\"r0\":\"0x2a\",\"rounds_ns\":[5,6],\"empty_rounds_ns\":[1,1.5]},"
                                "\"emulator\":null,\"stack_depth\":null}\n");
    const auto find = [&](std::string_view subject, std::string_view name) -> const Figure * {
        for (const Figure &one : d.figures)
            if (one.subject == subject && one.name == name) return &one;
        return nullptr;
    };
    CHECK(find("block=4k", "ns")->values == std::vector<double>{1, 2, 3});
    CHECK(find("", "reads")->values == std::vector<double>{7, 8});
    CHECK(!find("", "reads")->exact);
    CHECK(find("parse", "verdict")->word == "loaded");
    CHECK(find("parse", "insn_hash")->word == "ab");
    CHECK(find("parse", "verified_insns")->values == std::vector<double>{12});
    CHECK(find("parse", "verified_insns")->exact);
    CHECK(find("parse", "stack_depth")->values == std::vector<double>{24});
    CHECK(!find("parse", "verification_time_us")->exact);
    CHECK(find("parse", "insns")->file == "a.bpf.o");
    CHECK(find("main", "kernel ns")->values == std::vector<double>{4, 4.5});
    CHECK(find("main", "kernel r0")->word == "0x2a");
    CHECK(find("main", "stack_depth") == nullptr);
    REQUIRE(d.machines.size() == 1);
    CHECK(d.machines[0].fact("mitigations.mds") == "no");
    CHECK(d.machines[0].fact("bpf_jit") == "1");
    CHECK(d.machines[0].load == 0.5);
}

TEST_CASE("compare: files that can't be compared") {
    CHECK(refusal("") == "a.json has no figures");
    CHECK(refusal(kHeader) == "a.json has no figures");
    CHECK(refusal("x\n") == "a.json:1: no JSON: column 1: expected a value");
    CHECK(refusal(format("{}{{\"type\":\n", kHeader)) == "a.json:2: no JSON: column 9: expected a value");
    CHECK(refusal("[1]\n") == "a.json:1: no object");
    CHECK(refusal("{\"type\":\"header\",\"schema\":2}\n") == "a.json:1: its schema is 2, and this rawbpf reads schema 1");
    CHECK(refusal("{\"type\":\"header\"}\n") == "a.json:1: its schema is missing, and this rawbpf reads schema 1");
}

TEST_CASE("compare: counted figures differ where they aren't equal") {
    const auto program = [](std::string_view path, int insns, bool loaded) {
        return format(
            "{{\"type\":\"program\",\"object\":\"{}\",\"program\":\"p\",\"loaded\":{},\"verified_insns\":{},\"insns\":5}}\n",
            path, loaded ? "true" : "false", insns);
    };
    const std::vector<Document> both = {document(program("old/x.o", 100, true)),
                                        document(program("new/y.o", 120, false), "b.json")};
    const Comparison c = with_first(both);
    REQUIRE(c.rows.size() == 3);
    CHECK(!c.kernels);
    CHECK(!c.files); // one each, whatever they are called
    CHECK(c.rows[0].verdict == Verdict::differs);
    CHECK(c.rows[0].after->word == "refused");
    CHECK(c.rows[1].verdict == Verdict::same);
    CHECK(c.rows[2].difference.value == 20);
    CHECK(c.rows[2].difference.low == 20);
}

TEST_CASE("compare: programs find each other by name") {
    const auto program = [](std::string_view path, std::string_view name, int insns) {
        return format("{{\"type\":\"program\",\"object\":\"{}\",\"program\":\"{}\",\"loaded\":true,\"verified_insns\":{}}}\n",
                      path, name, insns);
    };
    const std::vector<Document> both = {document(program("old/x.o", "p", 100) + program("old/x.o", "q", 7)),
                                        document(program("new/x.o", "p", 120) + program("new/x.o", "r", 7), "b.json")};
    const Comparison c = with_first(both);
    CHECK(!c.files);
    REQUIRE(c.rows.size() == 6);
    CHECK(c.rows[0].verdict == Verdict::same); // verdict
    CHECK(c.rows[1].verdict == Verdict::differs);
    CHECK(c.rows[1].difference.value == 20);
    CHECK(c.rows[1].relative() == 0.2);
    CHECK(c.rows[2].verdict == Verdict::only_before);
    CHECK(c.rows[5].verdict == Verdict::only_after);
    CHECK(c.rows[5].figure().subject == "r");
}

TEST_CASE("compare: measured figures need values, and a difference beyond noise") {
    const std::vector<double> low = {10, 11, 12, 10, 11, 12}, high = {20, 21, 22, 20, 21, 22};
    CHECK(compared(document(series("", "ns", low)), document(series("", "ns", high))).rows[0].verdict == Verdict::differs);
    CHECK(compared(document(series("", "ns", low)), document(series("", "ns", low))).rows[0].verdict == Verdict::within);
    const Comparison few = compared(document(series("", "ns", {1, 2, 3})), document(series("", "ns", {7, 8, 9})));
    CHECK(few.rows[0].verdict == Verdict::few);
    CHECK(few.least_values == 4);
}

TEST_CASE("compare: kernels, files and variants of one file") {
    std::string newer(kHeader);
    newer.replace(newer.find("6.12.9"), 6, "6.18.1");
    const Document d = document(series("", "ns", {1, 2}) + newer + series("", "ns", {3, 4}));
    const std::vector<Document> kernels = parts_of(d);
    REQUIRE(kernels.size() == 2);
    CHECK(kernels[1].name == "6.18.1");
    const Comparison c = with_first(kernels);
    REQUIRE(c.rows.size() == 1);
    CHECK(c.rows[0].after_value == 3.5);
    REQUIRE(c.changes.size() == 1);
    CHECK(c.changes[0].fact == "kernel");
    const std::vector<Document> variants = parts_of(document(series("n=1", "ns", {1}) + series("n=2", "ns", {5})));
    REQUIRE(variants.size() == 2);
    CHECK(with_first(variants).rows[0].after_value == 5);
    CHECK(parts_of(document(series("", "ns", {1}))).empty());
    // Files of several kernels: each kernel with itself.
    const std::vector<Document> twice = {d, d};
    const Comparison same = with_first(twice);
    CHECK(same.kernels);
    REQUIRE(same.rows.size() == 2);
    CHECK(same.rows[1].before_value == 3.5);
    CHECK(same.rows[1].after_value == 3.5);
}

TEST_CASE("compare: figures in front of any header are of no kernel, and no others") {
    const Result<Document> d = read_document(series("", "ns", {1}) + std::string(kHeader) + series("", "ns", {2}), "a.json");
    REQUIRE(d);
    const std::vector<Document> twice = {*d, *d};
    for (const Row &row : with_first(twice).rows)
        CHECK(row.after == &twice[1].figures[static_cast<size_t>(row.before - &twice[0].figures[0])]);
    CHECK(parts_of(*d).size() == 2);
}

TEST_CASE("compare: of machines what they don't have in common") {
    std::string other(kHeader);
    other.replace(other.find("performance"), 11, "powersave");
    other.replace(other.find("[0.5,"), 5, "[4.5,");
    const Comparison c = compared(document(series("", "ns", {1})), document(series("", "ns", {1}), "b.json", other));
    REQUIRE(c.changes.size() == 2);
    CHECK(c.changes[0].fact == "governor");
    CHECK(c.changes[0].before == "performance");
    CHECK(c.changes[0].after == "powersave");
    CHECK(c.changes[1].fact == "load");
}

TEST_CASE("compare: of 200 comparisons of like with like, 5 % at most cry wolf, however much they compare") {
    for (const size_t figures : {size_t{1}, size_t{6}}) {
        Times times;
        int wolves = 0, found = 0;
        const int rounds = test::slow() ? 40 : 200;
        for (int i = 0; i < rounds; ++i) {
            std::string a, b, slower;
            for (size_t f = 0; f < figures; ++f) {
                const std::string name = format("f{}", f);
                std::vector<double> values = times.series(12, f % 3 == 2);
                a += series("", name, values);
                values = times.series(12, f % 3 == 2);
                b += series("", name, values);
                for (double &one : values) one += 10;
                slower += series("", name, values);
            }
            const auto differs = [](const Comparison &c) {
                bool any = false;
                for (const Row &row : c.rows) any |= row.verdict == Verdict::differs;
                return any;
            };
            wolves += differs(compared(document(a), document(b)));
            if (i % 10 == 0) found += differs(compared(document(a), document(slower)));
        }
        CAPTURE(figures);
        CHECK(wolves * 20 <= rounds);
        CHECK(found >= (test::slow() ? 1 : 18)); // of 4, of 20: what is there is still seen
    }
}
