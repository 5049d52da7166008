// Unpacking .xz, as .gnu_debugdata needs it.
#include "programs/xz.h"

#include "tests/support/test.h"

using namespace rawbpf;

namespace {

// printf 'hello hello hello hello\n' | xz -9 --check=crc32
constexpr uint8_t kPacked[] = {0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00,
                               0x21, 0x01, 0x1c, 0x00, 0x00, 0x00, 0x10, 0xcf, 0x58, 0xcc, 0xe0, 0x00, 0x17, 0x00,
                               0x0c, 0x5d, 0x00, 0x34, 0x19, 0x49, 0xee, 0x8d, 0xe9, 0x56, 0x0a, 0xc1, 0x21, 0xb0,
                               0x00, 0x00, 0x00, 0x88, 0x59, 0x0b, 0x00, 0x01, 0x24, 0x18, 0xdb, 0xcc, 0x02, 0xc2,
                               0x90, 0x42, 0x99, 0x0d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, 0x59, 0x5a};

} // namespace

TEST_CASE("xz: unpacks") {
    if (!knows_xz()) SKIP("this build has no liblzma (-Dlzma)");
    auto text = unpack_xz(std::as_bytes(std::span(kPacked)));
    REQUIRE(text);
    CHECK(std::string_view(reinterpret_cast<const char *>(text->data()), text->size()) == "hello hello hello hello\n");
}

TEST_CASE("xz: cut or changed at any byte, it is refused") {
    if (!knows_xz()) SKIP("this build has no liblzma (-Dlzma)");
    for (size_t cut = 0; cut < sizeof kPacked; ++cut) CHECK(!unpack_xz(std::as_bytes(std::span(kPacked, cut))));
    for (size_t at = 0; at < sizeof kPacked; ++at) {
        std::vector<uint8_t> bad(std::begin(kPacked), std::end(kPacked));
        bad[at] ^= 0x55;
        CHECK(!unpack_xz(std::as_bytes(std::span(bad))));
    }
}
