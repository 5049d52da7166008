// What the tests of custom traces share: a child that works when it is told to, and everything that a tracer sees meanwhile.
#pragma once

#include <algorithm>
#include <cerrno>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

#include "programs/custom/names.h"
#include "programs/custom/tracer.h"
#include "programs/processes/stack_ends.h"
#include "tests/kernel/traced.h"
#include "tests/kernel/waiting_child.h"
#include "tests/support/test.h"

namespace rawbpf::test {

struct Seen {
    std::vector<custom::Record> heads;
    std::vector<std::vector<std::string>> stacks; ///< of the user's, leaf first
    std::vector<std::string> hashes;
    uint64_t unknown = 0;                                     ///< traces of processes of which nothing is known
    std::vector<std::pair<std::string, uint64_t>> stack_ends; ///< of all, as the ledger has them
    custom::Counts counts{};
    [[nodiscard]] uint64_t of(custom::Origin origin) const {
        return static_cast<uint64_t>(
            std::count_if(heads.begin(), heads.end(), [&](const custom::Record &r) { return r.origin == origin; }));
    }
};

inline bool missing(const Error &error) {
    return error.kind == Errc::unsupported || error.kind == Errc::permission || error.os == EPERM;
}

struct Tracing {
    bool with_stacks = true;
    bool poll_meanwhile = true;
    /// Whether what processes map is followed, and the child looked at from the start.
    bool know_processes = true;
    /// Instead of CustomTracer::attach(), given the child's number.
    std::function<Result<void>(int)> attach = nullptr;
};

/// Everything that the tracer sees while the child works. nullopt where this kernel can't.
template <class Work>
std::optional<Seen> traced(custom::CustomTracer &tracer, Work work, std::string &why, const Tracing &how = {}) {
    using namespace custom;
    Child child(work);
    Names names;
    if (const UnwindProgramOptions *program = tracer.unwinds())
        REQUIRE(names.following().unwind(tracer.generic_object(), 64 << 20, *program).has_value());
    processes::StackEnds ends;
    if (how.know_processes) {
        if (Result<void> watched = names.following().watch(-1); !watched) why = watched.error().message();
        REQUIRE(names.following().want(static_cast<uint32_t>(child.pid)).has_value());
    }
    Seen seen;
    const auto report = [&](const CustomTrace &trace) {
        (void)names.wanted(trace.head);
        if (trace.head.origin == Origin::custom) REQUIRE(trace.head.pid == static_cast<uint32_t>(child.pid));
        seen.heads.push_back(trace.head);
        ends.add(session::ending_of(trace.head.ending, trace.head.user_bytes > 0));
        if (!how.with_stacks || trace.head.origin != Origin::custom) return;
        const LocatedTrace located = names.locate(trace);
        seen.unknown += located.unknown;
        const Named named = names.name(located);
        std::vector<std::string> stack;
        for (const FramePtr &frame : named.user) stack.push_back(frame->symbol);
        seen.stacks.push_back(std::move(stack));
        seen.hashes.push_back(stack_hash(named.kernel, named.user));
    };
    REQUIRE(tracer.follow(child.pid).has_value());
    Result<void> attached = how.attach ? how.attach(child.pid) : tracer.attach();
    if (!attached && missing(attached.error())) {
        why = attached.error().message();
        return {};
    }
    REQUIRE_MESSAGE(attached, attached.error().message(), " ", attached.error().hint);
    // Tables of the child, which runs already, are there before it goes on.
    if (tracer.unwinds() && how.know_processes) REQUIRE(names.following().want(static_cast<uint32_t>(child.pid)).has_value());
    child.release();
    while (!child.poll()) {
        if (how.poll_meanwhile) REQUIRE(names.following().tick([&] { (void)tracer.poll(report); }).has_value());
        usleep(1000);
    }
    REQUIRE(tracer.finish(report).has_value());
    Result<Counts> counts = tracer.counts();
    REQUIRE(counts);
    seen.counts = *counts;
    seen.stack_ends = ends.list();
    CHECK(tracer.malformed() == 0);
    const Counts &c = seen.counts;
    CHECK(c.entered + c.sampled + c.off_cpu ==
          c.lost_context + c.lost_scratch + c.lost_ring_full + c.lost_off_cpu_map + c.filtered + seen.heads.size());
    return seen;
}

#define OPEN_OR_SKIP(tracer, options)                                                                                            \
    Result<std::unique_ptr<custom::CustomTracer>> opened = custom::CustomTracer::open(options);                                  \
    if (!opened && rawbpf::test::missing(opened.error())) SKIP("needs CAP_BPF and ring buffers: " + opened.error().message());   \
    REQUIRE_MESSAGE(opened, opened.error().message(), " ", opened.error().log);                                                  \
    custom::CustomTracer &tracer = **opened

} // namespace rawbpf::test
