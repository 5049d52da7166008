// What is said of a part that this build leaves out.
#include "cli/parts.h"

#include "programs/without_part.h"

namespace rawbpf::inline v0::cli {

Error left_out(Part part, std::string_view asked) {
    const PartRow &row = kParts[static_cast<size_t>(part)];
    return without_part(asked, row.name, row.what);
}

} // namespace rawbpf::inline v0::cli
