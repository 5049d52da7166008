// Which probes this kernel has. Each question is asked when a text has alternatives, and costs a look at sysfs or one attempt.
#include "programs/experiment/surroundings.h"

#include "programs/experiment/c_source.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"
#include "runtime/link/tracefs.h"
#include "runtime/sys/file.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::experiment {
namespace {

std::string lacks(trace::ProbeKind kind) {
    using K = trace::ProbeKind;
    switch (kind) {
    case K::kprobe:
    case K::kretprobe:
        return sys::exists("/sys/bus/event_source/devices/kprobe/type") ? ""
                                                                        : "this kernel has no kprobes (CONFIG_KPROBE_EVENTS)";
    case K::uprobe:
    case K::uretprobe:
    case K::usdt:
        return sys::exists("/sys/bus/event_source/devices/uprobe/type") ? ""
                                                                        : "this kernel has no uprobes (CONFIG_UPROBE_EVENTS)";
    case K::fentry:
    case K::fexit:
        return probe_attach_type(BPF_TRACE_FENTRY).support == Support::no
                   ? "this kernel has no fentry (5.5, with CONFIG_FUNCTION_TRACER)"
                   : "";
    default: return {};
    }
}

} // namespace

LiveSurroundings::LiveSurroundings(std::vector<std::string> folders) : folders_(std::move(folders)) {
    if (Result<std::shared_ptr<const btf::Btf>> kernel = kernel_btf()) kernel_ = std::move(*kernel);
}

Surroundings LiveSurroundings::surroundings() const {
    Surroundings out;
    out.kernel = kernel_.get();
    out.match = [](const trace::ProbeSpec &spec) { return trace::match_probe(spec, trace::MatchOptions()); };
    out.lacks = lacks;
    out.forks = []() -> Result<Forks> { return Forks{RAWBPF_TRY(forked_child_offset()), sys::own_pid_namespace()}; };
    out.compile_c = [this](std::string_view text, std::string_view name) {
        CSource source{{}, std::string(text), std::string(name), folders_};
        if (text.empty()) source.path = name;
        return compile_c(source);
    };
    return out;
}

} // namespace rawbpf::inline v0::experiment
