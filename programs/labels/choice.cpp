#include "programs/labels/choice.h"

#include <algorithm>

#include "programs/labels/go_runtime.h"
#include "programs/labels/thread_context.h"
#include "programs/languages/thread_pointer_dsl.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"

namespace rawbpf::inline v0 {

Result<std::optional<LabelParts>> choose_labels(const std::vector<std::string> &keys) {
    if (keys.empty()) return std::optional<LabelParts>();
    if (!knows_thread_pointer(kHostArch))
        return fail(Errc::unsupported, "labels: on this machine it isn't known where the kernel keeps a thread's pointer");
    TRY_IN(kernel_btf(), "labels: a thread's pointer is found by the kernel's types (BTF)");
    const auto is_id = [](const std::string &key) { return key == labels::kTraceId || key == labels::kSpanId; };
    const auto is_goroutine = [](const std::string &key) { return key == labels::kGoroutineId; };
    const auto is_other = [&](const std::string &key) { return !is_id(key) && !is_goroutine(key); };
    LabelParts out;
    out.ids = std::any_of(keys.begin(), keys.end(), is_id);
    out.attributes = std::any_of(keys.begin(), keys.end(), is_other);
    out.goroutine = std::any_of(keys.begin(), keys.end(), is_goroutine);
    out.once = has_feature(Feature::bpf_loop); // it came later (5.17) than what it takes, and is asked for anyhow
    return std::optional(out);
}

} // namespace rawbpf::inline v0
