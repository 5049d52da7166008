// bpf(2) and perf_event_open(2) against a fake kernel: what is passed, and what is tried again.
#include "runtime/sys/bpf.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/sys/hints.h"
#include "runtime/sys/perf.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"

using namespace rawbpf;
using test::FakeKernel;

TEST_CASE("bpf: an attribute is passed only as far as it is used") {
    FakeKernel kernel;
    std::vector<uint64_t> sizes;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number == __NR_bpf) sizes.push_back(c.args[2]);
        return {};
    };
    sys::MapCreateAttr map;
    map.map_type = BPF_MAP_TYPE_HASH;
    map.key_size = 4;
    map.max_entries = 1;
    CHECK(sys::map_create(map).has_value());
    map.map_extra = 3;
    CHECK(sys::map_create(map).has_value());
    sys::ProgLoadAttr program;
    program.prog_type = 1;
    program.license = 1; // a pointer that nobody follows here
    const char license[] = "GPL";
    program.license = sys::reg(license);
    CHECK(sys::prog_load(program).has_value());
    sys::legal_name("x", program.prog_name);
    CHECK(sys::prog_load(program).has_value());
    std::string log;
    CHECK(sys::prog_load(program, 1, log).has_value());
    REQUIRE(sizes.size() == 5);
    CHECK(sizes[0] == 20);  // up to map_flags
    CHECK(sizes[1] == 68);  // into map_extra
    CHECK(sizes[2] == 24);  // up to license
    CHECK(sizes[3] == 52);  // into prog_name
    CHECK(sizes[4] == 144); // with a log: up to log_true_size, which the kernel writes
    CHECK(kernel.leaks() == "");
}

TEST_CASE("bpf: BPF_PROG_LOAD is repeated on EAGAIN, five times at most; EINTR always") {
    const char license[] = "GPL";
    sys::ProgLoadAttr program;
    program.license = sys::reg(license);
    for (int refusals : {1, 5, 6}) {
        CAPTURE(refusals);
        FakeKernel kernel;
        int left = refusals;
        kernel.script = [&](const sys::Call &) -> std::optional<long> {
            if (left-- > 0) return -EAGAIN;
            return {};
        };
        Result<Fd> fd = sys::prog_load(program);
        CHECK(fd.has_value() == (refusals <= 5));
        if (!fd) CHECK(fd.error().os == EAGAIN);
    }
    FakeKernel kernel;
    int left = 20;
    kernel.script = [&](const sys::Call &) -> std::optional<long> {
        if (left-- > 0) return -EINTR;
        return {};
    };
    CHECK(sys::map_create({}).has_value());
}

TEST_CASE("bpf: the log's buffer grows until the log fits") {
    const char license[] = "GPL";
    sys::ProgLoadAttr program;
    program.license = sys::reg(license);
    std::string log;
    for (bool tells_size : {true, false}) { // log_true_size is new in 6.4
        CAPTURE(tells_size);
        FakeKernel kernel;
        std::vector<uint32_t> sizes;
        kernel.script = [&](const sys::Call &c) -> std::optional<long> {
            if (c.number != __NR_bpf) return {};
            auto *attr = reinterpret_cast<sys::ProgLoadAttr *>(c.args[1]);
            sizes.push_back(attr->log_size);
            if (attr->log_size < 300'000) {
                if (tells_size) attr->log_true_size = 300'000;
                return -ENOSPC;
            }
            std::memcpy(reinterpret_cast<char *>(attr->log_buf), "because", 8);
            return -EACCES;
        };
        Result<Fd> fd = sys::prog_load(program, 1, log);
        REQUIRE_FALSE(fd.has_value());
        CHECK(fd.error().os == EACCES);
        CHECK(log == "because");
        REQUIRE(sizes.size() == 2);
        CHECK(sizes[0] == 64 << 10);
        CHECK(sizes[1] == (tells_size ? 300'000 : 512 << 10));
    }
}

TEST_CASE("bpf: a program whose log fits nowhere is loaded without one") {
    const char license[] = "GPL";
    sys::ProgLoadAttr program;
    program.license = sys::reg(license);
    FakeKernel kernel;
    uint32_t largest = 0;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        auto *attr = reinterpret_cast<sys::ProgLoadAttr *>(c.args[1]);
        if (c.args[2] < 144) return {}; // no log: fine
        largest = std::max(largest, attr->log_size);
        std::memset(reinterpret_cast<char *>(attr->log_buf), 'x', attr->log_size - 1);
        return -ENOSPC;
    };
    std::string log;
    CHECK(sys::prog_load(program, 2, log).has_value());
    CHECK(largest == (16 << 20) - 1);
    CHECK(log.size() == largest - 1);
    CHECK(kernel.leaks() == "");
}

TEST_CASE("bpf: the memlock limit is raised where that helps, and put back where it doesn't") {
    for (bool helps : {true, false}) {
        CAPTURE(helps);
        FakeKernel kernel;
        rlim_t limit = 64 << 10;
        kernel.script = [&](const sys::Call &c) -> std::optional<long> {
            if (c.number == __NR_prlimit64) {
                if (c.args[3] != 0) *reinterpret_cast<rlimit *>(c.args[3]) = {limit, limit};
                if (c.args[2] != 0) limit = reinterpret_cast<const rlimit *>(c.args[2])->rlim_cur;
                return 0;
            }
            if (!helps || limit != RLIM_INFINITY) return -EPERM;
            return {};
        };
        Result<Fd> map = sys::map_create({});
        CHECK(map.has_value() == helps);
        CHECK(limit == (helps ? RLIM_INFINITY : 64 << 10));
        if (!map) {
            CHECK(map.error().kind == Errc::permission);
            CHECK(map.error().hint.find("CAP_BPF") != std::string::npos);
        }
    }
    // No privilege to raise it: the answer is the kernel's first one.
    FakeKernel kernel;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number == __NR_prlimit64 && c.args[2] != 0) return -EPERM;
        if (c.number == __NR_bpf) return -EPERM;
        return {};
    };
    CHECK(sys::map_create({}).error().os == EPERM);
    CHECK(kernel.count(BPF_MAP_CREATE) == 1);
}

