// The buffered sink. Renderers produce many small pieces (a line a sample, a rectangle a frame); one write(2) for 64 KiB of them
// keeps the cost of output out of the profile. A failed write is kept rather than returned from each append: a renderer is a
// pure function of its samples, and only the command knows whether a full disk ends the run or a closed pipe ends it quietly.
#include "programs/render/writer.h"

#include "runtime/sys/file.h"

namespace rawbpf::inline v0::render {

Result<void> Writer::flush() {
    if (!failed_ && !buffer_.empty()) {
        Result<void> done = sys::write_all(fd_, buffer_.data(), buffer_.size());
        if (done) {
            written_ += buffer_.size();
        } else {
            failed_ = true;
            error_ = in_context(std::move(done).error(), name_);
        }
    }
    buffer_.clear();
    if (failed_) return Unexpected(error_);
    return {};
}

} // namespace rawbpf::inline v0::render
