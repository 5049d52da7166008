// The loader on the running kernel: hand-made objects, run by BPF_PROG_TEST_RUN so that what they do can be checked.
#include "runtime/kernel/loader.h"

#include <cstring>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "runtime/base/fail.h"
#include "runtime/kernel/btf_load.h"
#include "runtime/kernel/kernel_symbols.h"
#include "runtime/kernel/probes.h"
#include "runtime/kernel/stats.h"
#include "runtime/kernel/tail_call.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/uapi.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

constexpr Insn kExit{0x95, 0, 0, 0, 0};
constexpr Insn mov(uint8_t dst, int32_t imm) { return {0xb7, dst, 0, 0, imm}; }
constexpr Insn copy(uint8_t dst, uint8_t src) { return {0xbf, dst, src, 0, 0}; }
constexpr Insn wide(uint8_t dst) { return {0x18, dst, 0, 0, 0}; }
constexpr Insn call(int32_t helper) { return {0x85, 0, 0, 0, helper}; }
constexpr Insn load32(uint8_t dst, uint8_t src, int16_t off) { return {0x61, dst, src, off, 0}; }

ProgramSpec program(std::string name, std::vector<Insn> insns) {
    ProgramSpec out;
    out.name = std::move(name);
    out.section = "socket";
    out.type = BPF_PROG_TYPE_SOCKET_FILTER;
    out.insns = std::move(insns);
    return out;
}

ObjectSpec object_of(ProgramSpec spec) {
    ObjectSpec out;
    out.name = "test.bpf.o";
    out.programs.push_back(std::move(spec));
    return out;
}

MapSpec map_spec(std::string name, uint32_t type, uint32_t value, uint32_t entries) {
    MapSpec out;
    out.name = std::move(name);
    out.type = type;
    out.key_size = 4;
    out.value_size = value;
    out.max_entries = entries;
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

// What the program returns for a packet of zeros.
Result<uint32_t> run(const Program &program, uint32_t repeat = 1) {
    uint8_t packet[64] = {};
    sys::ProgTestRunAttr attr;
    attr.prog_fd = static_cast<uint32_t>(program.fd.get());
    attr.data_in = sys::reg(packet);
    attr.data_size_in = sizeof packet;
    attr.repeat = repeat;
    TRY(sys::prog_test_run(attr));
    return attr.retval;
}

bool may_load() { return load(object_of(program("probe", {mov(0, 0), kExit}))).has_value(); }
#define NEEDS_BPF()                                                                                                              \
    if (!may_load()) SKIP("needs CAP_BPF")

} // namespace

TEST_CASE("load: constants, a counter and a prog array, and what they do") {
    NEEDS_BPF();
    auto before = test::open_descriptors();
    {
        // entry: counts[0]++ by way of the map's value; tail call into slot 1; not reached when that works: return 1
        ProgramSpec entry = program("entry", {copy(6, 1),
                                              wide(2),
                                              {},
                                              mov(3, 1),
                                              {0xdb, 2, 3, 0, 0}, // lock *(u64 *)r2 += r3
                                              copy(1, 6),
                                              wide(2),
                                              {},
                                              mov(3, 1),
                                              call(12),
                                              mov(0, 1),
                                              kExit});
        entry.fixups = {fixup(1, Fixup::Kind::map_value, 1, 8), fixup(6, Fixup::Kind::map_fd, 2)};
        // answer: returns the second constant
        ProgramSpec answer = program("answer", {wide(1), {}, load32(0, 1, 0), kExit});
        answer.fixups = {fixup(0, Fixup::Kind::map_value, 0, 4)};
        ObjectSpec spec = object_of(entry);
        spec.programs.push_back(answer);
        MapSpec constants = map_spec("test.rodata", BPF_MAP_TYPE_ARRAY, 8, 1);
        constants.flags = BPF_F_RDONLY_PROG;
        constants.data_section = ".rodata";
        constants.contents.resize(8);
        constants.contents[4] = std::byte{42};
        constants.freeze = true;
        MapSpec jumps = map_spec("jumps", BPF_MAP_TYPE_PROG_ARRAY, 4, 4);
        jumps.slots = {{1, "answer"}};
        spec.maps = {constants, map_spec("counts", BPF_MAP_TYPE_ARRAY, 16, 1), jumps};

        LoadedObject object = load(spec).value();
        REQUIRE(object.programs.size() == 2);
        CHECK(run(*object.find_program("answer")).value() == 42);
        CHECK(run(*object.find_program("entry"), 3).value() == 42);
        struct Counts {
            uint64_t untouched, runs;
        };
        Counts counts = object.find_map("counts")->get<uint32_t, Counts>(0).value();
        CHECK(counts.untouched == 0);
        CHECK(counts.runs == 3);
        CHECK_FALSE(object.find_map("test.rodata")->put<uint32_t, uint64_t>(0, 1).has_value()); // frozen
        CHECK(std::string(sys::prog_info(object.programs[0].fd.get()).value().name) == "entry");
    }
    CHECK(test::open_descriptors() == before);
}

