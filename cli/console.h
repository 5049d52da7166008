// The only code that prints: results to standard output or -o FILE, everything else to standard error.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "programs/render/writer.h"
#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::cli {

/// The exit status for a failure: 3 for what this kernel, build or these privileges can't do, else 1.
[[nodiscard]] int status_of(const Error &error);

/// Prints "WHO: MESSAGE" and a "hint: ..." line for each line of the hint to standard error, with the verifier's log in front
/// where there is one. Returns `status`, or status_of(error) where that is 0. What would disturb a terminal is replaced: messages
/// quote files.
int complain(std::string_view who, const Error &error, int status = 0);

/// The lines with everything that would disturb a terminal replaced by U+FFFD, but for their ends and tabs.
[[nodiscard]] std::string printable_lines(std::string_view text);

/// Writes text to standard error, as printable_lines() has it: messages name files, processes and what they said.
void say(std::string_view text);
/// The same with escape sequences: only for text that is ours, or has been made printable.
void say_as_is(std::string_view text);
/// Writes text to standard output; returns the exit status (a reader that has gone is no failure).
[[nodiscard]] int print(std::string_view text);

/// Whether `--color WHEN` and the descriptor ask for colours; NO_COLOR and TERM=dumb say no to "auto".
[[nodiscard]] bool color_wanted(std::string_view when, int fd);
[[nodiscard]] bool is_terminal(int fd);

/// Fills descriptors 0 to 2 where they are closed, so that no file opened later gets such a number and, with it, our remarks.
/// Writing to the fillers fails as it would to the closed descriptor (EBADF).
void fill_standard_descriptors();
/// Whether a descriptor is open.
[[nodiscard]] bool is_open(int fd);

/// Whether a write failed because nobody reads any more.
[[nodiscard]] bool reader_gone(const Error &error);

/// -o FILE, or standard output. A file is opened before anything else is done, so that a wrong path costs nothing, and emptied
/// only when a run has started, so that one that can't start leaves the last result alone.
class Output {
  public:
    /// `path` empty or "-": standard output. Errors: whatever open(2) says, naming the path.
    [[nodiscard]] static Result<Output> open(std::string_view path);
    /// Empties the file (a pipe or a device stays as it is).
    [[nodiscard]] Result<void> empty();
    /// Says that there is something in it: from now on a file made by open() stays.
    void keep() { created_ = false; }
    [[nodiscard]] render::Writer &writer() { return *writer_; }
    [[nodiscard]] int fd() const { return file_ ? file_.get() : 1; }
    [[nodiscard]] bool is_stdout() const { return !file_; }

    Output(Output &&other) noexcept
        : file_(std::move(other.file_)), path_(std::move(other.path_)), created_(std::exchange(other.created_, false)),
          writer_(std::move(other.writer_)) {}
    Output &operator=(Output &&) = delete;
    /// Removes the file if open() made it and keep() was never called.
    ~Output();

  private:
    Output() = default;
    Fd file_;
    std::string path_;
    bool created_ = false;
    std::unique_ptr<render::Writer> writer_;
};

/// A command that writes to -o FILE all the time that it runs: opens and empties it, then `write(Output &)`, which returns
/// Result<void>. Returns the exit status, 0 also where the reader has gone, status_of() a failure that it has complained about.
template <class Write> [[nodiscard]] int write_output(std::string_view who, std::string_view path, Write write) {
    Result<Output> output = Output::open(path);
    if (!output) return complain(who, output.error(), 1);
    if (Result<void> emptied = output->empty(); !emptied) return complain(who, emptied.error(), 1);
    const Result<void> done = write(*output);
    if (!done) return reader_gone(done.error()) ? 0 : complain(who, done.error());
    output->keep();
    return 0;
}

} // namespace rawbpf::inline v0::cli
