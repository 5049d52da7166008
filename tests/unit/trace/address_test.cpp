// Against inet_ntop(3), which the static executable does without.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <cstring>
#include <random>

#include "programs/trace/address.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

std::string theirs(int family, const uint8_t *bytes) {
    char text[INET6_ADDRSTRLEN] = {};
    inet_ntop(family, bytes, text, sizeof text);
    return text;
}

} // namespace

TEST_CASE("trace address: as inet_ntop prints it") {
    for (const char *text :
         {"::", "::1", "1::", "::1:2", "2001:db8::1", "2001:db8:0:0:1:0:0:1", "1:0:0:2:0:0:0:3", "0:1:2:3:4:5:6:7",
          "1:2:3:4:5:6:7:0", "1:0:2:0:3:0:4:0", "::ffff:192.0.2.1", "::192.0.2.1", "::ffff:0:1", "::fffe:1:2",
          "fe80::1234:5678:9abc:def0", "::1:2:3:4:5:6:7", "0:0:1::", "::0.1.0.0"}) {
        uint8_t bytes[16];
        REQUIRE(inet_pton(AF_INET6, text, bytes) == 1);
        std::string ours;
        trace::append_ipv6(ours, bytes);
        CHECK(ours == theirs(AF_INET6, bytes));
    }
    std::mt19937 random(1);
    for (int i = 0; i < 20000; ++i) {
        uint8_t bytes[16];
        const uint32_t zeroes = random();
        for (int group = 0; group < 8; ++group) {
            const bool zero = zeroes >> group & 1, ones = group == 5 && (zeroes >> 8 & 1);
            bytes[2 * group] = ones ? 0xff : zero ? 0 : static_cast<uint8_t>(random() % 3);
            bytes[2 * group + 1] = ones ? 0xff : zero ? 0 : static_cast<uint8_t>(random() % 200);
        }
        std::string ours, four;
        trace::append_ipv6(ours, bytes);
        trace::append_ipv4(four, bytes);
        REQUIRE(ours == theirs(AF_INET6, bytes));
        REQUIRE(four == theirs(AF_INET, bytes));
    }
}