TEST_CASE("load: a map can be replaced by one that is there already") {
    NEEDS_BPF();
    ProgramSpec reader = program("reader", {wide(1), {}, load32(0, 1, 0), kExit});
    reader.fixups = {fixup(0, Fixup::Kind::map_value, 0)};
    ObjectSpec spec = object_of(reader);
    spec.maps = {map_spec("shared", BPF_MAP_TYPE_ARRAY, 8, 1)};
    Map mine = Map::create(spec.maps[0]).value();
    REQUIRE(mine.put<uint32_t, uint64_t>(0, 77).has_value());
    LoadOptions options;
    options.replace_maps = {{"shared", mine.fd()}};
    LoadedObject object = load(spec, options).value();
    CHECK(run(object.programs[0]).value() == 77);
    Map other = Map::create(map_spec("shared", BPF_MAP_TYPE_ARRAY, 16, 1)).value();
    options.replace_maps = {{"shared", other.fd()}};
    CHECK(load(spec, options).error().kind == Errc::invalid_argument);
    Map longer = Map::create(map_spec("shared", BPF_MAP_TYPE_ARRAY, 8, 2)).value();
    options.replace_maps = {{"shared", longer.fd()}};
    CHECK(load(spec, options).error().message().find("has 2 entries, the programs were compiled for 1 entries") !=
          std::string::npos);
    options.replace_maps = {{"shard", mine.fd()}};
    CHECK(load(spec, options).error().kind == Errc::not_found);
}

TEST_CASE("load: a program of another kind than its prog array is told in which property it differs") {
    NEEDS_BPF();
    ProgramSpec jumper = program("jumper", {wide(2), {}, mov(3, 0), call(12), mov(0, 1), kExit});
    jumper.fixups = {fixup(0, Fixup::Kind::map_fd, 0)};
    ObjectSpec spec = object_of(jumper);
    spec.programs.push_back(program("answer", {mov(0, 42), kExit}));
    ProgramSpec strange = program("strange", {mov(0, 0), kExit});
    strange.type = BPF_PROG_TYPE_XDP;
    spec.programs.push_back(strange);
    spec.maps = {map_spec("jumps", BPF_MAP_TYPE_PROG_ARRAY, 4, 2)};
    LoadedObject object = load(spec).value();
    const Map &jumps = *object.find_map("jumps");
    const Result<void> refused = put_program(jumps, 0, object.find_program("strange")->fd.get());
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().kind == Errc::invalid_argument);
    CHECK_MESSAGE(refused.error().hint ==
                      "the array is for programs of type BPF_PROG_TYPE_SOCKET_FILTER, this one is of type BPF_PROG_TYPE_XDP",
                  refused.error().hint);
    CHECK(put_program(jumps, 0, jumps.fd()).error().kind == Errc::invalid_argument); // a map isn't a program
    CHECK(run(*object.find_program("jumper")).value() == 1);                         // nothing there: it falls through
    REQUIRE(put_program(jumps, 0, object.find_program("answer")->fd.get()).has_value());
    CHECK(run(*object.find_program("jumper")).value() == 42);
}

