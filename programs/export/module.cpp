// rawbpf-otlp.so's one symbol. The module has its own copy of what it needs of this room; what crosses the border are the classes
// of outlets.h, by the same compiler's rules, which the version stands for.
#include "programs/export/http.h"
#include "programs/export/outlets.h"

extern "C" __attribute__((visibility("default"))) const rawbpf::telemetry::Outlets *rawbpf_outlets();

const rawbpf::telemetry::Outlets *rawbpf_outlets() {
    using namespace rawbpf::telemetry;
    static const Outlets outlets{RAWBPF_VERSION, has_https(), open_delivery, open_scrape_point};
    return &outlets;
}
