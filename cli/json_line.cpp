// Escaping, by RFC 8259: quotes, backslashes and control characters. Bytes that are no UTF-8 (names out of hostile files) become
// U+FFFD, since a reader would refuse the whole line for one of them.
#include "cli/json_line.h"

#include "programs/doctor/doctor.h"
#include "programs/render/text.h"

namespace rawbpf::inline v0::cli {

void append_json_text(std::string &out, std::string_view text) {
    out += '"';
    for (size_t at = 0; at < text.size();) {
        const unsigned char c = static_cast<unsigned char>(text[at]);
        if (c == '\n' || c == '\t') {
            out += c == '\n' ? "\\n" : "\\t";
            ++at;
        } else if (c < 0x20) {
            append(out, "\\u{:04x}", c);
            ++at;
        } else {
            const size_t end =
                text.find_first_of(std::string_view("\0\1\2\3\4\5\6\7\b\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16"
                                                    "\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f",
                                                    32),
                                   at);
            std::string clean;
            render::append_printable(clean, text.substr(at, end - at)); // npos - at is long enough
            for (char d : clean) {
                if (d == '"' || d == '\\') out += '\\';
                out += d;
            }
            at = std::min(end, text.size());
        }
    }
    out += '"';
}

std::string json_header(std::string_view command, const std::vector<std::string> &words) {
    const RunInfo run = doctor::describe_run();
    std::string list = "[\"rawbpf\",";
    append_json_text(list, command);
    for (const std::string &word : words) {
        list += ',';
        append_json_text(list, word);
    }
    list += ']';
    return JsonLine("header")
        .number("schema", 1)
        .raw("command", list)
        .text("version", RAWBPF_VERSION)
        .text("kernel", run.kernel)
        .text("arch", run.arch)
        .number("cpus", static_cast<int64_t>(run.cpus))
        .text("start", render::rfc3339(run.start_wall_ns))
        .finish();
}

} // namespace rawbpf::inline v0::cli
