// Printing, and what to do when it fails. A pipe whose reader has gone (`| head`) is the reader's wish and ends a command
// quietly; a full disk is a failure. SIGPIPE is caught rather than ignored (main.cpp), because an ignored signal would stay
// ignored in the workloads that are started, while a handler is reset by exec.
#include "cli/console.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::cli {

int status_of(const Error &error) { return error.kind == Errc::permission || error.kind == Errc::unsupported ? 3 : 1; }

bool reader_gone(const Error &error) { return error.os == EPIPE; }

bool is_terminal(int fd) { return isatty(fd) == 1; }

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

void fill_standard_descriptors() {
    // The wrong way round: one can't be read from, two can't be written to.
    for (int fd : {0, 1, 2})
        if (!is_open(fd)) (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

bool color_wanted(std::string_view when, int fd) {
    if (when != "auto") return when == "always";
    const char *no = std::getenv("NO_COLOR"), *term = std::getenv("TERM");
    return is_terminal(fd) && !(no && *no) && !(term && std::string_view(term) == "dumb");
}

void say(std::string_view text) { say_as_is(printable_lines(text)); }

void say_as_is(std::string_view text) {
    (void)sys::write_all(2, text.data(), text.size()); // there is no other place to report to
}

std::string printable_lines(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const size_t end = std::min(text.find_first_of("\n\t"), text.size());
        render::append_printable(out, text.substr(0, end));
        if (end < text.size()) out += text[end];
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

int complain(std::string_view who, const Error &error, int status) {
    std::string text;
    if (!error.log.empty()) append(text, "{}{}", error.log, error.log.ends_with('\n') ? "" : "\n");
    append(text, "{}: {}\n", who, error.message());
    for (std::string_view hint = error.hint; !hint.empty();) {
        size_t end = std::min(hint.find('\n'), hint.size());
        if (end != 0) append(text, "hint: {}\n", hint.substr(0, end));
        hint.remove_prefix(std::min(end + 1, hint.size()));
    }
    say(text);
    return status ? status : status_of(error);
}

int print(std::string_view text) {
    Result<void> done = sys::write_all(1, text.data(), text.size());
    if (done || reader_gone(done.error())) return 0;
    return complain("rawbpf", in_context(std::move(done).error(), "standard output"), 1);
}

Result<Output> Output::open(std::string_view path) {
    Output out;
    if (path.empty() || path == "-") {
        out.writer_ = std::make_unique<render::Writer>(1);
        return out;
    }
    out.path_ = path;
    bool before = sys::exists(out.path_);
    out.file_ = TRY(sys::open(out.path_, O_WRONLY | O_CREAT, 0666));
    out.created_ = !before;
    out.writer_ = std::make_unique<render::Writer>(out.file_.get(), out.path_);
    return out;
}

Result<void> Output::empty() {
    if (!file_) return {};
    struct stat st = TRY_IN(sys::stat_fd(file_.get()), "{}", path_);
    if (S_ISREG(st.st_mode)) TRY_IN(sys::truncate(file_.get(), 0), "{}", path_);
    return {};
}

Output::~Output() {
    if (file_ && created_) (void)sys::remove_file(path_); // made a moment ago and still empty
}

} // namespace rawbpf::inline v0::cli
