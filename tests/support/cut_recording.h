// What every tool's recording has to stand: a cut at any byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/format.h"
#include "runtime/base/result.h"
#include "tests/support/test.h"

namespace rawbpf::test {

/// Shows each beginning of the recording `whole`, by `shown(text, size, end)`: nothing can be shown before the header is whole;
/// from there on what there is, with a warning that says where it ends and what is missing (`unit`, "events"), and all `total` in
/// the end.
template <class End, class Shown>
void check_cut_anywhere(const std::string &whole, std::string_view unit, uint64_t total, Shown &&shown) {
    uint64_t before = 0;
    size_t readable = 0;
    for (size_t size = 0; size < whole.size(); ++size) {
        CAPTURE(size);
        End end;
        const auto text = shown(whole.substr(0, size), size, end);
        if (!text) {
            CHECK(readable == 0); // its header isn't whole
            CHECK(text.error().kind == Errc::bad_input);
            continue;
        }
        ++readable;
        CHECK(end.unread);
        REQUIRE(!end.warnings.empty());
        CHECK(end.warnings[0].starts_with(format("test.rbpf: the capture ends early, at byte {}", size)));
        CHECK(end.warnings[0].find(format("{}, if there were more", unit)) != std::string::npos);
        CHECK(end.ledger.shown >= before);
        before = end.ledger.shown;
        CHECK(end.ledger.adds_up());
    }
    CHECK(before == total);
}

} // namespace rawbpf::test
