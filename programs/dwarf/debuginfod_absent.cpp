// Stands in for debuginfod.cpp in a build without libdebuginfod's header (-Ddebuginfod=disabled).
#include "programs/dwarf/debuginfod.h"

#include <cstdlib>

namespace rawbpf::inline v0::dwarf {

struct Debuginfod::Requests {};

Debuginfod::Debuginfod() : wanted_(false) {
    const char *urls = std::getenv("DEBUGINFOD_URLS");
    if (urls && *urls) problem_ = "debuginfod: this build was made without libdebuginfod";
}
Debuginfod::~Debuginfod() = default;
std::optional<Fd> Debuginfod::fetch(const std::string &) { return std::nullopt; }
std::string Debuginfod::left_out() const { return {}; }

} // namespace rawbpf::inline v0::dwarf
