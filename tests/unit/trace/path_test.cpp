// What the walk in BPF wrote, as a path.
#include "programs/trace/path.h"

#include <string_view>

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;

namespace {

std::string path(std::string_view names, int32_t flags = 0) {
    return path_text({reinterpret_cast<const std::byte *>(names.data()), names.size()},
                     static_cast<int32_t>(names.size()) | flags);
}

} // namespace

TEST_CASE("trace path: names are turned round") {
    using namespace std::string_view_literals;
    CHECK(path("passwd\0etc\0"sv) == "/etc/passwd");
    CHECK(path(""sv) == "/");
    CHECK(path("x\0lib\0usr\0"sv, kLonger) == ".../usr/lib/x");
}

TEST_CASE("trace path: where no mount is known") {
    using namespace std::string_view_literals;
    CHECK(path("exe\0self\0/\0proc\0"sv, kDetached) == "/self/exe"); // a dentry alone
    CHECK(path("/\0ext4\0"sv, kDetached) == "/");
    CHECK(path("memfd:x\0tmpfs\0"sv, kDetached) == "tmpfs:memfd:x");
    CHECK(path("\0pipefs\0"sv, kDetached) == "pipefs:");
    CHECK(path("half\0"sv, kDetached) == "");
}
