// The narrator prints what runtime/sys/describe.h makes of a call, at once: when a later call hangs or the machine stops, the
// last line shows the call that did it. It prints with write(2) through the same invoke() that it observes; it doesn't show
// write(2), so this doesn't recurse.
//
//      {"type":"syscall","call":"bpf","request":"BPF_MAP_CREATE","arguments":{"map_type":"BPF_MAP_TYPE_ARRAY","key_size":4,...},"result":5,
//          "errno":null,"why":"the ring that records come out of"}     "result" is null where there is an "errno": "EINVAL"
#include "cli/narrator.h"

#include <algorithm>
#include <string>

#include "cli/console.h"
#include "programs/render/json_line.h"
#include "runtime/sys/describe.h"

namespace rawbpf::inline v0::cli {
namespace {

bool is_whole_number(std::string_view text) {
    if (text.starts_with('-')) text.remove_prefix(1);
    return !text.empty() && text.size() <= 15 && text.find_first_not_of("0123456789") == text.npos &&
           (text.size() == 1 || text.front() != '0');
}

std::string json_line(const sys::Described &call) {
    std::string out;
    render::JsonLine line(out, "syscall");
    line.text("call", call.call).text_or_null("request", call.request);
    {
        render::JsonObject arguments(line.raw("arguments"));
        for (const sys::Described::Argument &one : call.arguments)
            if (is_whole_number(one.value))
                arguments.raw(one.name) += one.value;
            else
                arguments.text(one.name, one.value);
    }
    if (call.error != 0)
        line.null("result").text("errno", call.error_name);
    else if (call.result_is_address)
        line.hex("result", static_cast<uint64_t>(call.result)).null("errno");
    else
        line.signed_number("result", call.result).null("errno");
    line.text_or_null("why", call.why);
    return out;
}

} // namespace

Narrator::Narrator(bool color, bool all, bool json)
    : color_(color), json_(json), detail_{&fds_, all ? sys::kAll : sys::kFew}, before_(sys::observe(this)) {}
Narrator::~Narrator() { sys::observe(before_); }

void Narrator::after(const sys::Call &call, long result) {
    if (!sys::is_narrated(call)) return fds_.see(call, result);
    if (json_) {
        const std::string line = json_line(sys::describe_parts(call, result, detail_));
        fds_.see(call, result);
        return say_as_is(line); // JSON is harmless to a terminal
    }
    std::string line = printable_lines(sys::describe(call, result, detail_));
    fds_.see(call, result);
    if (color_) { // the clause on why, behind the '#', steps back
        size_t why = line.rfind("   # ");
        if (why != std::string::npos) line.insert(why, "\x1b[2m"), line += "\x1b[0m";
    }
    say_as_is(line + "\n");
}

} // namespace rawbpf::inline v0::cli