TEST_CASE("load: a map pinned by name is made once and found again") {
    NEEDS_BPF();
    struct statfs fs {};
    if (statfs("/sys/fs/bpf", &fs) != 0 || fs.f_type != 0xcafe4a11) SKIP("needs a bpf file system at /sys/fs/bpf");
    LoadOptions options;
    options.pin_directory = "/sys/fs/bpf/rawbpf-test-" + std::to_string(getpid());
    REQUIRE(mkdir(options.pin_directory.c_str(), 0700) == 0);
    ProgramSpec reader = program("reader", {wide(1), {}, load32(0, 1, 0), kExit});
    reader.fixups = {fixup(0, Fixup::Kind::map_value, 0)};
    ObjectSpec spec = object_of(reader);
    spec.maps = {map_spec("kept", BPF_MAP_TYPE_ARRAY, 8, 1)};
    spec.maps[0].pin_by_name = true;
    {
        LoadedObject first = load(spec, options).value();
        REQUIRE(first.maps[0].put<uint32_t, uint64_t>(0, 123).has_value());
    }
    CHECK(run(load(spec, options).value().programs[0]).value() == 123);
    spec.maps[0].value_size = 16; // somebody else's idea of the map
    CHECK(load(spec, options).error().kind == Errc::invalid_argument);
    CHECK(unlink((options.pin_directory + "/kept").c_str()) == 0);
    CHECK(rmdir(options.pin_directory.c_str()) == 0);
}

TEST_CASE("load: the verifier's refusals are explained") {
    NEEDS_BPF();
    auto before = test::open_descriptors();
    struct Case {
        const char *what;
        std::vector<Insn> insns;
        const char *reason, *hint;
        int insn;
    };
    const Case cases[] = {
        {"a number as a pointer", {mov(1, 5), load32(0, 1, 0), kExit}, "R1 invalid mem access", "bpf_probe_read_kernel", 1},
        {"no return value", {kExit}, "R0 !read_ok", "", 0},
        {"a register nobody set", {copy(0, 5), kExit}, "R5 !read_ok", "", 0},
        {"no such helper", {call(99999), kExit}, "99999", "helper", 0},
        {"off the stack", {load32(0, 10, -516), kExit}, "stack", "512", 0},
        {"code nobody reaches", {mov(0, 0), kExit, mov(0, 1), kExit}, "unreachable insn 2", "never run", 2},
        {"an endless loop", {mov(0, 0), {0x05, 0, 0, -2, 0}, kExit}, "", "", -1},
        {"outside the context", {load32(0, 1, 4000), kExit}, "invalid bpf_context access", "context", 0},
        {"past the end of the program", {mov(0, 0)}, "", "", -1},
    };
    for (const Case &c : cases) {
        CAPTURE(c.what);
        Result<LoadedObject> r = load(object_of(program("bad", c.insns)));
        REQUIRE_FALSE(r.has_value());
        const Error &e = r.error();
        CAPTURE(e.message());
        CAPTURE(e.log);
        CHECK(e.kind == Errc::rejected);
        CHECK(e.message().starts_with("test.bpf.o: program bad (socket): the verifier refused "));
        CHECK(e.message().find(c.reason) != std::string::npos);
        CHECK((e.message() + e.hint).find(c.hint) != std::string::npos); // a note of the message's, or what would help
        CHECK_FALSE(e.log.empty());
        if (c.insn >= 0) CHECK(e.message().find(format("instruction {}", c.insn)) != std::string::npos);
    }
    CHECK(test::open_descriptors() == before);
}

TEST_CASE("load: with line information the refusal names file, line and text") {
    NEEDS_BPF();
    if (!has_feature(Feature::btf)) SKIP("needs " + std::string(feature_name(Feature::btf)));
    btf::Writer w;
    btf::TypeId n = w.add_int("int", 4, true);
    btf::TypeId ctx = w.add_ptr(w.add_fwd("__sk_buff"));
    btf::TypeId f = w.add_func("bad", w.add_func_proto(n, {{"skb", ctx}}), 0);
    ObjectSpec spec = object_of(program("bad", {mov(1, 5), load32(0, 1, 0), kExit}));
    uint32_t file = w.string("test.bpf.c");
    uint32_t first = w.string("int *p = (int *)5;"), second = w.string("\treturn *p;");
    spec.btf = w.finish();
    spec.programs[0].func_info = {{0, f}};
    spec.programs[0].line_info = {{0, file, first, 3 << 10 | 5}, {1, file, second, 4 << 10 | 9}};
    Error error = load(spec).error();
    CAPTURE(error.log);
    for (const char *part : {"instruction 1 (r0 = *(u32 *)(r1 +0))", "test.bpf.c:4:9: R1 invalid mem access", "return *p;\n"})
        CHECK_MESSAGE(error.message().find(part) != std::string::npos, part);
}

TEST_CASE("load: BTF that this kernel can't take doesn't keep a program from running") {
    NEEDS_BPF();
    ObjectSpec spec = object_of(program("fine", {mov(0, 7), kExit}));
    spec.btf = {std::byte{1}, std::byte{2}, std::byte{3}};
    LoadedObject object = load(spec).value();
    CHECK_FALSE(object.btf);
    REQUIRE(object.notes.size() == 1);
    CHECK(run(object.programs[0]).value() == 7);
}

