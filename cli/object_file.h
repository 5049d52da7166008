// What the commands that read object files and kernels' types share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/options.h"
#include "programs/inspect/btf_source.h"
#include "runtime/kernel/module_btf.h"
#include "runtime/object/core.h"
#include "runtime/object/spec.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::cli {

/// A file's bytes: mapped, or read where it is a pipe ("-": standard input).
class InputFile {
  public:
    /// `most`: so many bytes a pipe may give.
    [[nodiscard]] static Result<InputFile> open(std::string_view path, size_t most = sys::kReadLimit);
    [[nodiscard]] Bytes bytes() const { return mapping_ ? mapping_.bytes() : bytes_of(*text_); }
    [[nodiscard]] const std::string &name() const { return name_; }

  private:
    sys::Mapping mapping_;
    std::unique_ptr<std::string> text_ = std::make_unique<std::string>();
    std::string name_;
};

/// An object file with its spec.
struct ObjectFile {
    InputFile file;
    ObjectSpec spec;
};
[[nodiscard]] Result<ObjectFile> open_object(std::string_view path);
/// Whether a file is source text for the assembler, as far as its name and its first bytes tell: text that isn't C, hence no
/// object.
[[nodiscard]] bool is_assembly(std::string_view path, Bytes bytes);
/// An object file, or source text for the assembler. Errors: unsupported when it is source text and this build has no assembler.
[[nodiscard]] Result<ObjectFile> open_object_or_assembly(std::string_view path);

/// Types to relocate against: a file's, or the running kernel's with its modules' behind them.
class KernelTypes {
  public:
    /// `path` empty: the running kernel's.
    [[nodiscard]] static Result<KernelTypes> open(const std::string &path);
    [[nodiscard]] CoreTargets targets() const;
    [[nodiscard]] const std::string &name() const { return name_; }

  private:
    std::unique_ptr<inspect::BtfSource> source_;
    std::unique_ptr<ModuleTypes> modules_;
    std::string name_;
};

/// The first line of JSON output.
void append_json_header(std::string &out, const Arguments &arguments);

/// Opens -o FILE or standard output, writes all of it; returns the exit status.
[[nodiscard]] int write_result(std::string_view who, std::string_view output, std::string_view text);

} // namespace rawbpf::inline v0::cli
