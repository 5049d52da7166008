// How a user names probes: FILE[:PROVIDER[:NAME]].
#pragma once

#include <string>
#include <string_view>

namespace rawbpf::inline v0::usdt {

/// Some probes of a file. Empty parts mean all; * and ? are patterns.
struct Target {
    std::string file;
    std::string provider, name;

    [[nodiscard]] bool wants(std::string_view its_provider, std::string_view its_name) const;
    /// "provider:name", with * for what isn't given.
    [[nodiscard]] std::string probe() const;
};

/// A whole path that exists is the file, whatever it has in it; else it ends where the provider begins. ":postgresql" has no
/// file.
[[nodiscard]] Target parse_target(std::string_view text);

} // namespace rawbpf::inline v0::usdt
