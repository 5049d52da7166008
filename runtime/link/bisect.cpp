// One bad function in a thousand makes the whole BPF_LINK_CREATE fail, and the kernel doesn't say which. Bisection finds k bad
// ones among n in about k * 2 log2(n/k) tries. Each try that succeeds is undone at once (its descriptor is dropped); only the
// last one stays.
#include "runtime/link/bisect.h"

#include <algorithm>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0 {
namespace {

struct Search {
    const std::function<Result<Fd>(const std::vector<size_t> &)> &attach;
    const std::function<bool(const Error &)> &blames;
    size_t most;
    std::vector<PassedOver> failed;
};

// `places` is known to fail with `error`.
Result<void> blame(Search &search, const std::vector<size_t> &places, Error error) {
    if (!search.blames(error) || search.failed.size() >= search.most) return Unexpected(std::move(error));
    if (places.size() == 1) {
        search.failed.push_back({places[0], std::move(error)});
        return {};
    }
    auto middle = places.begin() + static_cast<std::ptrdiff_t>(places.size() / 2);
    for (const std::vector<size_t> &half :
         {std::vector<size_t>(places.begin(), middle), std::vector<size_t>(middle, places.end())})
        if (Result<Fd> tried = search.attach(half); !tried) TRY(blame(search, half, std::move(tried).error()));
    return {};
}

} // namespace

Result<Bisected> attach_all_but_bad(size_t count, const std::function<Result<Fd>(const std::vector<size_t> &)> &attach,
                                    const std::function<bool(const Error &)> &blames, size_t most) {
    Bisected out;
    out.attached.resize(count);
    for (size_t i = 0; i < count; ++i) out.attached[i] = i;
    Search search{attach, blames, most, {}};
    while (!out.attached.empty()) {
        Result<Fd> link = attach(out.attached);
        if (link) {
            out.link = std::move(*link);
            break;
        }
        const size_t before = search.failed.size();
        TRY(blame(search, out.attached, Error(link.error())));
        // Each half may work where the whole doesn't: then it is not any place's fault.
        if (search.failed.size() == before) return Unexpected(std::move(link).error());
        std::erase_if(out.attached, [&](size_t place) {
            return std::any_of(search.failed.begin(), search.failed.end(), [&](const PassedOver &f) { return f.index == place; });
        });
    }
    out.failed = std::move(search.failed);
    if (out.attached.empty() && !out.failed.empty()) return Unexpected(std::move(out.failed.front().error));
    return out;
}

std::string describe_passed_over(const std::vector<PassedOver> &failed, size_t count,
                                 const std::function<std::string(size_t)> &name) {
    constexpr size_t kShown = 12;
    if (failed.empty()) return {};
    std::string out = format("skipped {} of {}: ", failed.size(), count);
    for (size_t i = 0; i < failed.size() && i < kShown; ++i) {
        const Error &error = failed[i].error;
        append(out, "{}{} ({})", i == 0 ? "" : ", ", name(failed[i].index), error.os ? errno_name(error.os) : error.message());
        if (!error.hint.empty()) append(out, ": {}", error.hint);
    }
    if (failed.size() > kShown) append(out, " and {} more", failed.size() - kShown);
    return out;
}

} // namespace rawbpf::inline v0
