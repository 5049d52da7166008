// In the place of choice.cpp and read_dsl.cpp, in a build without the part `labels`: no program reads a thread's context.
#include <cstdlib>

#include "programs/labels/choice.h"
#include "programs/labels/read_dsl.h"
#include "programs/without_part.h"

namespace rawbpf::inline v0 {

Result<std::optional<LabelParts>> choose_labels(const std::vector<std::string> &keys) {
    if (keys.empty()) return std::optional<LabelParts>();
    return Unexpected(without_part("labels", "labels"));
}

// Who asks choose_labels() makes none of these.
LabelReading::LabelReading(Builder &b, const LabelParts &parts, Arch arch)
    : b_(b), parts_(parts), arch_(arch), processes_(b.hash<uint32_t, uint32_t>("label_processes", 1)) {
    std::abort();
}
void LabelReading::take(Code &, const Mem &) {}
void LabelReading::read(Code &, const RecordPlace &, const How &) {}
void LabelReading::join(OffCpuTool &) {}

} // namespace rawbpf::inline v0