TEST_CASE("load: every kind of BTF is known to this kernel, or found out not to be") {
    NEEDS_BPF();
    // Whatever the kernel lacks, sanitised BTF must load.
    btf::Writer w;
    btf::TypeId n = w.add_int("int", 4, true);
    btf::TypeId var = w.add_var("counter", n, 1);
    (void)w.add_datasec(".data.mine", 8, {{var, 0, 4}});
    (void)w.add_float("double", 8);
    (void)w.add_decl_tag("tag", w.add_struct("s", 4, {{"m", n, 0}}), -1);
    (void)w.add_ptr(w.add_type_tag("kptr", n));
    (void)w.add_enum("big", 8, {{"A", 1}, {"B", 1LL << 40}});
    (void)w.add_enum("small", 4, {{"C", -1}}, true);
    (void)w.add_func("f", w.add_func_proto(n, {{"x", n}}), 1);
    std::vector<std::byte> bytes = w.finish();
    if (btf_support().everything()) CHECK(sys::btf_load(bytes).has_value());
    for (const BtfSupport &support : {btf_support(), BtfSupport{false, false, false, false, false, false, false}}) {
        std::string log;
        Result<Fd> fd = sys::btf_load(sanitize_btf(bytes, support).value(), &log);
        CAPTURE(log);
        CHECK(fd.has_value());
    }
}

TEST_CASE("kernel BTF: found, shared while held, and errors name the file") {
    if (!has_feature(Feature::kernel_btf)) SKIP("needs " + std::string(feature_name(Feature::kernel_btf)));
    auto before = test::open_descriptors();
    auto one = kernel_btf().value(), two = kernel_btf().value();
    CHECK(one.get() == two.get());
    CHECK(one->find("task_struct", btf::Kind::struct_).has_value());
    CHECK(one->name() == "vmlinux");
    auto file = kernel_btf("/sys/kernel/btf/vmlinux").value();
    CHECK(file->end_id() == one->end_id());
    CHECK(kernel_btf("/nowhere/vmlinux").error().message().find("/nowhere/vmlinux") != std::string::npos);
    CHECK_FALSE(kernel_btf("/proc/self/exe").has_value()); // an ELF without .BTF
    CHECK_FALSE(kernel_btf("/dev/null").has_value());
    CHECK(test::open_descriptors() == before); // mapped or copied: no descriptor is kept
}

TEST_CASE("load: CO-RE puts this kernel's offsets into the instructions") {
    NEEDS_BPF();
    if (!has_feature(Feature::kernel_btf)) SKIP("needs " + std::string(feature_name(Feature::kernel_btf)));
    auto kernel = kernel_btf().value();
    btf::Type task = kernel->type(kernel->find("task_struct", btf::Kind::struct_).value()).value();
    uint32_t offset = 0;
    for (uint32_t i = 0; i < task.vlen; ++i) {
        btf::Member m = kernel->member(task, i).value();
        if (m.name == "tgid") offset = m.bit_offset / 8;
    }
    REQUIRE(offset != 0);

    // By name, as the DSL asks.
    ProgramSpec by_name = program("by_name", {mov(0, 0), kExit});
    by_name.field_references = {{0, "task_struct.tgid", 0}};
    CHECK(run(load(object_of(by_name)).value().programs[0]).value() == offset);

    // By the compiler's own types, where tgid is at offset 4.
    btf::Writer w;
    btf::TypeId n = w.add_int("int", 4, true);
    btf::TypeId local = w.add_struct("task_struct", 8, {{"pid", n, 0}, {"tgid", n, 32}});
    btf::TypeId wrong = w.add_struct("task_struct___wrong", 4, {{"no_such_field", n, 0}});
    ProgramSpec by_type = program("by_type", {mov(0, 4), kExit});
    by_type.core_relocations = {{0, local, "0:1", 0 /* field byte offset */}};
    ObjectSpec spec = object_of(by_type);
    spec.btf = w.finish();
    CHECK(run(load(spec).value().programs[0]).value() == offset);

    // What isn't there only hurts where it is reached, and then it is named.
    spec.programs[0].insns = {mov(0, 3), {0x05, 0, 0, 0, 0}, kExit};
    spec.programs[0].insns = {mov(0, 0), {0x55, 0, 0, 1, 0}, {0x05, 0, 0, 1, 0}, mov(0, 0), kExit}; // jumps over instruction 3
    spec.programs[0].core_relocations = {{3, wrong, "0:0", 0}};
    CHECK(load(spec).has_value());
    spec.programs[0].insns = {mov(0, 0), kExit};
    spec.programs[0].core_relocations = {{0, wrong, "0:0", 0}};
    Error error = load(spec).error();
    CAPTURE(error.log);
    CAPTURE(error.message());
    CHECK(error.kind == Errc::rejected);
    CHECK(error.message().find("no_such_field") != std::string::npos);
    CHECK(error.hint.find("bpf_core_field_exists") != std::string::npos);
}

