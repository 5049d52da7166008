// What objects carry besides programs and plain maps, on the running kernel: struct_ops, arenas, kernel functions, .kconfig, maps
// of maps whose inner values have types, pins. Hand-made specs, so that no compiler is needed.
#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "runtime/base/format.h"
#include "runtime/kernel/kconfig.h"
#include "runtime/kernel/kernel_symbols.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/pin.h"
#include "runtime/kernel/probes.h"
#include "runtime/object/elf_object.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/uapi.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

namespace rawbpf::inline v0 {
extern const std::span<const std::byte> golden_jumps;
}
using namespace rawbpf;

namespace {

constexpr Insn kExit{0x95, 0, 0, 0, 0};
constexpr Insn mov(uint8_t dst, int32_t imm) { return {0xb7, dst, 0, 0, imm}; }
constexpr Insn wide(uint8_t dst) { return {0x18, dst, 0, 0, 0}; }

ProgramSpec program(std::string name, uint32_t type, std::vector<Insn> insns) {
    ProgramSpec out;
    out.name = std::move(name);
    out.section = "socket";
    out.type = type;
    out.insns = std::move(insns);
    return out;
}

Fixup fixup(uint32_t insn, Fixup::Kind kind, uint32_t map = 0, uint32_t offset = 0) {
    Fixup out;
    out.insn = insn;
    out.kind = kind;
    out.map = map;
    out.offset = offset;
    return out;
}

/// An object with a congestion control of two programs; `flags` is set too.
ObjectSpec congestion_control(bool with_unknown_member, uint32_t unknown_value) {
    ObjectSpec spec;
    spec.name = "ops.bpf.o";
    btf::Writer w;
    const auto u32 = w.add_int("unsigned int", 4, false), letter = w.add_int("char", 1, true);
    const auto sock = w.add_ptr(w.add_fwd("sock"));
    const auto function = w.add_ptr(w.add_func_proto(u32, {{"sk", sock}}));
    std::vector<btf::Writer::Field> fields = {{"undo_cwnd", function, 0}, // another order than the kernel's
                                              {"ssthresh", function, 64},
                                              {"flags", u32, 128},
                                              {"name", w.add_array(letter, u32, 16), 160}};
    if (with_unknown_member) fields.push_back({"of_tomorrow", u32, 288});
    const auto type = w.add_struct("tcp_congestion_ops___mine", 40, fields);
    spec.btf = w.finish();
    MapSpec map;
    map.name = "rawbpf_test";
    map.type = BPF_MAP_TYPE_STRUCT_OPS;
    map.key_size = 4;
    map.value_size = 40;
    map.max_entries = 1;
    map.value_type = type;
    map.contents.resize(40);
    const uint32_t flags = 2;
    std::memcpy(map.contents.data() + 16, &flags, 4);
    std::memcpy(map.contents.data() + 20, "rawbpf_test", 12);
    std::memcpy(map.contents.data() + 36, &unknown_value, 4);
    map.slots = {{0, "undo"}, {1, "threshold"}};
    spec.maps = {map};
    for (const char *name : {"threshold", "undo"})
        spec.programs.push_back(program(name, BPF_PROG_TYPE_STRUCT_OPS, {mov(0, 1), kExit}));
    return spec;
}

bool has_congestion_ops() {
    return has_feature(Feature::kernel_btf) &&
           kernel_btf().value()->find("bpf_struct_ops_tcp_congestion_ops", btf::Kind::struct_);
}

bool may_load() {
    ObjectSpec spec;
    spec.programs.push_back(program("probe", BPF_PROG_TYPE_SOCKET_FILTER, {mov(0, 0), kExit}));
    return load(spec).has_value();
}
#define NEEDS_BPF()                                                                                                              \
    if (!may_load()) SKIP("needs CAP_BPF")

} // namespace

TEST_CASE("load: a program by name belongs to the struct_ops map that is made, not to one that is made only when asked for") {
    NEEDS_BPF();
    if (!has_congestion_ops()) SKIP("needs congestion controls in BPF, 5.6");
    ObjectSpec spec = congestion_control(true, 0);
    MapSpec later = spec.maps[0]; // "?.struct_ops": sets a member that this kernel hasn't
    later.name = "later";
    later.autocreate = false;
    later.contents[36] = std::byte{7};
    spec.maps.push_back(later);
    LoadOptions options;
    options.programs = {"undo"};
    Result<LoadedObject> loaded = load(spec, options);
    if (!loaded && loaded.error().os == EPERM) SKIP("this kernel's policy refuses struct_ops: " + loaded.error().message());
    if (!loaded) FAIL((loaded.error().message() + loaded.error().log));
    CHECK(loaded->programs.size() == 1);
    spec.maps.erase(spec.maps.begin()); // only the other says what it is for
    Error error = load(spec, options).error();
    CHECK_MESSAGE(error.message().find("of_tomorrow is set") != std::string::npos, error.message());
}

