// System calls as text, as a student reads them.
#include "runtime/sys/describe.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "asm/insn.h"
#include "runtime/base/format.h"
#include "runtime/sys/bpf_fields.h"
#include "runtime/sys/contents.h"
#include "runtime/sys/names.h"
#include "runtime/sys/narrow_call.h"
#include "runtime/sys/perf.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("describe: making a ring buffer") {
    sys::MapCreateAttr attr;
    attr.map_type = BPF_MAP_TYPE_RINGBUF;
    attr.max_entries = 262144;
    sys::legal_name("events", attr.map_name);
    sys::Call call{__NR_bpf, {BPF_MAP_CREATE, sys::reg(&attr), 36, 0, 0, 0}, "the ring that samples come out of"};
    CHECK(sys::describe(call, 5) ==
          "bpf(BPF_MAP_CREATE, {map_type=BPF_MAP_TYPE_RINGBUF, key_size=0, value_size=0, max_entries=262144, "
          "map_name=\"events\"}, 36) = 5   # the ring that samples come out of");
    CHECK(sys::describe(call, -EPERM).find(" = -1 EPERM (Operation not permitted)   # the ring") != std::string::npos);
}

TEST_CASE("describe: loading a program") {
    sys::ProgLoadAttr attr;
    attr.prog_type = BPF_PROG_TYPE_PERF_EVENT;
    attr.insn_cnt = 42;
    attr.insns = 0x1000;
    const char license[] = "Dual MIT/GPL";
    attr.license = sys::reg(license);
    attr.prog_flags = BPF_F_SLEEPABLE | 1U << 30;
    attr.log_level = 1;
    attr.log_size = 65536;
    attr.log_buf = 0x2000;
    attr.expected_attach_type = BPF_TRACE_FENTRY;
    sys::Call call{__NR_bpf, {BPF_PROG_LOAD, sys::reg(&attr), sizeof attr, 0, 0, 0}, {}};
    CHECK(sys::describe(call, -EACCES) ==
          "bpf(BPF_PROG_LOAD, {prog_type=BPF_PROG_TYPE_PERF_EVENT, insn_cnt=42, insns=0x1000, license=\"Dual MIT/GPL\", "
          "log_level=BPF_LOG_LEVEL1, log_size=65536, log_buf=0x2000, prog_flags=BPF_F_SLEEPABLE|0x40000000, "
          "expected_attach_type=BPF_TRACE_FENTRY}, 152) = -1 EACCES (Permission denied)");
}

