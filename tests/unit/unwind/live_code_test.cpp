// Code of processes that are gone: read from the files that they had mapped.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "programs/unwind/live_code.h"
#include "runtime/base/bytes.h"
#include "runtime/base/fail.h"
#include "runtime/symbols/vdso.h"
#include "runtime/sys/file.h"
#include "tests/support/emulated.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::unwind;
using Kind = CodeMapping::Kind;

namespace {

constexpr uint32_t kNobody = 0x7fff'ffff; // above all that pid_max allows
using Words = std::array<std::byte, 16>;

/// The test's own program, whatever module is asked for.
class Files final : public ModuleFiles {
  public:
    int opens = 0;
    bool gone = false;
    Result<Fd> open(uint32_t, const CodeMapping &) override {
        ++opens;
        if (gone) return fail(Errc::not_found, "gone");
        return sys::open("/proc/self/exe", O_RDONLY);
    }
    [[nodiscard]] std::string name(uint32_t) const override { return "itself"; }
};

Words of_program(uint64_t offset) {
    Words out{};
    const Result<Fd> file = sys::open("/proc/self/exe", O_RDONLY);
    REQUIRE(file);
    CHECK(sys::pread(file->get(), out.data(), out.size(), offset).value_or(0) == out.size());
    return out;
}

} // namespace

TEST_CASE("unwind code: of a process that is gone it is what its file and the vdso have") {
    Files files;
    LiveCode code(files);
    const Result<Bytes> image = symbols::vdso_image();
    if (!image) SKIP(image.error().message());
    const Bytes vdso = *image;
    const std::vector<CodeMapping> mapped = {{Kind::other, 0x1000, 0x2000, 0, 0},
                                             {Kind::file, 0x40'0000, 0x40'4000, 0x1000, 3},
                                             {Kind::vdso, 0x70'0000, 0x70'0000 + vdso.size(), 0, 0}};
    code.begin(kNobody, mapped);
    Words words{};
    REQUIRE(code.read(0x40'0124, words));
    CHECK(words == of_program(0x1124));
    REQUIRE(code.read(0x70'0040, words));
    CHECK(std::equal(words.begin(), words.end(), vdso.begin() + 0x40));
    CHECK_FALSE(code.read(0x1800, words)); // made at run time: it was nowhere else
    CHECK_FALSE(code.read(0x9000, words)); // in no mapping
    CHECK_FALSE(code.read(0x70'0000 + vdso.size() - 8, words));
    files.gone = true; // the file, too
    code.begin(kNobody, mapped);
    CHECK(code.read(0x40'0124, words));
    CHECK(files.opens == 1);
}

TEST_CASE("unwind code: what was loaded is held, the last ones used, and a failure isn't for ever") {
    Files files;
    LiveCode code(files);
    std::vector<CodeMapping> mapped;
    for (uint32_t module = 0; module <= LiveCode::kHeld; ++module)
        mapped.push_back({Kind::file, 0x1000 * (module + 1), 0x1000 * (module + 2), 0, module});
    const auto read = [&](uint32_t module) {
        Words words{};
        return code.read(mapped[module].start + 64, words);
    };
    code.begin(kNobody, mapped);
    files.gone = true;
    CHECK_FALSE(read(0));
    CHECK_FALSE(read(0)); // asked once for a stack
    CHECK(files.opens == 1);
    files.gone = false;
    code.begin(kNobody, mapped);
    CHECK(read(0));
    CHECK(files.opens == 2);
    Result<Fd> loaded = sys::open("/proc/self/exe", O_RDONLY);
    REQUIRE(loaded);
    code.hold(1, std::move(*loaded));
    for (uint32_t module = 0; module < LiveCode::kHeld; ++module) CHECK(read(module));
    CHECK(files.opens == static_cast<int>(LiveCode::kHeld)); // the failure was one of them, 1 was held
    CHECK(read(0));
    CHECK(read(LiveCode::kHeld)); // in place of 1, the one that was used least recently
    files.gone = true;
    CHECK(read(0));
    CHECK_FALSE(read(1));
}

TEST_CASE("unwind code: what isn't in a file is read from the process") {
    Files files;
    LiveCode code(files);
    static const Words made = [] {
        Words out{};
        out.fill(std::byte{0x90});
        return out;
    }();
    const auto at = reinterpret_cast<uintptr_t>(made.data());
    const std::vector<CodeMapping> mapped = {{Kind::other, at, at + made.size(), 0, 0}};
    if (test::memory_is_elsewhere()) SKIP("an emulator runs this, and /proc has the host's addresses");
    Words words{};
    code.begin(static_cast<uint32_t>(getpid()), mapped);
    REQUIRE(code.read(at, words));
    CHECK(words == made);
}
