// What the tests of the tracer share: a child that calls so many times, and everything that a tracer sees meanwhile.
#pragma once

#include <cerrno>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "programs/trace/decode.h"
#include "programs/trace/tracer.h"
#include "runtime/base/format.h"
#include "runtime/kernel/loader.h"
#include "tests/kernel/traced.h"
#include "tests/kernel/waiting_child.h"
#include "tests/support/test.h"

// In trace_test.cpp.
extern "C" {
long rawbpf_traced_leaf(long number, const char *text);
long rawbpf_traced_sum(long number);
long rawbpf_traced_middle(long number);
}

namespace rawbpf::test {

using namespace rawbpf::trace;

inline constexpr int kCalls = 1000;

/// What a tracer saw.
struct Traced {
    std::vector<std::string> lines; ///< "leaf(7, "hello")", "leaf = 4"
    std::vector<PlaceCounts> counts;
    std::vector<std::string> places;
    std::vector<uint64_t> durations;           ///< of the results that the kernel paired with their calls
    std::vector<std::vector<uint64_t>> stacks; ///< of the user's
};

/// Traces what a child does kCalls times; nullopt where this kernel has no such probes.
template <class Work> std::optional<Traced> traced(TraceOptions options, Work work, std::string &missing) {
    Child child([work] {
        for (int i = 0; i < kCalls; ++i) work(i);
    });
    options.workload = child.pid;
    options.program.filters.children = true;
    Result<std::unique_ptr<Tracer>> tracer = Tracer::open(options);
    if (!tracer && tracer.error().kind == Errc::unsupported) {
        missing = tracer.error().message();
        return {};
    }
    REQUIRE_MESSAGE(tracer, tracer.error().message(), " ", tracer.error().log);
    Traced out;
    const std::shared_ptr<const btf::Btf> kernel = kernel_btf().value_or(nullptr);
    const auto see = [&](const Event &event) {
        std::string line = event.place->function;
        bool unreadable = false;
        if (event.header.what == What::result) {
            line += " = ";
            append_result(line, event.result_type(), event.result(), kernel.get(), false, !is_user_function(event.place->kind));
            if (event.header.duration) out.durations.push_back(event.header.duration);
        }
        if (event.header.what == What::call || !event.layout->columns.empty()) {
            line += event.header.what == What::result ? " of (" : "(";
            for (size_t i = 0; i < event.layout->columns.size(); ++i) {
                if (i) line += ", ";
                append_value(line, event.type(i), event.value(i), event.blob(i), event.record, kernel.get(), false, unreadable);
            }
            line += ')';
        }
        CHECK_FALSE(unreadable);
        if (options.program.stack) out.stacks.push_back(event.user_stack().frames);
        out.lines.push_back(std::move(line));
    };
    Result<void> attached = (*tracer)->attach();
    if (!attached && (attached.error().kind == Errc::unsupported || attached.error().os == EPERM)) {
        missing = attached.error().message();
        return {};
    }
    REQUIRE_MESSAGE(attached, attached.error().message());
    child.run();
    const Result<void> finished = (*tracer)->finish(see);
    REQUIRE_MESSAGE(finished, finished.error().message());
    Result<std::vector<PlaceCounts>> counts = (*tracer)->counts();
    REQUIRE(counts);
    out.counts = std::move(*counts);
    for (const ProbeSite &place : (*tracer)->places()) out.places.push_back(place.function);
    for (const PlaceCounts &one : out.counts)
        CHECK(one.counts.fired == one.shown + one.counts.filtered + one.counts.sampled_out + one.counts.lost);
    return out;
}

inline TraceOptions of(std::vector<std::string> probes) {
    TraceOptions options;
    options.probes = std::move(probes);
    options.program.ring_bytes = 4 << 20;
    return options;
}

/// A line an event.
inline std::string text_of(const Traced &seen) {
    std::string out;
    for (const std::string &line : seen.lines) append(out, "{}\n", line);
    return out;
}
/// With the word ADDRESS for whatever stands behind each of these, up to the next , or ).
inline std::string without_addresses(std::string text, std::initializer_list<std::string_view> behind) {
    for (const std::string_view one : behind) {
        const size_t at = text.find(one);
        REQUIRE(at != std::string::npos);
        const size_t from = at + one.size(), end = text.find_first_of(",)", from);
        CHECK(end - from > 5);
        text.replace(from, end - from, "ADDRESS");
    }
    return text;
}

inline std::string own(std::string_view function) { return format("uprobe:/proc/self/exe:{}", function); }
inline void call_functions(int i) { (void)rawbpf_traced_middle(i); }

inline uint64_t count_of(const Traced &seen, std::string_view function) {
    uint64_t sum = 0;
    for (size_t i = 0; i < seen.places.size(); ++i)
        if (seen.places[i] == function) sum += seen.counts[i].shown;
    return sum;
}

} // namespace rawbpf::test