TEST_CASE("describe: every command that the library has comes out with its fields, and unknown ones don't hurt") {
    test::FakeKernel kernel;
    char path[] = "/sys/fs/bpf/x";
    uint64_t word = 0;
    (void)sys::map_lookup_elem(3, &word, &word);
    (void)sys::map_update_elem(3, &word, &word, 1);
    (void)sys::map_delete_elem(3, &word);
    (void)sys::map_get_next_key(3, nullptr, &word);
    (void)sys::map_freeze(3);
    (void)sys::map_lookup_batch(3, nullptr, &word, &word, &word, 9);
    (void)sys::obj_pin(3, path);
    (void)sys::obj_get(path);
    (void)sys::prog_bind_map(3, 4);
    (void)sys::raw_tracepoint_open("sched_switch", 3);
    sys::LinkCreateAttr link;
    link.attach_type = BPF_PERF_EVENT;
    (void)sys::link_create(link);
    (void)sys::link_detach(3);
    (void)sys::enable_stats(0);
    (void)sys::next_id(sys::ObjectKind::map, 8);
    (void)sys::fd_by_id(sys::ObjectKind::link, 8);
    (void)sys::prog_info(3);
    (void)sys::btf_load(Bytes());
    const char *expected[] = {
        "bpf(BPF_MAP_LOOKUP_ELEM, {map_fd=3, key=0x",
        "flags=BPF_NOEXIST}, 32) = 0",
        "bpf(BPF_MAP_DELETE_ELEM, {map_fd=3, key=0x",
        "bpf(BPF_MAP_GET_NEXT_KEY, {map_fd=3, key=NULL, next_key=0x",
        "bpf(BPF_MAP_FREEZE, {map_fd=3}, 4) = 0",
        "bpf(BPF_MAP_LOOKUP_BATCH, {map_fd=3, in_batch=NULL, out_batch=0x",
        "bpf(BPF_OBJ_PIN, {pathname=\"/sys/fs/bpf/x\", bpf_fd=3}, 12) = 0",
        "bpf(BPF_OBJ_GET, {pathname=\"/sys/fs/bpf/x\"}, 12) = -1 ENOENT",
        "bpf(BPF_PROG_BIND_MAP, {prog_fd=3, map_fd=4}, 12)",
        "bpf(BPF_RAW_TRACEPOINT_OPEN, {name=\"sched_switch\", prog_fd=3}, 12)",
        "bpf(BPF_LINK_CREATE, {prog_fd=0, target_fd=0, attach_type=BPF_PERF_EVENT}, 16) = 1",
        "bpf(BPF_LINK_DETACH, {link_fd=3}, 4)",
        "bpf(BPF_ENABLE_STATS, {type=BPF_STATS_RUN_TIME}, 4)",
        "bpf(BPF_MAP_GET_NEXT_ID, {start_id=8, next_id=0}, 8)",
        "bpf(BPF_LINK_GET_FD_BY_ID, {link_id=8}, 4)",
        "bpf(BPF_OBJ_GET_INFO_BY_FD, {bpf_fd=3, info_len=232, info=0x",
        "bpf(BPF_BTF_LOAD, {btf=NULL, btf_size=0}, 4)",
    };
    REQUIRE(kernel.lines.size() == std::size(expected));
    for (size_t i = 0; i < std::size(expected); ++i) {
        CAPTURE(kernel.lines[i]);
        CHECK(kernel.lines[i].find(expected[i]) != std::string::npos);
    }
    for (uint32_t command = 0; command < 60; ++command) {
        sys::Call call{__NR_bpf, {command, 0, 0, 0, 0, 0}, {}};
        CHECK(sys::describe(call, 0).starts_with("bpf("));
    }
}

TEST_CASE("describe: opening a perf event, its ioctls, and mmap") {
    sys::PerfEventAttr attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.size = 112;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.sample_period = 99;
    attr.bits = sys::kPerfDisabled | sys::kPerfFreq;
    sys::Call open{__NR_perf_event_open,
                   {sys::reg(&attr), static_cast<uint64_t>(-1), 3, static_cast<uint64_t>(-1), PERF_FLAG_FD_CLOEXEC, 0},
                   "a clock"};
    CHECK(sys::describe(open, 7) == "perf_event_open({type=PERF_TYPE_SOFTWARE, size=112, config=PERF_COUNT_SW_CPU_CLOCK, "
                                    "sample_freq=99, disabled=1, freq=1}, pid=-1, cpu=3, group_fd=-1, PERF_FLAG_FD_CLOEXEC) = 7"
                                    "   # a clock");
    sys::Call enable{__NR_ioctl, {7, PERF_EVENT_IOC_ENABLE, 0, 0, 0, 0}, {}};
    CHECK(sys::describe(enable, 0) == "ioctl(7, PERF_EVENT_IOC_ENABLE, 0) = 0");
    const sys::Call width{__NR_ioctl, {2, TIOCGWINSZ, 0, 0, 0, 0}, {}};
    CHECK(!sys::is_narrated(width));
    sys::Call set{__NR_ioctl, {7, PERF_EVENT_IOC_SET_BPF, 5, 0, 0, 0}, {}};
    CHECK(sys::describe(set, -EEXIST) == "ioctl(7, PERF_EVENT_IOC_SET_BPF, 5) = -1 EEXIST (File exists)");
    sys::Call map{__NR_mmap, {0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 4, 0}, "the consumer's page"};
    CHECK(sys::describe(map, 0x7f001000) ==
          "mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 4, 0) = 0x7f001000   # the consumer's page");
    sys::Call other{__NR_close, {4, 0, 0, 0, 0, 0}, {}};
    CHECK_FALSE(sys::is_narrated(other));
    CHECK(sys::describe(other, 0).empty());
}

TEST_CASE("describe: text from outside can't disturb a terminal") {
    char path[] = "/tmp/\x1b[2J\"\n";
    sys::ObjAttr attr;
    attr.pathname = sys::reg(path);
    sys::Call call{__NR_bpf, {BPF_OBJ_GET, sys::reg(&attr), 12, 0, 0, 0}, {}};
    CHECK(sys::describe(call, 3) == "bpf(BPF_OBJ_GET, {pathname=\"/tmp/\\x1b[2J\\\"\\x0a\"}, 12) = 3");
}

