// A frame of an interpreter's language, with its name.
#pragma once

#include <cstdint>
#include <string>

namespace rawbpf::inline v0::processes {

/// A function of a script, and where in it.
struct ScriptFrame {
    std::string function; ///< qualified; empty: unknown
    std::string file;     ///< of the source; empty: unknown
    uint32_t line = 0;    ///< 0: unknown
};

} // namespace rawbpf::inline v0::processes
