// In the place of scripts.cpp, java_code.cpp and js_functions.cpp, in a build without the part `languages`: no process has an
// interpreter.
#include "programs/processes/java_code.h"
#include "programs/processes/js_functions.h"
#include "programs/processes/scripts.h"

namespace rawbpf::inline v0::processes {

bool Scripts::start(LoadedObject &) { return false; }
void Scripts::changed(uint32_t, const ProcessTable::Image &) {}
void Scripts::ended(uint32_t) {}
void Scripts::look(uint64_t) {}
bool Scripts::take_code(Bytes) { return false; }
void Scripts::lost_code(Bytes) {}
void Scripts::merge(uint32_t, std::span<const uint64_t>, bool, uint64_t, std::vector<FrameLocation> &) {}
std::optional<bool> Scripts::agrees(uint32_t, std::span<const uint64_t>, const std::vector<FrameLocation> &) {
    return std::nullopt;
}
bool Scripts::makes_alike(uint32_t) const { return false; }
ScriptFrame Scripts::frame(uint64_t) const { return {}; }
std::vector<std::pair<std::string, uint64_t>> Scripts::counts() const { return {}; }
std::vector<std::string> Scripts::learnt() const { return {}; }
std::vector<std::string> Scripts::warnings() const { return {}; }

void JavaCode::start() {}
bool JavaCode::look(uint32_t, const ProcessTable::Image &, uint64_t) { return false; }
bool JavaCode::look(uint32_t, uint64_t) { return false; }
void JavaCode::ended(uint32_t) {}
bool JavaCode::in_heap(uint32_t, uint64_t) const { return false; }
std::optional<unwind::ListedRule> JavaCode::rule(uint32_t, uint64_t) const { return std::nullopt; }
bool JavaCode::read_at(uint32_t, uint64_t, uint64_t) { return false; }
const symbols::CompiledCode *JavaCode::code(uint32_t, uint64_t, uint64_t) { return nullptr; }
const symbols::CompiledCode *JavaCode::code(uint32_t) const { return nullptr; }
void JavaCode::expand(uint32_t, std::span<const unwind::FrameFunction>, uint64_t, std::span<FrameLocation>) {}
bool JavaCode::lacks_callers(std::span<const FrameLocation>) const { return false; }
std::vector<std::string> JavaCode::learnt() const { return {}; }
std::vector<std::string> JavaCode::warnings() const { return {}; }

void JsFunctions::start(ScriptView) {}
bool JsFunctions::look(uint32_t, const ProcessTable::Image &) { return false; }
std::vector<unwind::FrameFunction> JsFunctions::functions(uint32_t, const unwind::Walked &, const unwind::StackCopy &) {
    return {};
}
FrameLocation JsFunctions::place(uint64_t) const { return {}; }
std::vector<std::string> JsFunctions::learnt() const { return {}; }
std::vector<std::string> JsFunctions::warnings() const { return {}; }

} // namespace rawbpf::inline v0::processes