TEST_CASE("names: as the kernel spells them, numbers where it has none") {
    CHECK(sys::command_name(BPF_PROG_BIND_MAP) == "BPF_PROG_BIND_MAP");
    CHECK(sys::command_name(uapi::BPF_TOKEN_CREATE) == "BPF_TOKEN_CREATE");
    CHECK(sys::command_name(4711) == "4711");
    CHECK(sys::map_type_name(BPF_MAP_TYPE_RINGBUF) == "BPF_MAP_TYPE_RINGBUF");
    CHECK(sys::map_type_name(uapi::BPF_MAP_TYPE_ARENA) == "BPF_MAP_TYPE_ARENA");
    CHECK(sys::prog_type_name(BPF_PROG_TYPE_SYSCALL) == "BPF_PROG_TYPE_SYSCALL");
    CHECK(sys::prog_type_name(uapi::BPF_PROG_TYPE_NETFILTER) == "BPF_PROG_TYPE_NETFILTER");
    CHECK(sys::attach_type_name(BPF_PERF_EVENT) == "BPF_PERF_EVENT");
    CHECK(sys::attach_type_name(uapi::BPF_TRACE_UPROBE_SESSION) == "BPF_TRACE_UPROBE_SESSION");
    CHECK(sys::link_type_name(BPF_LINK_TYPE_PERF_EVENT) == "BPF_LINK_TYPE_PERF_EVENT");
    CHECK(sys::map_flag_names(0) == "0");
    CHECK(sys::map_flag_names(BPF_F_MMAPABLE | BPF_F_RDONLY_PROG) == "BPF_F_RDONLY_PROG|BPF_F_MMAPABLE");
    CHECK(sys::map_flag_names(1U << 31) == "0x80000000");
    CHECK(sys::update_flag_names(0) == "BPF_ANY");
}

TEST_CASE("describe: BPF_LINK_CREATE shows the members of its union that the attach type uses") {
    test::FakeKernel kernel;
    const unsigned long addresses[2] = {1, 2}; // as the kernel reads them
    sys::LinkCreateAttr multi;
    multi.attach_type = uapi::BPF_TRACE_KPROBE_MULTI;
    multi.kprobe_multi.cnt = 2;
    multi.kprobe_multi.addrs = sys::reg(addresses);
    (void)sys::link_create(multi);
    CHECK(kernel.lines.back().find("kprobe_multi.cnt=2, kprobe_multi.addrs=[0x1, 0x2]") != std::string::npos);
    CHECK(kernel.lines.back().find("bpf_cookie") == std::string::npos);
    sys::LinkCreateAttr uprobes;
    uprobes.attach_type = uapi::BPF_TRACE_UPROBE_MULTI;
    uprobes.uprobe_multi.path = sys::reg("/bin/bash");
    uprobes.uprobe_multi.offsets = sys::reg(addresses);
    uprobes.uprobe_multi.cnt = 2;
    (void)sys::link_create(uprobes);
    CHECK(kernel.lines.back().find("uprobe_multi.path=\"/bin/bash\"") != std::string::npos);
    sys::LinkCreateAttr filter;
    filter.attach_type = uapi::BPF_NETFILTER;
    filter.netfilter = {2, 1, -5, 0};
    (void)sys::link_create(filter);
    CHECK(kernel.lines.back().find("netfilter.pf=2, netfilter.hooknum=1, netfilter.priority=-5") != std::string::npos);
}

namespace {

sys::Call bpf(uint32_t command, const void *attr, size_t size) {
    return {__NR_bpf, {command, sys::reg(attr), size, 0, 0, 0}, {}};
}
bool has(const std::string &text, std::string_view part) { return text.find(part) != std::string::npos; }

// One map "counts" of 4 and 8 bytes at 5, one of 3 bytes at 6, and a program at 7.
sys::Descriptors some_descriptors() {
    sys::Descriptors fds;
    sys::MapCreateAttr map;
    map.map_type = BPF_MAP_TYPE_HASH;
    map.key_size = 4;
    map.value_size = 8;
    sys::legal_name("counts", map.map_name);
    fds.see(bpf(BPF_MAP_CREATE, &map, sizeof map), 5);
    map.value_size = 3;
    sys::legal_name("", map.map_name);
    fds.see(bpf(BPF_MAP_CREATE, &map, sizeof map), 6);
    sys::ProgLoadAttr program;
    sys::legal_name("on_exec", program.prog_name);
    fds.see(bpf(BPF_PROG_LOAD, &program, sizeof program), 7);
    return fds;
}

} // namespace

