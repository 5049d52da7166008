// Why an array of programs refuses one.
#include "runtime/kernel/tail_call.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"
#include "tests/unit/kernel/loader_sample.h"

using namespace rawbpf;
using test::FakeKernel;
using test::map_spec;

TEST_CASE("tail calls: an array's refusal says in which property the program differs") {
    FakeKernel kernel;
    sys::ProgInfo info;
    info.type = BPF_PROG_TYPE_PERF_EVENT;
    info.jited_prog_len = 100;
    std::string owner = "pos:\t0\nmap_type:\t3\nowner_prog_type:\t2\nowner_jited:\t1\n";
    int refused_with = EINVAL;
    bool is_program = true;
    size_t given = 0;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number == __NR_openat && std::string(reinterpret_cast<const char *>(c.args[1])).starts_with("/proc/self/fdinfo/")) {
            given = 0;
            return {1'000'600};
        }
        if (c.number == __NR_close) return 0;
        if (c.number == __NR_read) {
            const size_t n = std::min<size_t>(owner.size() - given, c.args[2]);
            std::memcpy(reinterpret_cast<void *>(c.args[1]), owner.data() + given, n);
            given += n;
            return {static_cast<long>(n)};
        }
        if (c.number != __NR_bpf) return {};
        if (c.args[0] == BPF_MAP_UPDATE_ELEM && refused_with) return {-refused_with};
        if (c.args[0] == BPF_OBJ_GET_INFO_BY_FD) {
            if (!is_program) return {-EBADF};
            std::memcpy(reinterpret_cast<void *>(reinterpret_cast<sys::InfoAttr *>(c.args[1])->info), &info, sizeof info);
            return 0;
        }
        return {};
    };
    Map array = Map::create(map_spec("jumps", BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 2)).value();
    const auto why = [&](const Program *jumper = nullptr, const Program *to = nullptr, uint32_t slot = 1) {
        const Result<void> done = put_program(array, slot, 77, jumper, to);
        REQUIRE_FALSE(done.has_value());
        CHECK(done.error().kind == Errc::invalid_argument);
        return done.error().message() + "; " + done.error().hint;
    };
    CHECK(why().find("the array is for programs of type BPF_PROG_TYPE_KPROBE, this one is of type BPF_PROG_TYPE_PERF_EVENT") !=
          std::string::npos);
    info.type = BPF_PROG_TYPE_KPROBE;
    info.jited_prog_len = 0;
    CHECK(why().find("compiled to machine code (jited), this one is interpreted") != std::string::npos);
    info.jited_prog_len = 100;
    CHECK(why().find("a call of bpf_override_return") != std::string::npos);
    Program one, many;
    one.name = "one";
    one.section = "uprobe";
    one.type = many.type = BPF_PROG_TYPE_KPROBE;
    many.name = "many";
    many.section = "uprobe.multi";
    many.expected_attach_type = 48;
    CHECK(why(&one, &many)
              .find("one (uprobe) jumps through the array and has the expected attach type none, many (uprobe.multi) has "
                    "BPF_TRACE_UPROBE_MULTI") != std::string::npos);
    owner.clear(); // a kernel that doesn't tell
    info.type = BPF_PROG_TYPE_TRACEPOINT;
    CHECK(why(&one).find("one jumps through the array and is of type BPF_PROG_TYPE_KPROBE") != std::string::npos);
    is_program = false;
    CHECK(why().find("descriptor 77 isn't a BPF program") != std::string::npos);
    CHECK(why(nullptr, nullptr, 2).find("there is no slot 2, it has 2") != std::string::npos);
    refused_with = 0;
    CHECK(put_program(array, 0, 77).has_value());
    Map other = Map::create(map_spec("counts", BPF_MAP_TYPE_HASH, 4, 8, 2)).value();
    const Result<void> hash = put_program(other, 0, 77);
    REQUIRE_FALSE(hash.has_value());
    CHECK(hash.error().message().find("isn't a prog array, but BPF_MAP_TYPE_HASH") != std::string::npos);
}
