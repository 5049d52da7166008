// Users as a command line names them: by number or by name.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::cli {

/// "0,www-data" as numbers, names being those of `passwd` (as /etc/passwd is written). The number 4294967295 is no user's: system
/// calls mean "don't change it" by it. Errors: invalid_argument. PURE.
[[nodiscard]] Result<std::vector<uint32_t>> parse_users(std::string_view list, std::string_view passwd);
/// The same by this system's /etc/passwd, which is read where there is a name. Users from elsewhere (LDAP, say) have numbers
/// only: asking for those means loading libraries, which a static executable can't, and one that root runs better doesn't.
[[nodiscard]] Result<std::vector<uint32_t>> parse_users(std::string_view list);

} // namespace rawbpf::inline v0::cli
