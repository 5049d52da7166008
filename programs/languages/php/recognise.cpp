#include "programs/languages/php/recognise.h"

#include <algorithm>
#include <string_view>

#include "programs/languages/exports.h"

namespace rawbpf::inline v0::languages::php {
namespace {

// No name that is exported has the version, but the line that PHP adds to what a web server answers.
uint32_t version_of(Bytes bytes) {
    static constexpr std::string_view kLine = "X-Powered-By: PHP/";
    const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    const size_t line = text.find(kLine);
    if (line == text.npos) return 0;
    uint32_t version = 0;
    size_t at = line + kLine.size();
    for (int part = 0; part < 3; ++part, ++at) {
        uint32_t number = 0;
        const size_t first = at;
        for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && number < 256; ++at)
            number = number * 10 + static_cast<uint32_t>(text[at] - '0');
        if (at == first || number > 255) return 0;
        version = version << 8 | number;
    }
    return version;
}

} // namespace

std::optional<Interpreter> recognise(const elf::Elf &file, Bytes bytes) {
    if (!may_export(file, "zend_execute_internal").value_or(true)) return std::nullopt;
    Interpreter out =
        exported(file, bytes, {"executor_globals", "executor_globals_offset", "zend_execute_internal"}, "execute_ex");
    if (out.address("zend_execute_internal") == 0 || out.address("execute_ex") == 0) return std::nullopt;
    out.version = version_of(bytes);
    if (out.address("executor_globals") == 0)
        out.why_not = out.address("executor_globals_offset") != 0
                          ? "it is a build with threads (ZTS), where each thread's frames are found in another way"
                          : "it doesn't export executor_globals, which leads to the frames";
    return out;
}

} // namespace rawbpf::inline v0::languages::php
