// Records of the ring, whole and damaged.
#include "programs/profile/sample.h"

#include <cstring>
#include <string>

#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("sample: a record is taken apart, and refused where its sizes lie") {
    alignas(8) std::byte bytes[sizeof(ProfileRecord) + 24] = {};
    ProfileRecord fixed{};
    RecordHead &head = fixed.head;
    head.t_ns = 5;
    head.kernel_bytes = 16;
    head.user_bytes = 8;
    std::memset(head.comm, 'x', sizeof head.comm); // no NUL
    std::memcpy(bytes, &fixed, sizeof fixed);
    const uint64_t frames[] = {1, 2, 3};
    std::memcpy(bytes + sizeof fixed, frames, sizeof frames);
    auto sample = profile::parse_record(bytes);
    REQUIRE(sample);
    CHECK(sample->kernel.size() == 2);
    CHECK(sample->kernel[1] == 2);
    REQUIRE(sample->user.size() == 1);
    CHECK(sample->user[0] == 3);
    CHECK(std::string(sample->head.comm).size() == 15);
    for (size_t cut = 0; cut < sizeof bytes; ++cut) CHECK(!profile::parse_record(Bytes(bytes, cut)));

    head.kernel_bytes = -14; // an error takes no room
    head.user_bytes = 24;
    std::memcpy(bytes, &fixed, sizeof fixed);
    sample = profile::parse_record(bytes);
    REQUIRE(sample);
    CHECK(sample->kernel.empty());
    CHECK(sample->user.size() == 3);
    head.user_bytes = 12;
    std::memcpy(bytes, &fixed, sizeof fixed);
    CHECK(!profile::parse_record(bytes));
}