TEST_CASE("load: kernel symbols by BTF id and by address, weak ones may be missing") {
    NEEDS_BPF();
    Result<uint64_t> text = kernel_symbol_address("_stext");
    if (!text) SKIP("needs readable /proc/kallsyms: " + text.error().message());
    CHECK(kernel_symbol_address("no such symbol").error().kind == Errc::not_found);
    Fixup address;
    address.kind = Fixup::Kind::ksym;
    address.symbol = "_stext";
    ProgramSpec low = program("low", {wide(0), {}, kExit});
    low.fixups = {address};
    CHECK(run(load(object_of(low)).value().programs[0]).value() == static_cast<uint32_t>(*text));
    low.fixups[0].symbol = "no_such_symbol_at_all";
    CHECK(load(object_of(low)).error().kind == Errc::not_found);
    low.fixups[0].weak = true;
    CHECK(run(load(object_of(low)).value().programs[0]).value() == 0);

    if (!has_feature(Feature::kernel_btf)) return;
    if (kernel_btf().value()->find("runqueues", btf::Kind::var)) { // only with CONFIG_SMP
        ProgramSpec typed = program("typed", {wide(1), {}, mov(0, 9), kExit});
        address.symbol = "runqueues";
        address.type = 1;
        typed.fixups = {address};
        Result<LoadedObject> loaded = load(object_of(typed));
        CAPTURE((loaded ? std::string() : loaded.error().message() + "\n" + loaded.error().log));
        // Without CONFIG_KALLSYMS_ALL the kernel knows the type and can't find the address: its own words must come out.
        if (loaded)
            CHECK(run(loaded->programs[0]).value() == 9);
        else
            CHECK(loaded.error().message().find("failed to find the address for kernel symbol") != std::string::npos);
    }
    ProgramSpec kfunc = program("kfunc", {call(0), mov(0, 0), kExit});
    Fixup function;
    function.kind = Fixup::Kind::kfunc;
    function.symbol = "no_such_kfunc";
    kfunc.fixups = {function};
    CHECK(load(object_of(kfunc)).error().message().find("no_such_kfunc") != std::string::npos);
}

TEST_CASE("load: with a log level the log comes back for a good program too") {
    NEEDS_BPF();
    LoadOptions options;
    options.log_level = uapi::BPF_LOG_LEVEL1 | uapi::BPF_LOG_STATS;
    LoadedObject object = load(object_of(program("fine", {mov(0, 7), kExit})), options).value();
    CHECK(object.programs[0].log.find("processed 2 insns") != std::string::npos);
    CHECK(load(object_of(program("fine", {mov(0, 7), kExit}))).value().programs[0].log.empty());
}

TEST_CASE("stats: runs and time are counted while they are on") {
    NEEDS_BPF();
    auto before = test::open_descriptors();
    {
        LoadedObject object = load(object_of(program("fine", {mov(0, 7), kExit}))).value();
        const int fd = object.programs[0].fd.get();
        REQUIRE(run(object.programs[0], 100).has_value());
        // Statistics are the machine's and somebody else may have them on, so only what is counted while ours are is certain;
        // that ours end with their descriptor is the kernel's promise, and that it is closed is seen below.
        Result<RunStats> stats = RunStats::enable();
        if (!stats) SKIP("needs CAP_SYS_ADMIN: " + stats.error().message());
        RunCost start = run_cost(fd).value();
        REQUIRE(run(object.programs[0], 1000).has_value());
        RunCost end = run_cost(fd).value();
        CHECK(end.runs - start.runs == 1000);
        CHECK(end.ns > start.ns);
    }
    CHECK(test::open_descriptors() == before);
}
