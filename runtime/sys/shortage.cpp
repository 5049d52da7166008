// The kernel has three answers to a question: yes, no, and "not now". A caller that asks hundreds of questions by trying can't
// tell the third from the second, so "not now" is noticed in invoke(), through which every call goes.
#include "runtime/sys/shortage.h"

#include <cerrno>
#include <sys/syscall.h>

#include "runtime/base/error.h"
#include "runtime/base/format.h"
#include "runtime/sys/describe.h"

namespace rawbpf::inline v0::sys {

namespace {

// The narrator has no words for the small calls.
std::string in_words(const Call &call, long result) {
    std::string out = describe(call, result);
    if (!out.empty()) return out;
    if (call.number == __NR_openat) append(out, "opening {}: ", reinterpret_cast<const char *>(call.args[1]));
    if (call.number == __NR_statfs) append(out, "looking at {}: ", reinterpret_cast<const char *>(call.args[0]));
    if (out.empty())
        append(out, "system call {}{}{}{}: ", call.number, call.why.empty() ? "" : " (", call.why, call.why.empty() ? "" : ")");
    return out + errno_name(static_cast<int>(-result));
}

} // namespace

void Shortage::after(const Call &call, long result) {
    if (before_) before_->after(call, result);
    if (result != -EIO && result != -ENOMEM && result != -EMFILE && result != -ENFILE) return;
    if (first_.empty())
        first_ = in_words(call, result);
    else
        ++more_;
}

std::string Shortage::text() const { return more_ == 0 ? first_ : format("{}, and {} more", first_, more_); }

} // namespace rawbpf::inline v0::sys
