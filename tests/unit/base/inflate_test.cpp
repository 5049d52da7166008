// gunzip: against files that gzip made (the bytes are its output), and every cut and flip of them.
#include "runtime/base/inflate.h"

#include <vector>

#include "runtime/base/format.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

std::vector<std::byte> from_hex(std::string_view hex) {
    std::vector<std::byte> out;
    auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    for (size_t i = 0; i + 1 < hex.size(); i += 2) out.push_back(std::byte(digit(hex[i]) << 4 | digit(hex[i + 1])));
    return out;
}

constexpr std::string_view kStored = "1f8b0800000000000003010700f8ff73746f7265640ae29c53a507000000";
constexpr std::string_view kStandard =
    "1f8b0808000000000003636f6e6669670073f6f773f3748f770a70b3ade4728673e2bd3c43800200d42c2a3f1e000000";
constexpr std::string_view kOwn =
    "1f8b0808000000000003636f6e666967005596cb4d05410c04ef4433feb67de08404e20221100101903d42084d717ba31de9b5bbdabdfbf4fef6fc"
    "faf2711e3f1f9e7e7faeede3d7df6162ee41a57badd5f7496de16079af65c47d12e5f7e0b27bcdf6dc2776a0c007d25290d610a0a97b4d27ef9376"
    "08a874486b83b48100dfbdd7dc6081051454439ae0c02c048c05a4051ce882801218e4c0813c10100e069eb0c09a0a8000f3af3bef00801af3b796"
    "6c41a00cf36734d982800b06d84281190804e6df3a640b001a66f0886c41a012f36727d982401c66d0a1c012040a0eac866c01608c198c225b1028"
    "c1815c08480383086630976cc160e800d902c024e657e3ef7b00a00f13e8876c41206ab8b7225b1030830191641b948ff9b510200380766630876c"
    "412086193c45b62060490b20600700f63083ec41050074b104d883b96090c60cb207bdc0c0c42d800000586702d9826a00e86102d982e520900903"
    "822de873d8c94c205b3000600bf30f5b500b003202600b568140ea706f976c41c09d19640b3600ec30830702c6014009079a3d5802835c66903d18"
    "01065eb0c0d8830b04c608b206a70e4b79b9b843b84050ce08b206a381c08711640d9a130123c81a1c81809621640d760041150c48d660ecbf1701"
    "43c81ab45ce69b8b2bc2058171869045d80d04350c218b30fdb094f931c22234710df8262ec20581291820f6602f08b43183ecc14c20881637b709"
    "b7183522e0c74083c0cc8f01dfc89fadfa0e0a0000";
} // namespace

TEST_CASE("inflate: stored, standard and own codes, with a name in the header") {
    CHECK(gunzip(from_hex(kStored), "x.gz").value() == "stored\n");
    CHECK(gunzip(from_hex(kStandard), "x.gz").value() == "CONFIG_BPF=y\nCONFIG_BPF_JIT=y\n");
    std::string expected;
    for (int i = 0; i < 200; ++i) expected += format("CONFIG_{}={}\n", i * 7919 % 1000, i % 3 ? "y" : "m");
    CHECK(gunzip(from_hex(kOwn), "x.gz").value() == expected);
}

TEST_CASE("inflate: a limit, and input that isn't whole") {
    const std::vector<std::byte> bytes = from_hex(kOwn);
    auto limited = gunzip(bytes, "x.gz", 100);
    REQUIRE(!limited);
    CHECK(limited.error().kind == Errc::no_memory);
    for (size_t size = 0; size < bytes.size(); ++size) {
        auto cut = gunzip(Bytes(bytes).first(size), "x.gz");
        REQUIRE(!cut);
        CHECK(cut.error().kind == Errc::bad_input);
    }
    const std::string whole = gunzip(bytes, "x.gz").value();
    for (size_t at = 20; at < bytes.size(); ++at)
        for (int bit = 0; bit < 8; ++bit) {
            std::vector<std::byte> flipped = bytes;
            flipped[at] ^= std::byte(1 << bit);
            auto out = gunzip(flipped, "x.gz", 1 << 20);
            CHECK((!out || *out == whole)); // only padding bits go past the checksum
        }
}
