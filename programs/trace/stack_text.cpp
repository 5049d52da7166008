#include "programs/trace/stack_text.h"

#include "programs/render/json_line.h"
#include "programs/render/stack_tree.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::trace {
namespace {

void append_frame_line(std::string &out, const Frame &frame) {
    append(out, "        {:>16x}  ", frame.address);
    if (frame.symbol.empty())
        out += "[unknown]";
    else
        render::append_printable(out, frame_name(frame));
    if (frame.inlined) out += " (inlined)";
    if (!frame.file.empty()) {
        out += " (";
        render::append_printable(out, render::base_name(frame.file));
        if (frame.line != 0) append(out, ":{}", frame.line);
        out += ')';
    }
    const std::string_view module = render::base_name(frame.module);
    if (!module.empty()) {
        const bool bracketed = module.front() == '[';
        out += bracketed ? "  " : "  [";
        render::append_printable(out, module);
        if (!bracketed) out += ']';
    }
    out += '\n';
}

} // namespace

void append_stack_lines(std::string &out, const NamedStack &stack) {
    for (const FramePtr &one : stack.kernel) append_frame_line(out, *one);
    for (const FramePtr &one : stack.user) append_frame_line(out, *one);
    if (stack.user_error) out += "        [Missed User Stack]\n";
}

void append_json_stack(std::string &out, const NamedStack &stack) {
    render::JsonObject both(out);
    render::append_json_frames(both.raw("kernel"), stack.kernel);
    render::append_json_frames(both.raw("user"), stack.user);
    if (!stack.user_end.empty()) both.text("user_end", stack.user_end);
}

std::string folded(const NamedStack &stack) {
    std::string out;
    render::append_folded(out, {stack.user, stack.kernel, stack.user_error != 0});
    return out;
}

} // namespace rawbpf::inline v0::trace