TEST_CASE("describe: maps by name, keys and values as they are") {
    sys::Descriptors fds = some_descriptors();
    const sys::Detail detail{&fds};
    const uint32_t key = 3, next = 4;
    uint64_t value = 815;
    sys::MapElemAttr attr{.map_fd = 5, .key = sys::reg(&key), .value = sys::reg(&value)};
    CHECK(has(describe(bpf(BPF_MAP_UPDATE_ELEM, &attr, 32), 0, detail), "{map_fd=5<counts>, key=[3], value=[815]}"));
    CHECK(has(describe(bpf(BPF_MAP_LOOKUP_ELEM, &attr, 32), 0, detail), "value=[815]}"));
    CHECK(has(describe(bpf(BPF_MAP_LOOKUP_ELEM, &attr, 32), -ENOENT, detail), "key=[3], value=0x")); // nothing was written there
    attr.value = sys::reg(&next);
    CHECK(has(describe(bpf(BPF_MAP_GET_NEXT_KEY, &attr, 32), 0, detail), "key=[3], next_key=[4]}"));
    attr.map_fd = 6;
    attr.value = sys::reg("a\"\x1b");
    CHECK(has(describe(bpf(BPF_MAP_UPDATE_ELEM, &attr, 32), 0, detail),
              "map_fd=6<BPF_MAP_TYPE_HASH>, key=[3], value=\"a\\\"\\x1b\"}"));
    attr.value = 8; // wrong on purpose
    CHECK(has(describe(bpf(BPF_MAP_UPDATE_ELEM, &attr, 32), -EFAULT, detail), "value=0x8}"));
    const uint32_t keys[6] = {1, 2, 3, 4, 5, 6};
    sys::MapBatchAttr batch{.keys = sys::reg(keys), .count = 6, .map_fd = 5};
    CHECK(has(describe(bpf(BPF_MAP_LOOKUP_BATCH, &batch, sizeof batch), 0, detail), "keys=[1, 2, 3, 4, ... 6 in all]"));
    // A copy is the same, and a number that was closed is nobody's.
    fds.see({__NR_fcntl, {5, F_DUPFD_CLOEXEC, 0, 0, 0, 0}, {}}, 9);
    fds.see({__NR_close, {5, 0, 0, 0, 0, 0}, {}}, 0);
    attr.map_fd = 9;
    CHECK(has(describe(bpf(BPF_MAP_FREEZE, &attr, 4), 0, detail), "{map_fd=9<counts>}"));
    attr.map_fd = 5;
    CHECK(has(describe(bpf(BPF_MAP_DELETE_ELEM, &attr, 16), 0, detail), "{map_fd=5, key=0x"));
    const sys::Call run_on{__NR_ioctl, {3, PERF_EVENT_IOC_SET_BPF, 7, 0, 0, 0}, {}};
    CHECK(describe(run_on, 0, detail) == "ioctl(3, PERF_EVENT_IOC_SET_BPF, 7<on_exec>) = 0");
}

