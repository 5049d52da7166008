// In the place of request_labels.cpp, in a build without the part `labels`: choose_labels() refuses those that are asked for.
#include "programs/processes/request_labels.h"

namespace rawbpf::inline v0::processes {

Result<void> RequestLabels::start(LoadedObject &, const std::vector<std::string> &) { return {}; }
uint32_t RequestLabels::of(uint32_t, Bytes) { return 0; }
Result<void> RequestLabels::tick(uint64_t, uint64_t) { return {}; }
std::vector<std::string> RequestLabels::warnings() const { return {}; }

} // namespace rawbpf::inline v0::processes
