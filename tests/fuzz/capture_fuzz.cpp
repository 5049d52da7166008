// A recording from anywhere, whichever tool's: read, named with what it brings along, delivered in several ways.
#include <fcntl.h>
#include <unistd.h>

#include "programs/custom/report.h"
#include "programs/profile/profiler.h"
#include "programs/recording/recording.h"
#include "programs/render/renderer.h"
#include "programs/trace/report.h"

using namespace rawbpf;

namespace {

void show_samples(Bytes recording) {
    for (Delivery delivery : {Delivery::each, Delivery::counted}) {
        Sink sink;
        ReportOptions options;
        options.delivery = delivery;
        options.symfs = "/nonexistent";
        (void)report_capture(recording, "fuzz", options, sink);
    }
}

void show_calls(Bytes recording, trace::Format format, bool stacks) {
    static const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    render::Writer writer(nowhere);
    const auto report = trace::Report::open(recording, "fuzz");
    if (!report) return;
    trace::ViewOptions how;
    how.format = format;
    how.graph = format == trace::Format::text;
    how.latency = true;
    const auto renderer = render::make_renderer(render::Format::folded, {}, writer);
    if (stacks && renderer) how.stacks = renderer->get();
    (void)(*report)->show(how, "/nonexistent", writer);
}

void show_traces(Bytes recording, std::string_view format) {
    static const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    render::Writer writer(nowhere);
    const auto report = custom::Report::open(recording, "fuzz");
    if (!report) return;
    custom::ViewOptions how;
    how.format = custom::rendered(format);
    how.json = format == "json";
    how.weight = custom::ViewOptions::Weight::context;
    (void)(*report)->show(how, {.symfs = "/nonexistent"}, writer);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const Bytes recording = std::as_bytes(std::span(data, size));
    const auto header = recording::Reader::header_of(recording, "fuzz");
    if (!header || header->tool == recording::Tool::profile) {
        show_samples(recording);
    } else if (header->tool == recording::Tool::trace) {
        show_calls(recording, trace::Format::text, false);
        show_calls(recording, trace::Format::json, false);
        show_calls(recording, trace::Format::stacks, true);
    } else {
        for (const char *format : {"text", "json", "folded"}) show_traces(recording, format);
    }
    return 0;
}
