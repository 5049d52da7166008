// Advice on numbers whose bounds the verifier doesn't know: sizes and indices.
//
// "min value is negative" has two causes. With scalar() the verifier knows nothing: a large unsigned number and a negative one
// look the same to it, and an upper bound helps. With scalar(smin=-2147483648,smax=64) a signed comparison has proved the
// upper bound: then the lower bound is missing.
#include <linux/bpf.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/format.h"
#include "runtime/kernel/refusal_parts.h"

namespace rawbpf::inline v0::refusal {

// "smin=umin=4,smax=umax=smax32=umax32=56": names that share a number stand in front of it. Before 6.0: "smin_value=4".
std::optional<int64_t> bound(std::string_view value, std::string_view name) {
    size_t at = 0;
    while ((at = value.find(name, at)) != std::string_view::npos) {
        const bool whole = at > 0 && (value[at - 1] == ',' || value[at - 1] == '(' || value[at - 1] == '=');
        at += name.size();
        if (value.substr(std::min(at, value.size())).starts_with("_value")) at += sizeof "_value" - 1;
        if (!whole || at >= value.size() || value[at] != '=') continue;
        const size_t end = std::min(value.find_first_of(",)", at), value.size());
        const size_t equals = value.rfind('=', end);
        return number_after(value.substr(equals, end - equals), "=");
    }
    return {};
}

bool maybe_negative(Case &c) {
    const int reg = register_named(c.refusal.reason);
    const std::string value = reg < 0 ? std::string() : register_value(c, reg);
    if (value.empty()) return false;
    const bool index = describe_register(value) != "a number"; // of a pointer: what was added to it
    const std::string_view n = index ? "i" : "n", what = index ? "the index" : "the size";
    const std::optional<int64_t> least = bound(value, "smin"), most = bound(value, "smax");
    const bool of_int = least == std::numeric_limits<int32_t>::min() && most == std::numeric_limits<int32_t>::max();
    const bool capped = most && *most >= 0 && !of_int;
    if (least && *least < 0 && capped) {
        c.note(format("as far as the verifier sees, {} is at least {} and at most {}: the upper bound is there, the lower isn't",
                      what, *least, *most));
        c.refusal.hint = format("exclude negative values too, `if ({} < 0) return 0;`, or make the variable unsigned where it is "
                                "compared with its upper bound",
                                n);
    } else if (least && *least < 0) {
        c.note(format("{} comes from a signed number: at least {}{}", what, *least,
                      most ? format(", at most {}", *most) : std::string()));
        c.refusal.hint = format("bound it on both sides just before the use, `if ({0} < 0 || {0} > MAX) return 0;`, or make the "
                                "variable unsigned and bound it, `if ({0} > MAX) return 0;`",
                                n);
    } else if (!least && capped) {
        c.note(
            format("as far as the verifier sees, {} is at most {} as a signed number: the upper bound is there, the lower isn't",
                   what, *most));
        c.refusal.hint = format("exclude negative values too, `if ({} < 0) return 0;`, or make the variable unsigned where it is "
                                "compared with its upper bound",
                                n);
    } else if (!least) {
        c.note(format("nothing bounds {} on the path to here: it may be any number of 64 bits, and a very large one counts as "
                      "negative",
                      what));
        c.refusal.hint =
            format("an unsigned number needs an upper bound just before the use, `if ({0} > MAX) return 0;` or `{0} &= "
                   "MAX - 1;` (MAX a power of two); a signed one `if ({0} < 0 || {0} > MAX) return 0;`",
                   n);
    } else {
        return false;
    }
    return true;
}

bool must_be_constant(Case &c) {
    if (c.refusal.at.insn < 0) return false;
    const std::string name = c.called(static_cast<uint32_t>(c.refusal.at.insn));
    const int reg = register_named(c.refusal.reason);
    if (name.empty() || reg < 1 || reg > 5) return false;
    c.refusal.kind = "argument";
    c.note(format("argument {} of {}() must be a constant: the verifier has to know its value", reg, name));
    c.refusal.hint = name == "bpf_ringbuf_reserve"
                         ? "reserve a constant size, the largest that you need; for records whose size is only known at run "
                           "time, use bpf_ringbuf_output(), which copies them, or bpf_ringbuf_reserve_dynptr() (5.19)"
                         : "pass a number that is the same on every path: a literal, `sizeof`, an enum's value";
    return true;
}

} // namespace rawbpf::inline v0::refusal
