#include "programs/languages/cpython/runtime.h"

#include <algorithm>

#include "programs/languages/cpython/learn.h"
#include "programs/languages/cpython/lines.h"
#include "programs/languages/cpython/recognise.h"
#include "programs/languages/cpython/states.h"

namespace rawbpf::inline v0::languages::cpython {
namespace {

constexpr std::string_view kTrampoline = "<interpreter trampoline>"; // 3.12's shim

std::optional<Layout> learn_here(Memory &memory, const Lesson &lesson, std::string &why) {
    const auto address = [&](std::string_view name) {
        const uint64_t in_file = lesson.file.address(name);
        return in_file == 0 ? 0 : in_file + lesson.bias;
    };
    const Build build{address("PyCode_Type"), address("PyFrame_Type"), address("_Py_NoneStruct"), lesson.file.version,
                      address("_PyRuntime")};
    return learn(memory, build, lesson.arch, lesson.thread_pointer, lesson.refuted, why);
}

std::string describe_it(const Interpreter &file, const Layout &layout) {
    Build build;
    build.version = file.version;
    return describe(build, layout);
}

Function function(const LanguageCode &code, Bytes table, const Layout &layout) {
    const auto text = [&](const __u8 *bytes, uint32_t size) {
        const Bytes object(reinterpret_cast<const std::byte *>(bytes), std::min<size_t>(size, LANGUAGE_TEXT_BYTES));
        return string_of(object, layout.head, layout.text).value_or("");
    };
    Function out;
    out.name = text(code.name, code.name_bytes);
    out.file = text(code.file, code.file_bytes);
    out.line = code.line;
    out.address = code.address;
    out.table.assign(table.begin(), table.end());
    return out;
}

Part part(const Layout &layout, const Function *function, uint64_t id, uint64_t word) {
    const bool shim = layout.groups == Groups::shims && (id == 0 || (function && function->name == kTrampoline));
    const bool marked = layout.groups == Groups::marked && LANGUAGE_MARK(word) == 1;
    return {shim || marked || layout.groups == Groups::each, shim};
}

uint32_t line(const Layout &layout, const Function &function, uint64_t word) {
    uint64_t offset = (word & LANGUAGE_POSITION_MASK) - layout.code_size;
    if (layout.code_size == 0) offset = static_cast<uint32_t>(word + function.address) * layout.index_bytes;
    if (static_cast<int64_t>(offset) < 0) offset = 0; // it hasn't begun
    return line_at(function.table, line_table_of(layout), function.line, offset);
}

} // namespace

const Runtime kRuntime = {"Python", "", recognise, learn_here, learn_others, describe_it, function, part, line};

} // namespace rawbpf::inline v0::languages::cpython