TEST_CASE("describe: a program's instructions, types and log") {
    // A wide one, and five more.
    const Insn insns[] = {{0x18, 1, 1, 0, 5}, {},    {0xb7, 0, 0, 0, 1}, {0x07, 0, 0, 0, 2}, {0x07, 0, 0, 0, 3},
                          {0x07, 0, 0, 0, 4}, {0x95}};
    const uint32_t functions[] = {0, 7, 3, 9};
    const std::string log = "0: (b7) r0 = 1\nR1 is a pointer\n" + std::string(200, 'x');
    sys::ProgLoadAttr attr;
    attr.insns = sys::reg(insns);
    attr.insn_cnt = std::size(insns);
    attr.func_info = sys::reg(functions);
    attr.func_info_cnt = 2;
    attr.func_info_rec_size = 8;
    attr.log_buf = sys::reg(log.c_str());
    attr.log_size = static_cast<uint32_t>(log.size() + 1);
    const sys::Call call = bpf(BPF_PROG_LOAD, &attr, sizeof attr);
    const std::string few = describe(call, -EACCES);
    CHECK(has(few, "insns=[r1 = map 5 ll; r0 = 1; r0 += 2; r0 += 3; ... 6 in all], "));
    CHECK(has(few, "func_info=[{0, 7}, {3, 9}]"));
    CHECK(has(few, "log_buf=\"0: (b7) r0 = 1\\x0aR1 is a pointer"));
    CHECK(has(few, "xxx\"..., "));
    const std::string all = describe(call, -EACCES, {nullptr, sys::kAll});
    CHECK(has(all, "\n            0: r1 = map 5 ll\n            2: r0 = 1\n"));
    CHECK(has(all, "\n            6: exit]"));
    CHECK(has(all, "\n        R1 is a pointer\n"));
    CHECK(has(all, std::string(200, 'x')));

    const uint8_t types[24] = {0x9f, 0xeb, 1, 0, 24, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 16, 0, 0, 0, 3};
    sys::BtfLoadAttr btf;
    btf.btf = sys::reg(types);
    btf.btf_size = sizeof types;
    CHECK(has(describe(bpf(BPF_BTF_LOAD, &btf, sizeof btf), 4), "btf={types=16 bytes, strings=3 bytes}, btf_size=24"));
}

TEST_CASE("describe: what the kernel told of an object, by what its descriptor is") {
    sys::Descriptors fds = some_descriptors();
    sys::ProgInfo program;
    program.type = BPF_PROG_TYPE_XDP;
    program.id = 12;
    sys::legal_name("on_exec", program.name);
    sys::InfoAttr attr;
    attr.bpf_fd = 7;
    attr.info_len = sizeof program;
    attr.info = sys::reg(&program);
    CHECK(has(describe(bpf(BPF_OBJ_GET_INFO_BY_FD, &attr, 16), 0, {&fds}), "info={type=BPF_PROG_TYPE_XDP, id=12, "));
    CHECK(has(describe(bpf(BPF_OBJ_GET_INFO_BY_FD, &attr, 16), 0, {&fds}), "name=\"on_exec\", ...}"));
    CHECK(has(describe(bpf(BPF_OBJ_GET_INFO_BY_FD, &attr, 16), -EFAULT, {&fds}), "info=0x"));
}

TEST_CASE("describe: names of functions for kprobe.multi, and what a uprobe is on") {
    const char *names[] = {"vfs_read", "vfs_write"};
    sys::LinkCreateAttr multi;
    multi.attach_type = uapi::BPF_TRACE_KPROBE_MULTI;
    multi.kprobe_multi.cnt = 2;
    multi.kprobe_multi.syms = sys::reg(names);
    CHECK(has(describe(bpf(BPF_LINK_CREATE, &multi, sizeof multi), 4), "kprobe_multi.syms=[\"vfs_read\", \"vfs_write\"]"));
    multi.kprobe_multi.syms = 8; // as the feature probe does
    CHECK(has(describe(bpf(BPF_LINK_CREATE, &multi, sizeof multi), -EFAULT), "kprobe_multi.syms=0x8"));
    sys::PerfEventAttr event;
    event.type = 8;
    event.size = 112;
    event.config1 = sys::reg("/bin/sh");
    event.config2 = 0x1234;
    const sys::Call open{__NR_perf_event_open, {sys::reg(&event), 0, 0, 0, 0, 0}, {}};
    CHECK(has(describe(open, 7), "uprobe_path=\"/bin/sh\", probe_offset=0x1234}"));
}

