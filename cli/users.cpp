#include "cli/users.h"

#include <algorithm>
#include <optional>
#include <string>

#include "cli/options.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/base/hex.h"
#include "runtime/base/numbers.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::cli {
namespace {

std::optional<uint32_t> user_number(std::string_view text) {
    uint32_t number = 0;
    if (!parse_whole(text, number) || number == UINT32_MAX) return {};
    return number;
}

// NAME:password:NUMBER:..., a line each.
std::optional<uint32_t> number_of(std::string_view name, std::string_view passwd) {
    while (!passwd.empty()) {
        const std::string_view line = passwd.substr(0, passwd.find('\n'));
        passwd.remove_prefix(std::min(line.size() + 1, passwd.size()));
        if (line.substr(0, line.find(':')) != name || line.size() == name.size()) continue;
        std::string_view rest = line.substr(name.size() + 1);
        rest.remove_prefix(std::min(rest.find(':'), rest.size() - 1) + 1);
        return user_number(rest.substr(0, rest.find(':')));
    }
    return {};
}

} // namespace

Result<std::vector<uint32_t>> parse_users(std::string_view list, std::string_view passwd) {
    std::vector<uint32_t> out;
    for (std::string_view part : split(list, ',')) {
        const std::optional<uint32_t> user = is_number(part) ? user_number(part) : number_of(part, passwd);
        if (!user && is_number(part))
            return fail(Errc::invalid_argument, "'{}' isn't a user id (a whole number from 0 to {})", part, UINT32_MAX - 1);
        if (!user)
            return fail(Errc::invalid_argument,
                        "'{}' isn't a user id (a whole number from 0), nor the name of a user in /etc/passwd", part);
        out.push_back(*user);
    }
    if (out.empty()) return fail(Errc::invalid_argument, "a user id is expected");
    return out;
}

Result<std::vector<uint32_t>> parse_users(std::string_view list) {
    bool names = false;
    for (std::string_view part : split(list, ',')) names |= !is_number(part);
    return parse_users(list, names ? sys::read_file("/etc/passwd").value_or(std::string()) : std::string());
}

} // namespace rawbpf::inline v0::cli
