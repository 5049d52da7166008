// Which of the manglings a name is in, by its first letters: "_R" is Rust's second, "_ZN...17h<hash>E" its first, any other "_Z"
// C++ (and whatever else adopted the Itanium scheme). C names are what they are.
#include "runtime/symbols/demangle.h"

namespace rawbpf::inline v0::symbols {

std::string demangle(std::string_view mangled) {
    std::optional<std::string> readable;
    if (mangled.starts_with("_R"))
        readable = demangle_rust_v0(mangled);
    else if (mangled.starts_with("_Z") && !(readable = demangle_rust_legacy(mangled)))
        readable = demangle_cxx(mangled);
    return readable ? std::move(*readable) : std::string(mangled);
}

} // namespace rawbpf::inline v0::symbols