TEST_CASE("describe: every field of every command's attributes has a name") {
    struct Command {
        uint32_t command;
        size_t size;
        std::vector<size_t> padding = {}; // words of nothing
        uint32_t attach_type = 0;
    };
    const Command commands[] = {
        {BPF_MAP_CREATE, sizeof(sys::MapCreateAttr)},
        {BPF_MAP_LOOKUP_ELEM, sizeof(sys::MapElemAttr), {4}},
        {BPF_MAP_UPDATE_ELEM, sizeof(sys::MapElemAttr), {4}},
        {BPF_MAP_LOOKUP_BATCH, sizeof(sys::MapBatchAttr)},
        {BPF_PROG_LOAD, sizeof(sys::ProgLoadAttr)},
        {BPF_OBJ_GET, sizeof(sys::ObjAttr), {offsetof(sys::ObjAttr, pad)}},
        {BPF_PROG_ATTACH, sizeof(sys::ProgAttachAttr)},
        {BPF_PROG_TEST_RUN, sizeof(sys::ProgTestRunAttr), {offsetof(sys::ProgTestRunAttr, pad)}},
        {BPF_MAP_GET_NEXT_ID, sizeof(sys::IdAttr)},
        {BPF_OBJ_GET_INFO_BY_FD, sizeof(sys::InfoAttr)},
        {BPF_PROG_QUERY, sizeof(sys::ProgQueryAttr), {offsetof(sys::ProgQueryAttr, pad)}},
        {BPF_RAW_TRACEPOINT_OPEN, sizeof(sys::RawTracepointAttr), {12}},
        {BPF_BTF_LOAD, sizeof(sys::BtfLoadAttr)},
        {BPF_TASK_FD_QUERY, sizeof(sys::TaskFdQueryAttr)},
        {BPF_LINK_UPDATE, sizeof(sys::LinkUpdateAttr)},
        {BPF_LINK_CREATE, 64, {}, uapi::BPF_TRACE_UPROBE_MULTI},
        {BPF_LINK_CREATE, 48, {}, uapi::BPF_TRACE_KPROBE_MULTI},
        {BPF_LINK_CREATE, 36, {}, uapi::BPF_TRACE_FENTRY_MULTI},
        {BPF_LINK_CREATE, 32, {20}, BPF_TRACE_FENTRY},
        {BPF_LINK_CREATE, 28, {}, BPF_TRACE_ITER},
        {BPF_LINK_CREATE, 32, {}, uapi::BPF_NETFILTER},
        {BPF_LINK_CREATE, 32, {20}, uapi::BPF_TCX_INGRESS},
        {BPF_LINK_CREATE, 32, {20}, uapi::BPF_NETKIT_PRIMARY},
        {BPF_LINK_CREATE, 32, {20}, BPF_CGROUP_INET_INGRESS},
    };
    for (const Command &command : commands) {
        std::vector<bool> named(command.size);
        for (const size_t at : command.padding) std::fill_n(named.begin() + static_cast<std::ptrdiff_t>(at), 4, true);
        for (const sys::Field &field : sys::fields_of(command.command, command.attach_type))
            for (size_t i = field.offset; i < std::min<size_t>(field.offset + field.size, command.size); ++i) named[i] = true;
        for (size_t i = 0; i < command.size; ++i) {
            CAPTURE(command.command);
            CAPTURE(command.attach_type);
            CAPTURE(i);
            CHECK(named[i]);
        }
    }
}

TEST_CASE("describe: memory is read as far as it goes, by both ways") {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    auto *three = static_cast<std::byte *>(mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(three != MAP_FAILED);
    for (size_t i = 0; i < 3 * page; ++i) three[i] = static_cast<std::byte>(i * 7);
    REQUIRE(munmap(three + 2 * page, page) == 0);
    const uint64_t at = reinterpret_cast<uintptr_t>(three) + 5;
    const std::vector<std::byte> there(three + 5, three + 2 * page);
    CHECK(sys::own_memory(at, 3 * page) == there);
    std::vector<std::byte> piped(3 * page);
    CHECK(sys::own_memory_by_pipe(at, piped) == static_cast<long>(2 * page - 5));
    piped.resize(2 * page - 5);
    CHECK(piped == there);
    CHECK(sys::own_memory_by_pipe(at + 2 * page, piped) == -EFAULT);
    CHECK(sys::own_memory(at + 2 * page, 1).empty());
    REQUIRE(munmap(three, 2 * page) == 0);
    CHECK(sys::describe({__NR_bpf, {BPF_MAP_CREATE, at, 36, 0, 0, 0}, ""}, -EFAULT) ==
          format("bpf(BPF_MAP_CREATE, {:#x}, 36) = -1 EFAULT (Bad address)", at));
}