TEST_CASE("bpf: errors name the command and say what would help") {
    FakeKernel kernel;
    kernel.refuse(BPF_PROG_LOAD, EPERM);
    kernel.refuse(BPF_OBJ_PIN, ENOENT);
    kernel.refuse(BPF_MAP_UPDATE_ELEM, E2BIG);
    const char license[] = "GPL";
    sys::ProgLoadAttr program;
    program.license = sys::reg(license);
    Error load = sys::prog_load(program).error();
    CHECK(load.message() == "BPF_PROG_LOAD: Operation not permitted (EPERM)");
    CHECK(load.hint.find("CAP_PERFMON") != std::string::npos);
    CHECK(load.hint.find("CAP_SYS_ADMIN before Linux 5.8") != std::string::npos);
    Error pin = sys::obj_pin(3, "/nowhere/x").error();
    CHECK(pin.message() == "/nowhere/x: BPF_OBJ_PIN: No such file or directory (ENOENT)");
    CHECK(pin.hint.find("a directory of the path") != std::string::npos);
    kernel.refuse(BPF_MAP_UPDATE_BATCH, E2BIG);
    kernel.refuse(BPF_MAP_CREATE, E2BIG);
    for (const Error &full :
         {sys::map_update_elem(3, nullptr, nullptr).error(), sys::map_update_batch(3, nullptr, nullptr, 1).error()}) {
        CHECK(full.kind == Errc::no_memory);
        CHECK(full.hint.find("full") != std::string::npos);
    }
    CHECK(sys::map_create({}).error().kind == Errc::unsupported);
    CHECK(sys::bpf_hint(BPF_MAP_FREEZE, ENOSYS).find("CONFIG_BPF_SYSCALL") != std::string::npos);
    CHECK(sys::bpf_hint(BPF_MAP_FREEZE, EDOM).empty());
}

TEST_CASE("bpf: the end of a batch is no error") {
    FakeKernel kernel;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        reinterpret_cast<sys::MapBatchAttr *>(c.args[1])->count = 3;
        return -ENOENT;
    };
    uint32_t position = 0, keys[8], values[8];
    sys::Batch batch = sys::map_lookup_batch(5, nullptr, &position, keys, values, 8).value();
    CHECK(batch.count == 3);
    CHECK(batch.end);
}

TEST_CASE("bpf: names are cut and made legal") {
    char out[16];
    auto legal = [&](std::string_view name) {
        std::memset(out, 'x', sizeof out);
        sys::legal_name(name, out);
        return std::string(out, strnlen(out, sizeof out));
    };
    CHECK(legal("events") == "events");
    CHECK(legal("a-name with.odd/letters") == "a_name_with.odd");
    CHECK(legal("fifteen_letters") == "fifteen_letters");
    CHECK(legal("") == "");
}

TEST_CASE("perf: the attribute's size is the shortest published one; E2BIG is tried again with what the kernel knows") {
    FakeKernel kernel;
    std::vector<uint32_t> sizes;
    uint32_t known = 0;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number != __NR_perf_event_open) return {};
        auto *attr = reinterpret_cast<sys::PerfEventAttr *>(c.args[0]);
        sizes.push_back(attr->size);
        if (known != 0 && attr->size > known) {
            attr->size = known;
            return -E2BIG;
        }
        return {};
    };
    sys::PerfEventAttr attr;
    CHECK(sys::perf_event_open(attr, 0, -1).has_value());
    attr.sig_data = 7;
    CHECK(sys::perf_event_open(attr, 0, -1).has_value());
    attr.config3 = 7;
    CHECK(sys::perf_event_open(attr, 0, -1).has_value());
    CHECK(sizes == std::vector<uint32_t>{112, 128, 136});
    sizes.clear();
    known = 96;
    attr = {};
    CHECK(sys::perf_event_open(attr, 0, -1).has_value());
    CHECK(sizes == std::vector<uint32_t>{112, 96});
    attr.sig_data = 7;
    Result<Fd> too_new = sys::perf_event_open(attr, 0, -1);
    REQUIRE_FALSE(too_new.has_value());
    CHECK(too_new.error().kind == Errc::unsupported);
    CHECK(too_new.error().message().find("96 bytes") != std::string::npos);
    CHECK(kernel.leaks() == "");
}
