// System calls as text, as a student reads them.
#include "runtime/sys/describe.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#include "runtime/sys/names.h"
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
    sys::Call set{__NR_ioctl, {7, PERF_EVENT_IOC_SET_BPF, 5, 0, 0, 0}, {}};
    CHECK(sys::describe(set, -EEXIST) == "ioctl(7, PERF_EVENT_IOC_SET_BPF, 5) = -1 EEXIST (File exists)");
    sys::Call map{__NR_mmap, {0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 4, 0}, "the consumer's page"};
    CHECK(sys::describe(map, 0x7f0000001000) ==
          "mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 4, 0) = 0x7f0000001000   # the consumer's page");
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
    const uint64_t addresses[2] = {1, 2};
    sys::LinkCreateAttr multi;
    multi.attach_type = uapi::BPF_TRACE_KPROBE_MULTI;
    multi.kprobe_multi.cnt = 2;
    multi.kprobe_multi.addrs = sys::reg(addresses);
    (void)sys::link_create(multi);
    CHECK(kernel.lines.back().find("kprobe_multi.cnt=2, kprobe_multi.addrs=0x") != std::string::npos);
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
