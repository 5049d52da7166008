// libstdc++.so.6:libstdcxx:throw -> file, provider, name. Paths may have colons too; providers and names have no slashes, so
// the colons that count are those behind the last slash.
#include "programs/usdt/target.h"

#include "runtime/link/names.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::usdt {

bool Target::wants(std::string_view its_provider, std::string_view its_name) const {
    return (provider.empty() || matches_pattern(provider, its_provider)) && (name.empty() || matches_pattern(name, its_name));
}

std::string Target::probe() const { return (provider.empty() ? "*" : provider) + ":" + (name.empty() ? "*" : name); }

Target parse_target(std::string_view text) {
    Target out;
    out.file = text;
    if (sys::exists(out.file)) return out;
    const size_t slash = text.rfind('/');
    const size_t first = text.find(':', slash == std::string_view::npos ? 0 : slash + 1);
    if (first == std::string_view::npos) return out;
    out.file = text.substr(0, first);
    const std::string_view rest = text.substr(first + 1);
    const size_t second = rest.find(':');
    out.provider = rest.substr(0, second);
    if (second != std::string_view::npos) out.name = rest.substr(second + 1);
    return out;
}

} // namespace rawbpf::inline v0::usdt
