// Each probe is an event of its own, which takes a while to attach; the progress message shows how many are done.
#include "runtime/link/one_by_one.h"

#include <utility>
#include <vector>

#include "runtime/base/fail.h"
#include "runtime/base/long_step.h"
#include "runtime/link/bisect.h"

namespace rawbpf::inline v0 {

Result<Link> attach_one_by_one(const Attaching &a, const Singles &singles,
                               const std::function<Result<void>(Link &, size_t, uint64_t)> &attach) {
    Link link;
    std::vector<PassedOver> failed;
    size_t attached = 0;
    LongStep step("attaching", "functions", singles.count);
    for (size_t i = 0; i < singles.count; ++i, step.advance()) {
        Result<void> done = attach(link, i, a.options.cookies.empty() ? a.options.cookie : a.options.cookies[i]);
        if (done)
            ++attached;
        else if (done.error().kind == Errc::permission || (!a.options.functions.empty() && !a.options.pass_over))
            return Unexpected(in_context(std::move(done).error(), singles.name(i)));
        else
            failed.push_back({i, std::move(done).error()});
    }
    if (attached == 0) return Unexpected(std::move(failed.front().error));
    link.name(a.what(), attached);
    link.note(format("{}: this kernel has no {}; rawbpf attached {} single {} instead", a.what(), singles.missing, attached,
                     singles.probes));
    if (std::string text = describe_passed_over(failed, singles.count, singles.name); !text.empty()) link.note(std::move(text));
    return link;
}

} // namespace rawbpf::inline v0
