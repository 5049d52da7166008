// What the tests of C headers share.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/btf/btf.h"
#include "runtime/btf/c_header.h"

namespace rawbpf::test {

/// The header without what every header has around it; an error's message otherwise.
inline std::string header_of(const btf::Writer &w, btf::HeaderOptions options = {}) {
    const std::vector<std::byte> bytes = w.finish();
    auto b = btf::Btf::parse(bytes, "test");
    if (!b) return b.error().message();
    auto text = btf::c_header(*b, options);
    if (!text) return text.error().message();
    const std::string_view before = "apply_to = record)\n#endif\n\n",
                           after = "\n#ifndef BPF_NO_PRESERVE_ACCESS_INDEX\n#pragma clang attribute pop";
    const size_t from = text->find(before), to = text->find(after);
    if (from == std::string::npos || to == std::string::npos) return "no frame: " + *text;
    return text->substr(from + before.size(), to - from - before.size());
}

} // namespace rawbpf::test
