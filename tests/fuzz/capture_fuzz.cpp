// A capture file from anywhere: read, named with what it brings along, delivered both ways.
#include "programs/profile/profiler.h"

using namespace rawbpf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (Delivery delivery : {Delivery::each, Delivery::counted}) {
        Sink sink;
        ReportOptions options;
        options.delivery = delivery;
        options.symfs = "/nonexistent";
        (void)report_capture(std::as_bytes(std::span(data, size)), "fuzz", options, sink);
    }
    return 0;
}
