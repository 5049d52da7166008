#include "programs/custom/recorder.h"

#include "programs/recording/names.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::custom {

Recorder::Recorder(int fd, const Settings &settings, Places &places)
    : settings_(settings), places_(places), namer_(places.tree(), places.modules(), places.following().symbols()), writer_(fd),
      tally_(settings.guarded, settings.off_cpu) {}

Result<void> Recorder::start(const RunInfo &run, uint64_t start_ns) {
    writer_.begin({run, start_ns, recording::Tool::custom});
    traces_.settings(settings_);
    return writer_.flush();
}

void Recorder::trace(const LocatedTrace &trace) {
    writer_.grow(places_.tree(), places_.modules());
    writer_.labels(trace.labels, places_.label_sets());
    traces_.trace(trace);
    tally_.add(trace);
}

void Recorder::write_names() {
    recording::write_names(writer_, places_.tree(), namer_, places_.modules(), places_.following().symbols());
}

Result<void> Recorder::flush(uint64_t now_ns) {
    if (places_.full()) {
        write_names();
        writer_.reset();
        places_.clear();
        namer_.clear();
    }
    return writer_.flush_when_due(now_ns);
}

Result<void> Recorder::finish(const recording::End &end) {
    write_names();
    traces_.waits(end.ledger.waits);
    writer_.end(end);
    return writer_.flush();
}

} // namespace rawbpf::inline v0::custom
