// What to change, exactly: lines to insert, or an instruction to write otherwise. PURE.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/explain/causes.h"

namespace rawbpf::inline v0::explain {

/// A change of the source that should make the program load.
struct Remedy {
    enum class How : uint8_t { none, insert, replace, declare, append };
    How how = How::none;
    std::string text;               ///< in words, one sentence; empty: none is known
    ProgramPlace at;                ///< insert: in front of this; replace: this; append: behind it
    std::vector<std::string> lines; ///< what to write there: assembly, or C where the program is from C
    bool assembly = false;          ///< `lines` are for the assembler
};

/// Empty (How::none) where what helps can't be said so exactly; then the refusal's hint is what there is.
[[nodiscard]] Remedy remedy_of(const Trace &trace, const ObjectSpec &spec, const ProgramSpec &program,
                               const ProgramPlaces &places, const Refusal &refusal, const Chain &chain,
                               const std::vector<uint32_t> &path);

} // namespace rawbpf::inline v0::explain
