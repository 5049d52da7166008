// Explains a refused call of a helper, by asking this kernel about that helper. Private to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "asm/helpers.h"
#include "runtime/kernel/probes.h"

namespace rawbpf::inline v0 {

/// How the verifier refuses it.
enum class HelperRefusal : uint8_t {
    none,     ///< it is about something else
    unknown,  ///< the number is above all that this kernel has: "invalid func"
    not_here, ///< the kernel has the number, this program may not call it: "unknown func"; since 6.9 "cannot use helper"
};
[[nodiscard]] HelperRefusal helper_refusal(std::string_view reason);

/// A hint. `of_its_type`: whether another program of the type may call it; `elsewhere`: whether one of any type may. Both mean
/// nothing where the number is unknown. PURE.
[[nodiscard]] std::string helper_words(HelperRefusal refusal, const HelperInfo &helper, std::string_view type, bool of_its_type,
                                       const Probed &elsewhere);
/// Of a number that is no helper's in any kernel; empty where one has it. PURE.
[[nodiscard]] std::string no_helper_words(int64_t number);
/// The same as helper_words(); asks the kernel where the verifier's words leave a question. "" for none.
[[nodiscard]] std::string explain_helper(std::string_view reason, const HelperInfo &helper, uint32_t program_type);

} // namespace rawbpf::inline v0
