#include "programs/trace/live_text.h"

#include <algorithm>

#include "programs/render/text.h"
#include "runtime/base/format.h"
#include "runtime/sys/terminal.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr int kLeastRows = 8, kLeastColumns = 20;

} // namespace

void LiveText::draw(std::string &out, std::string_view text, const sys::TerminalSize &size) {
    clear(out);
    const auto most = static_cast<uint32_t>(std::max(size.rows, kLeastRows) - 2);
    for (; !text.empty() && drawn_ < most; ++drawn_) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        out += render::cut(line, static_cast<size_t>(std::max(size.columns, kLeastColumns) - 1));
        out += '\n';
    }
}

void LiveText::clear(std::string &out) {
    if (drawn_) append(out, "\x1b[{}A\x1b[J", drawn_);
    drawn_ = 0;
}

uint32_t LiveText::table_rows(const sys::TerminalSize &size) {
    return static_cast<uint32_t>(std::max(size.rows, kLeastRows) - 4);
}

} // namespace rawbpf::inline v0::trace
