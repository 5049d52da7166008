#include "programs/languages/ruby/runtime.h"

#include <algorithm>

#include "programs/languages/ruby/learn.h"
#include "programs/languages/ruby/lines.h"
#include "programs/languages/ruby/recognise.h"

namespace rawbpf::inline v0::languages::ruby {
namespace {

Function function(const LanguageCode &code, Bytes table, const Layout &layout) {
    const auto text = [&](const __u8 *bytes, uint32_t size) {
        return string_of(Bytes(reinterpret_cast<const std::byte *>(bytes), std::min<size_t>(size, LANGUAGE_TEXT_BYTES)),
                         layout.text);
    };
    Function out;
    out.name = text(code.name, code.name_bytes);
    out.file = text(code.file, code.file_bytes);
    out.line = layout.index_bytes == 2 ? code.line >> 1 : code.line;
    out.address = code.address;
    out.table.assign(table.begin(), table.end());
    out.index = std::min<size_t>(code.index_bytes, table.size());
    return out;
}

// Methods in C have frames without instructions; on the native stack they are themselves.
Part part(const Layout &, const Function *, uint64_t id, uint64_t word) {
    return {id != 0 && (LANGUAGE_MARK(word) & kFinish) != 0, id == 0};
}

uint32_t line(const Layout &layout, const Function &function, uint64_t word) {
    uint64_t position = (word & LANGUAGE_POSITION_MASK) / 8;
    if (position > 0) --position; // it is the next instruction's
    const Bytes table(function.table);
    const size_t entries = table.size() - function.index;
    return line_at(table.first(entries), layout.process.entry, table.subspan(entries), position);
}

} // namespace

const Runtime kRuntime = {"Ruby", "", recognise, learn, nullptr, describe, function, part, line, false, true};

} // namespace rawbpf::inline v0::languages::ruby
