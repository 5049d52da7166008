// Names as the compiler wrote them: the place of symbols/demangle.cpp in the core, and in a build without the part `demangle`.
#include "runtime/symbols/demangle.h"

namespace rawbpf::inline v0::symbols {

std::string demangle(std::string_view mangled) { return std::string(mangled); }

} // namespace rawbpf::inline v0::symbols
