// A sink that keeps what it is given, beside the stand-ins for processes.
#pragma once

#include <string>
#include <vector>

#include "programs/profile/profiler.h"
#include "tests/unit/processes/fakes.h"

namespace rawbpf::test {

using namespace rawbpf::profile;

/// Keeps what it is given.
struct Keep : Sink {
    std::vector<NamedSample> each;
    std::vector<CountedSample> counted;
    size_t calls = 0;
    Result<void> samples(std::span<const NamedSample> some) override {
        ++calls;
        each.insert(each.end(), some.begin(), some.end());
        return {};
    }
    Result<void> stacks(std::span<const CountedSample> some) override {
        ++calls;
        counted.insert(counted.end(), some.begin(), some.end());
        return {};
    }
};

/// "leaf;caller;..." as text.
inline std::string text(const std::vector<FramePtr> &frames) {
    std::string out;
    for (const FramePtr &frame : frames) out += (out.empty() ? "" : ";") + frame->symbol;
    return out;
}

} // namespace rawbpf::test
