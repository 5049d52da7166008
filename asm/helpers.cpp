// Looking helpers up. The ids of helpers.def are dense from 1, which makes the table its own index; the compiler checks it.
#include "asm/helpers.h"

namespace rawbpf::inline v0 {

namespace {

constexpr bool any = false, gpl = true;

constexpr HelperInfo kHelpers[] = {
#define RAWBPF_HELPER(id, name, major, minor, license, returns, arguments)                                                       \
    {id, {major, minor}, license, #name, #returns, #arguments},
#include "asm/helpers.def"
};
static_assert(
    [] {
        for (size_t i = 0; i < std::size(kHelpers); ++i)
            if (kHelpers[i].id != i + 1) return false;
        return true;
    }(),
    "helpers.def: a row is missing, twice there, or in the wrong place: the numbers count up from 1");

} // namespace

std::string HelperInfo::prototype() const {
    std::string out(returns);
    if (!returns.ends_with('*')) out += ' ';
    return out.append("bpf_").append(name).append(arguments);
}

std::string_view HelperInfo::argument(int n) const {
    if (arguments == "(void)") return {};
    std::string_view rest = arguments.substr(1, arguments.size() - 2);
    for (; n > 1; --n) {
        const size_t comma = rest.find(',');
        if (comma == rest.npos) return {};
        rest.remove_prefix(comma + 2); // and the blank
    }
    return rest.substr(0, rest.find(','));
}

std::span<const HelperInfo> all_helpers() { return kHelpers; }

const HelperInfo *find_helper(int64_t id) {
    if (id < 1 || static_cast<uint64_t>(id) > std::size(kHelpers)) return nullptr;
    return &kHelpers[id - 1];
}

const HelperInfo *find_helper(std::string_view name) {
    if (name.starts_with("bpf_"))
        if (const HelperInfo *found = find_helper(name.substr(4))) return found;
    for (const HelperInfo &helper : kHelpers)
        if (helper.name == name) return &helper;
    return nullptr;
}

} // namespace rawbpf::inline v0
