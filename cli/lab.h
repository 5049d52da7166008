// The other executable: rawbpf-lab, which has the laboratory's commands too.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/object_file.h"
#include "programs/render/renderer.h"

namespace rawbpf::inline v0::cli {

using MakeRenderer = Result<std::unique_ptr<render::Renderer>> (*)(render::Format, const render::RenderOptions &,
                                                                   render::Writer &);

/// Whether this executable is the one with every command (command_list.cpp says so).
extern const bool kHasLab;
/// The renderers of all formats, in the executable that has them; otherwise make_renderer.
extern const MakeRenderer kMakeRenderer;

/// Source text for the assembler into what an object file would give. Errors: bad_input, after every mistake has been shown.
using OpenAssembly = Result<ObjectSpec> (*)(const InputFile &);
/// In the executable that has the assembler; otherwise nullptr.
extern const OpenAssembly kOpenAssembly;

/// Where this executable lies.
[[nodiscard]] std::string own_path();
/// Where rawbpf-lab lies, given where this executable does: beside it, named alike ("rawbpf-arm64" -> "rawbpf-lab-arm64"). PURE.
[[nodiscard]] std::string lab_beside(std::string_view own_path);

/// Gives a command line to rawbpf-lab where it is a matter for it: the laboratory's commands, commands that don't exist, and
/// what speaks of all commands (help, man pages, completions). Doesn't return when rawbpf-lab takes over; nullopt: go on here;
/// otherwise the exit status, and what is missing has been said.
[[nodiscard]] std::optional<int> pass_to_lab(std::span<const std::string_view> words);
/// Becomes rawbpf-lab. Returns when it can't, with the exit status: what is missing has been said.
[[nodiscard]] int become_lab(std::span<const std::string_view> words);

} // namespace rawbpf::inline v0::cli
