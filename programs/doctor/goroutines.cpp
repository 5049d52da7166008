#include "programs/doctor/goroutines.h"

#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::doctor {

std::optional<Goroutines> examine_goroutines(const std::string &path, const elf::Elf &file, Bytes bytes) {
    auto runtime = labels::go_runtime(file, bytes);
    return runtime ? std::optional(Goroutines{path, std::move(*runtime)}) : std::nullopt;
}

void append_goroutines_text(std::string &out, const Goroutines &goroutines) {
    const labels::GoRuntime &runtime = goroutines.runtime;
    std::string line = format("  goroutines of {}: ", goroutines.path.substr(goroutines.path.rfind('/') + 1));
    if (!runtime.why_not.empty()) {
        append(line, "no labels and no numbers: {}.", runtime.why_not);
    } else {
        line += runtime.labels != 0 ? "their labels by any key that the program uses"
                                    : "no labels, as the program never sets any (runtime/pprof.Do)";
        append(line, ", {}: profile --label KEY.",
               runtime.number != 0 ? format("their numbers by {}", labels::kGoroutineId)
                                   : std::string("no numbers, as its code doesn't show where they are"));
    }
    render::append_line(out, line);
}

void append_goroutines_json(std::string &out, const Goroutines &goroutines, int pid) {
    const labels::GoRuntime &runtime = goroutines.runtime;
    render::JsonLine line(out, "goroutines");
    line.number("pid", pid).text("path", goroutines.path);
    line.truth("labels", runtime.labels != 0).truth("numbers", runtime.number != 0).text_or_null("why_not", runtime.why_not);
}

} // namespace rawbpf::inline v0::doctor
