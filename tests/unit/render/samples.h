// Samples for the render tests, built by hand.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "programs/render/tool_formats.h"

namespace rawbpf::test {

inline FramePtr user_frame(const std::string &symbol, const std::string &module = "/usr/bin/split", uint64_t address = 0x401136) {
    return std::make_shared<Frame>(Frame{.address = address,
                                         .symbol = symbol,
                                         .symbol_offset = 0x16,
                                         .module = module,
                                         .file_offset = 0x1136,
                                         .build_id = "abcd",
                                         .kernel = false});
}
/// A frame with its place in the source, in the code of another one or not.
inline FramePtr source_frame(const std::string &symbol, const std::string &file, uint32_t line, bool inlined) {
    Frame frame = *user_frame(symbol);
    frame.file = file;
    frame.line = line;
    frame.inlined = inlined;
    return std::make_shared<Frame>(std::move(frame));
}
inline FramePtr kernel_frame(const std::string &symbol) {
    return std::make_shared<Frame>(Frame{.address = 0xffffffff8112a0b4,
                                         .symbol = symbol,
                                         .symbol_offset = 0x64,
                                         .module = symbol.empty() ? "" : "vmlinux",
                                         .file_offset = 0,
                                         .build_id = {},
                                         .kernel = true});
}

/// user and kernel frames root to leaf, as one reads them.
inline NamedSample stack(const std::string &comm, std::vector<FramePtr> user, std::vector<FramePtr> kernel = {}) {
    NamedSample s;
    s.wall_ns = 1761659235300424689;
    s.t_ns = 1500000;
    s.pid = 2133;
    s.tid = 2134;
    s.cpu = 4;
    s.comm = comm;
    s.user = {user.rbegin(), user.rend()};
    s.kernel = {kernel.rbegin(), kernel.rend()};
    s.kernel_bytes = static_cast<uint32_t>(8 * kernel.size());
    s.user_bytes = static_cast<uint32_t>(8 * user.size());
    return s;
}

inline RunInfo run_info() {
    return {.command = {"rawbpf", "profile", "-f", "svg", "--", "./my split", "3"},
            .version = "0.1.0",
            .kernel = "6.18.5",
            .arch = "x86_64",
            .cpus = 4,
            .start_wall_ns = 1761659235300424689,
            .frequency = 99};
}

/// What a format makes of these samples, each with its count.
inline std::string rendered(render::Format format, const std::vector<std::pair<NamedSample, uint64_t>> &samples,
                            const render::RenderOptions &options = {}, const Ledger &ledger = {},
                            const RunInfo &run = run_info()) {
    std::string text;
    render::Writer out(text);
    auto renderer = render::make_any_renderer(format, options, out);
    if (!renderer) return "error: " + renderer.error().message();
    (*renderer)->begin(run);
    for (auto &[sample, count] : samples) (*renderer)->sample(sample, count);
    (*renderer)->end(ledger);
    return text;
}

} // namespace rawbpf::test