TEST_CASE("load: a struct_ops map in the kernel's layout, its programs as its members") {
    NEEDS_BPF();
    if (!has_congestion_ops()) SKIP("needs congestion controls in BPF, 5.6");
    Result<LoadedObject> loaded = load(congestion_control(true, 0)); // a member of tomorrow that isn't set
    if (!loaded && loaded.error().os == EPERM) SKIP("this kernel's policy refuses struct_ops: " + loaded.error().message());
    if (!loaded) FAIL((loaded.error().message() + loaded.error().log));
    CHECK(loaded->programs.size() == 2);
    REQUIRE(loaded->maps.size() == 1);
    REQUIRE(loaded->struct_ops.size() == 1);
    const std::vector<std::byte> &value = loaded->struct_ops[0].value;
    CHECK(value.size() == loaded->maps[0].value_size());

    const auto held = kernel_btf().value(); // mapped or read only as long as somebody holds it
    const btf::Btf &kernel = *held;
    const btf::Type outer = kernel.type(*kernel.find("bpf_struct_ops_tcp_congestion_ops", btf::Kind::struct_)).value();
    const btf::Type ops = kernel.type(*kernel.find("tcp_congestion_ops", btf::Kind::struct_)).value();
    uint32_t data = 0;
    for (uint32_t i = 0; i < outer.vlen; ++i)
        if (kernel.member(outer, i)->name == "data") data = kernel.member(outer, i)->bit_offset / 8;
    size_t seen = 0;
    for (uint32_t i = 0; i < ops.vlen; ++i) {
        const btf::Member member = kernel.member(ops, i).value();
        const std::byte *at = value.data() + data + member.bit_offset / 8;
        if (member.name == "ssthresh") seen += load<uint64_t>(at) == uint64_t(loaded->find_program("threshold")->fd.get());
        if (member.name == "undo_cwnd") seen += load<uint64_t>(at) == uint64_t(loaded->find_program("undo")->fd.get());
        if (member.name == "flags") seen += load<uint32_t>(at) == 2;
        if (member.name == "name") seen += std::strcmp(reinterpret_cast<const char *>(at), "rawbpf_test") == 0;
    }
    CHECK(seen == 4);
}

TEST_CASE("load: struct_ops that this kernel can't have are named") {
    NEEDS_BPF();
    if (!has_congestion_ops()) SKIP("needs congestion controls in BPF, 5.6");
    CHECK(load(congestion_control(true, 7)).error().message().find("of_tomorrow") != std::string::npos);
    ObjectSpec spec = congestion_control(false, 0);
    spec.maps[0].contents[0] = std::byte{1};
    spec.maps[0].slots.clear();
    CHECK(load(spec).error().message().find("undo_cwnd is a pointer") != std::string::npos);
    spec = congestion_control(false, 0);
    spec.maps[0].slots = {{0, "undo"}}; // the other program belongs nowhere
    CHECK(load(spec).error().message().find("no struct_ops map refers to") != std::string::npos);
    // Not made unless asked for; and then its programs aren't loaded either.
    spec = congestion_control(false, 0);
    spec.maps[0].autocreate = false;
    const LoadedObject none = load(spec).value();
    CHECK(none.programs.empty());
    CHECK(none.notes.size() == 2);
}

TEST_CASE("load: an arena is mapped, and its variables are where the programs look") {
    NEEDS_BPF();
    if (!has_map_type(uapi::BPF_MAP_TYPE_ARENA)) SKIP("needs arenas, 6.9");
    ObjectSpec spec;
    spec.name = "arena.bpf.o";
    MapSpec arena;
    arena.name = "arena";
    arena.type = uapi::BPF_MAP_TYPE_ARENA;
    arena.flags = BPF_F_MMAPABLE;
    arena.max_entries = 4;
    arena.map_extra = 0x1ull << 44; // where no mapping is
    arena.contents.resize(16);
    arena.contents[8] = std::byte{42};
    spec.maps = {arena};
    // r1 = &variable at 8; r1 is a number to the verifier until it is cast: r1 = addr_space_cast(r1, 0, 1)
    spec.programs = {program("reader", BPF_PROG_TYPE_SYSCALL, {wide(1), {}, {0xbf, 1, 1, 1, 1}, {0x79, 0, 1, 0, 0}, kExit})};
    spec.programs[0].flags = BPF_F_SLEEPABLE;
    spec.programs[0].fixups = {fixup(0, Fixup::Kind::map_value, 0, 8)};
    Result<LoadedObject> loaded = load(spec);
    if (!loaded) SKIP("this kernel refuses the program: " + loaded.error().message());
    CHECK(loaded->arena.size() == 4 * sys::page_size());
    CHECK(sys::reg(loaded->arena.data()) == arena.map_extra);
    sys::ProgTestRunAttr run;
    run.prog_fd = static_cast<uint32_t>(loaded->programs[0].fd.get());
    const Result<void> done = sys::prog_test_run(run);
    if (!done) FAIL(done.error().message());
    CHECK(run.retval == 42);
    // Its place is taken now: a second one can't have it, and that is said.
    CHECK(load(spec).error().os == EEXIST);
    spec.maps[0].contents.resize(5 * sys::page_size());
    CHECK(load(spec).error().kind == Errc::bad_input);
}

