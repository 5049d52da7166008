// In the place of chrome.cpp and protobuf.cpp, in a build without the part `formats`, which has no such --format.
#include "programs/trace/sink.h"

namespace rawbpf::inline v0::trace {

std::unique_ptr<Sink> make_chrome(SinkOptions) { return nullptr; }
std::unique_ptr<Sink> make_protobuf(SinkOptions) { return nullptr; }

} // namespace rawbpf::inline v0::trace
