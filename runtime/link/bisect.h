// Multi attachments are all or nothing; this finds the members that make them fail. Private to this folder.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// A place that was left out, and the error it gave by itself.
struct PassedOver {
    size_t index = 0;
    Error error;
};

struct Bisected {
    Fd link;                        ///< attached to everything that is left; invalid when nothing is
    std::vector<size_t> attached;   ///< indexes
    std::vector<PassedOver> failed; ///< in order
};

/// Calls `attach` with the indexes of all `count` places; when it fails by something a place can be blamed for (`blames`), by
/// halves until the places to blame are found, and then once more with the rest. At most `most` may be left out: a thousand
/// functions that all fail have one reason, not a thousand. Errors: what `attach` said, when nothing can be blamed or too much.
[[nodiscard]] Result<Bisected> attach_all_but_bad(size_t count,
                                                  const std::function<Result<Fd>(const std::vector<size_t> &)> &attach,
                                                  const std::function<bool(const Error &)> &blames, size_t most = 64);

/// "skipped 3 of 120: foo (EINVAL), ..." as a sentence for Link::notes(); empty when none was.
[[nodiscard]] std::string describe_passed_over(const std::vector<PassedOver> &failed, size_t count,
                                               const std::function<std::string(size_t)> &name);

} // namespace rawbpf::inline v0
