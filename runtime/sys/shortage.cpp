// A question to the kernel has three answers: yes, no, and "not now". The third looks like the second to whoever asks hundreds of
// them by trying, so it is noticed where every call passes.
#include "runtime/sys/shortage.h"

#include <cerrno>

#include "runtime/base/format.h"
#include "runtime/sys/describe.h"

namespace rawbpf::inline v0::sys {

void Shortage::after(const Call &call, long result) {
    if (before_) before_->after(call, result);
    if (result != -EIO && result != -ENOMEM && result != -EMFILE && result != -ENFILE) return;
    if (first_.empty())
        first_ = describe(call, result);
    else
        ++more_;
}

std::string Shortage::text() const { return more_ == 0 ? first_ : format("{}, and {} more", first_, more_); }

} // namespace rawbpf::inline v0::sys
