// What is said of a part that this build leaves out.
#include "cli/parts.h"

#include "runtime/base/format.h"

namespace rawbpf::inline v0::cli {

Error left_out(Part part, std::string_view asked) {
    const PartRow &row = kParts[static_cast<size_t>(part)];
    return make_error(
        Errc::unsupported, format("{}: this build leaves out {}", asked, row.what),
        format("build rawbpf with -Dparts=...,{0}, or without -Dparts and -Dprofile: then it has all parts", row.name));
}

} // namespace rawbpf::inline v0::cli
