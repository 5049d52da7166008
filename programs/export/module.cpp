// rawbpf-otlp.so's only symbol. The module has its own copy of the code that it needs of this folder. Only classes of
// outlets.h cross the border; both sides must come from the same compiler and source, which the version checks.
#include "programs/export/http.h"
#include "programs/export/outlets.h"

extern "C" __attribute__((visibility("default"))) const rawbpf::telemetry::Outlets *rawbpf_outlets();

const rawbpf::telemetry::Outlets *rawbpf_outlets() {
    using namespace rawbpf::telemetry;
    static const Outlets outlets{RAWBPF_VERSION, has_https(), open_delivery, open_scrape_point};
    return &outlets;
}