TEST_CASE("load: switches by jump table run as C says") {
    NEEDS_BPF();
    ObjectSpec spec = parse_object(golden_jumps, "jumps.bpf.o").value();
    if (!has_map_type(uapi::BPF_MAP_TYPE_INSN_ARRAY)) {
        const Error error = load(spec).error();
        CHECK(error.kind == Errc::unsupported);
        CHECK(error.hint == "needs instruction arrays, 6.19, or an object compiled with -fno-jump-tables");
        SKIP("needs instruction arrays, 6.19");
    }
    Result<LoadedObject> loaded = load(spec);
    if (!loaded) FAIL((loaded.error().message() + loaded.error().log));
    const Map *globals = loaded->find_map("jumps.bss");
    REQUIRE(globals);
    struct Globals {
        int64_t chosen = 0, seen[8] = {};
    };
    // golden/jumps.bpf.c, written once more.
    constexpr uint32_t kWeights[] = {50, 61, 72, 83, 94, 105}, kSums[] = {1000, 3000, 2000, 5000, 7000, 6000, 4000};
    constexpr int64_t kSeen[] = {5, 7, 3, 9, 1, 2};
    auto run = [&](const char *name, int64_t chosen) {
        REQUIRE(globals->put(uint32_t{0}, Globals{chosen, {}}).has_value());
        sys::ProgTestRunAttr attr;
        attr.prog_fd = static_cast<uint32_t>(loaded->find_program(name)->fd.get());
        REQUIRE(sys::prog_test_run(attr).has_value());
        return attr.retval;
    };
    for (int64_t n : {-1, 0, 1, 2, 3, 4, 5, 6, 7}) {
        CAPTURE(n);
        const uint32_t weight = n >= 0 && n < 6 ? kWeights[n] : 2;
        CHECK(run("first", n) == weight);
        const Globals after = globals->get<uint32_t, Globals>(0).value();
        CHECK(after.seen[n >= 0 && n < 6 ? n : 6] == (n >= 0 && n < 6 ? kSeen[n] : 8));
        CHECK(run("second", n) == weight + (n >= 0 && n < 7 ? kSums[n] : 0));
    }
    // Refused once, the tables are free for another try: with a log, and in another object.
    spec.programs[0].insns.back() = mov(0, 0);
    Result<LoadedObject> broken = load(spec);
    REQUIRE(!broken);
    CHECK(broken.error().kind == Errc::rejected);
    CHECK(broken.error().os == EINVAL);
}

TEST_CASE("load: the running kernel's configuration") {
    Result<std::string> config = kernel_config();
    if (!config) SKIP("needs the kernel's configuration: " + config.error().message());
    CHECK(config->find("CONFIG_BPF_SYSCALL=y\n") != std::string::npos);
}

TEST_CASE("load: all or nothing is pinned") {
    NEEDS_BPF();
    const Result<Fd> mount = sys::mount_detached("bpf");
    if (!mount) SKIP("needs a bpf file system of its own, 5.2: " + mount.error().message());
    const std::string root = format("/proc/self/fd/{}/object", mount->get());
    ObjectSpec spec;
    spec.name = "pins.bpf.o";
    MapSpec map;
    map.name = "pins.data";
    map.type = BPF_MAP_TYPE_ARRAY;
    map.key_size = map.value_size = 4;
    map.max_entries = 1;
    spec.maps = {map};
    spec.programs = {program("one", BPF_PROG_TYPE_SOCKET_FILTER, {wide(1), {}, mov(0, 0), kExit})};
    spec.programs[0].fixups = {fixup(0, Fixup::Kind::map_fd)};
    const LoadedObject object = load(spec).value();
    const Result<void> pinned = pin_object(object, root);
    if (!pinned) FAIL(pinned.error().message());
    CHECK(sys::obj_get(root + "/one").has_value());
    CHECK(sys::obj_get(root + "/maps/pins_data").has_value());
    CHECK(pin_object(object, root).error().os == EEXIST);
    CHECK(sys::obj_get(root + "/one").has_value()); // what was there stays
    REQUIRE(sys::remove_file(root + "/one").has_value());
    CHECK(!pin_object(object, root)); // the map's name is taken, so the program isn't pinned either
    CHECK(!sys::exists(root + "/one"));
    CHECK(pin_object(object, "/tmp").error().kind == Errc::invalid_argument);
}
