// Stands in for debuginfod.cpp in a build without libdebuginfod's header (-Ddebuginfod=disabled).
#include "programs/dwarf/debuginfod.h"

#include <cstdlib>

namespace rawbpf::inline v0::dwarf {

Debuginfod::Debuginfod() : wanted_(false) {
    const char *urls = std::getenv("DEBUGINFOD_URLS");
    if (urls && *urls) problem_ = "debuginfod: this build was made without libdebuginfod";
}
Debuginfod::~Debuginfod() = default;
bool Debuginfod::start() {
    started_ = true;
    return client_ != nullptr;
}
std::optional<Fd> Debuginfod::fetch(const std::string &) { return std::nullopt; }

} // namespace rawbpf::inline v0::dwarf
