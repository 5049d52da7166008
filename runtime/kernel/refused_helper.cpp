#include "runtime/kernel/refused_helper.h"

#include "runtime/base/format.h"
#include "runtime/sys/names.h"

namespace rawbpf::inline v0 {

HelperRefusal helper_refusal(std::string_view reason) {
    const auto says = [&](std::string_view words) { return reason.find(words) != std::string_view::npos; };
    if (says("invalid func")) return HelperRefusal::unknown;
    return says("unknown func") || says("cannot use helper") ? HelperRefusal::not_here : HelperRefusal::none;
}

std::string helper_words(HelperRefusal refusal, const HelperInfo &helper, std::string_view type, bool of_its_type,
                         const Probed &elsewhere) {
    if (refusal == HelperRefusal::none) return {};
    if (refusal == HelperRefusal::unknown)
        return format("this kernel has no bpf_{}(), which came with Linux {}.{}", helper.name, helper.since.major,
                      helper.since.minor);
    if (of_its_type)
        return format("this kernel lets other programs of type {} call bpf_{}(), but not this one: this also depends on what the "
                      "program is attached to",
                      type, helper.name);
    switch (elsewhere.support) {
    case Support::yes:
        return format("this kernel has bpf_{}() {}, but not for programs of type {}", helper.name, elsewhere.detail, type);
    case Support::no:
        return format("this kernel knows bpf_{}(), but no type of program may call it: the kernel may have been built without "
                      "the feature that it is for",
                      helper.name);
    default:
        return format("the verifier doesn't let this program call bpf_{}(). rawbpf couldn't find out whether other programs may "
                      "call it{}{}",
                      helper.name, elsewhere.detail.empty() ? "" : ": ", elsewhere.detail);
    }
}

std::string no_helper_words(int64_t number) {
    if (find_helper(number)) return {};
    if (number == 0) return "no helper has the number 0: no linker or loader has filled in which function this calls";
    const HelperInfo &last = all_helpers().back();
    return format(
        "no kernel has a helper {}: the last one is {}, bpf_{}() (Linux {}.{}); programs call newer functions (kfuncs) by name",
        number, last.id, last.name, last.since.major, last.since.minor);
}

std::string explain_helper(std::string_view reason, const HelperInfo &helper, uint32_t program_type) {
    const HelperRefusal refusal = helper_refusal(reason);
    Probed elsewhere;
    bool of_its_type = false;
    if (refusal == HelperRefusal::not_here) {
        of_its_type = has_helper(program_type, helper.id);
        if (!of_its_type) elsewhere = probe_helper(helper.id);
    }
    return helper_words(refusal, helper, sys::prog_type_name(program_type), of_its_type, elsewhere);
}

} // namespace rawbpf::inline v0
