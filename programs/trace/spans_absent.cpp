// In the place of spans.cpp, in a build without the part `export`, which has no option that asks for spans.
#include "programs/trace/spans.h"

namespace rawbpf::inline v0::trace {

uint64_t SpanReport::lost() const { return 0; }
std::string SpanReport::text() const { return {}; }
bool makes_spans(const ProbeSite &) { return false; }
std::unique_ptr<Sink> make_spans(SinkOptions, const SpanOptions &) { return nullptr; }

} // namespace rawbpf::inline v0::trace
