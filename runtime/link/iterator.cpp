// An iterator's link is a recipe. Each descriptor that BPF_ITER_CREATE makes from it is one run, and is read like a file:
// while somebody reads, the kernel calls the program for one element after the other, and read(2) returns what it prints. That
// is why cat(1) can read a pin of the link.
#include "runtime/link/iterator.h"

#include <cerrno>

#include "runtime/base/fail.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0 {

Result<void> run_iterator(const Link &link, const std::function<Result<void>(std::string_view)> &sink) {
    if (link.fd() < 0) return fail(Errc::invalid_argument, "{} isn't an iterator", link.what());
    sys::Because why("one run over everything; reading it calls the program");
    Result<Fd> run = sys::iter_create(link.fd());
    if (!run) {
        Error error = std::move(run).error();
        if (error.os == EINVAL) error = make_error(Errc::invalid_argument, "is no iterator");
        return Unexpected(in_context(std::move(error), link.what()));
    }
    std::string buffer(32 << 10, '\0');
    for (;;) {
        Result<size_t> n = sys::read(run->get(), buffer.data(), buffer.size());
        if (!n && n.error().os == EAGAIN)
            continue; // the kernel has gone through a million elements without output, and lets others run
        if (!n) return Unexpected(in_context(std::move(n).error(), link.what()));
        if (*n == 0) return {};
        TRY(sink(std::string_view(buffer.data(), *n)));
    }
}

Result<std::string> read_iterator(const Link &link, size_t limit) {
    std::string out;
    TRY(run_iterator(link, [&](std::string_view piece) -> Result<void> {
        if (out.size() + piece.size() > limit) return fail(Errc::no_memory, "{}: prints more than {} bytes", link.what(), limit);
        out += piece;
        return {};
    }));
    return out;
}

} // namespace rawbpf::inline v0
