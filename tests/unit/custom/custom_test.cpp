// Custom traces without a kernel: the programs in every configuration, records cut short, callers, hashes.
#include "asm/machines.h"
#include "programs/custom/names.h"
#include "programs/custom/program.h"
#include "programs/custom/view.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/object/unit_object.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::custom;

TEST_CASE("custom: its formats are two of its own, and those of the render stage that are of any trace") {
    CHECK(custom::kFormatChoices.starts_with("text json folded svg top pprof perf-script speedscope firefox"));
    CHECK(!custom::rendered("text"));
    CHECK(!custom::rendered("json"));
    CHECK(custom::rendered("svg") == render::Format::svg);
    CHECK(custom::is_weighed(custom::rendered("folded")));
    CHECK(!custom::is_weighed(custom::rendered("pprof")));
    CHECK(!custom::is_weighed({}));
}

TEST_CASE("custom programs: every configuration is a program") {
    for (const bool exchange : {false, true})
        for (const uint64_t ino : {uint64_t{0}, uint64_t{4026531836}}) {
            UnitOptions options;
            options.exchange = exchange;
            options.pidns_dev = options.pidns_ino = ino;
            options.off_cpu = exchange;
            options.forked_child = ino ? 44 : 0;
            ObjectSpec spec = object_of(generic_unit(options)).value();
            for (const char *name :
                 {"custom__generic", "custom__generic_perf_event", "custom__generic_tracepoint", "custom_sample", "custom_guard"})
                CHECK_MESSAGE(spec.find_program(name) != nullptr, name);
            CHECK((spec.find_program("custom_off_cpu") != nullptr) == options.off_cpu);
            CHECK((spec.find_program("custom_fork") != nullptr) == (options.off_cpu && options.forked_child));
            REQUIRE(spec.find_map("custom_context_map") != nullptr);
            CHECK(spec.find_map("custom_context_map")->value_size == 8);
            CHECK(spec.find_map("custom_context_map")->max_entries == 1);
        }
    CHECK(external_unit(0).has_value());
    CHECK(external_unit(kHost.arguments - 1).has_value());
    const Result<Unit> beyond = external_unit(8);
    REQUIRE_FALSE(beyond.has_value());
    CHECK(beyond.error().kind == Errc::invalid_argument);
    CHECK(beyond.error().message().find("argument 8") != std::string::npos);
}

// From 64 bytes on a kernel may give a program one stack a CPU, which is the next thread's, too, where a probe is preempted.
TEST_CASE("custom programs: at probes they stay on their thread's own stack") {
    UnitOptions options;
    options.pidns_dev = options.pidns_ino = 5;
    options.unwind = UnwindProgramOptions{};
    options.unwind->has_bpf_loop = options.unwind->has_task_pt_regs = options.unwind->copies = options.unwind->return_probes =
        true;
    options.languages = true;
    const Unit unit = generic_unit(options);
    size_t looked_at = 0;
    for (const Function &function : unit.functions) {
        if (!function.section.empty() && function.name != "custom__generic") continue;
        int lowest = 0;
        for (size_t i = 0; i < function.insns.size(); i += is_wide(function.insns[i]) ? 2 : 1) {
            const Insn &insn = function.insns[i];
            const int base = (insn.code & 7) == 1                           ? insn.src
                             : (insn.code & 7) == 2 || (insn.code & 7) == 3 ? insn.dst
                                                                            : 0; // ldx; st, stx
            if (base == 10) lowest = std::min<int>(lowest, insn.off);
            if (insn.code == 0x07 && insn.imm < 0 && insn.imm > -512) lowest = std::min<int>(lowest, insn.imm); // an address
        }
        CHECK_MESSAGE(lowest >= -48, function.name, lowest);
        ++looked_at;
    }
    CHECK(looked_at >= 3); // it, a round of the walk, one of the frames
}

// example/custom_trace.h writes these by number.
static_assert(offsetof(Counts, entered) == 3 * 8 && offsetof(Counts, lost_ring_full) == 8 * 8 && sizeof(Counts) == 14 * 8);
static_assert(offsetof(RecordHead, kernel_bytes) == 20 && offsetof(RecordHead, ending) == 28 && sizeof(RecordHead) == 48 &&
              offsetof(CustomFields, caller) == 8 && offsetof(CustomFields, flags) == 16 && offsetof(CustomFields, origin) == 20);

TEST_CASE("custom records: the fields are behind the head") {
    alignas(8) std::byte bytes[sizeof(Record)] = {};
    const RecordHead head{1, 2, 3, 4, 0, 0, 5, "six"};
    const CustomFields own{7, 8, 9, Origin::off_cpu};
    std::memcpy(bytes, &head, sizeof head);
    std::memcpy(bytes + sizeof head, &own, sizeof own);
    const std::optional<CustomTrace> trace = parse_trace(bytes);
    REQUIRE(trace);
    const Record &it = trace->head;
    CHECK(it.t_ns == 1);
    CHECK(it.tid == 3);
    CHECK(it.ending == 5);
    CHECK(std::strcmp(it.comm, "six") == 0);
    CHECK(it.context == 7);
    CHECK(it.caller == 8);
    CHECK(it.flags == 9);
    CHECK(it.origin == Origin::off_cpu);
}

TEST_CASE("custom records: cut at every byte") {
    alignas(8) std::byte bytes[sizeof(Record) + 5 * 8] = {};
    Record head{};
    head.kernel_bytes = 16;
    head.user_bytes = 24;
    head.origin = Origin::custom;
    std::memset(head.comm, 'x', sizeof head.comm); // without its end
    std::memcpy(bytes, &head, sizeof head);
    for (size_t size = 0; size < sizeof bytes; ++size) CHECK_FALSE(parse_trace({bytes, size}).has_value());
    const std::optional<CustomTrace> trace = parse_trace(bytes);
    REQUIRE(trace);
    CHECK(trace->kernel.size() == 2);
    CHECK(trace->user.size() == 3);
    CHECK(std::strlen(trace->head.comm) == sizeof head.comm - 1);
    head.user_bytes = 20; // no whole number of addresses
    std::memcpy(bytes, &head, sizeof head);
    CHECK_FALSE(parse_trace(bytes).has_value());
    head.user_bytes = -14;
    head.origin = static_cast<Origin>(4);
    std::memcpy(bytes, &head, sizeof head);
    CHECK_FALSE(parse_trace(bytes).has_value());
    head.origin = Origin::sampling;
    std::memcpy(bytes, &head, sizeof head);
    REQUIRE(parse_trace(bytes));
    CHECK(parse_trace(bytes)->user.empty());
}

TEST_CASE("custom stacks: a caller is put in where it is missing, and only there") {
    const uint64_t there[] = {0x5000, 0x6000, 0x7000}, alone[] = {0x5000};
    CHECK_FALSE(lacks_caller(there, 0x6000, false)); // the kernel put it in
    CHECK(lacks_caller(there, 0x6500, false));
    CHECK(lacks_caller(there, 0x6000, true)); // it never does here: a function that calls itself
    CHECK(lacks_caller(alone, 0x6000, false));
    CHECK_FALSE(lacks_caller(there, 0, false)); // unreadable
    CHECK_FALSE(lacks_caller(there, 0xfff, false));
    CHECK_FALSE(lacks_caller({}, 0x6000, false));
}

TEST_CASE("custom stacks: a hash of files and offsets, not of addresses") {
    const auto frame = [](uint64_t address, std::string build_id, std::string module, uint64_t offset) {
        Frame out;
        out.address = address;
        out.build_id = std::move(build_id);
        out.module = std::move(module);
        out.file_offset = offset;
        return std::make_shared<const Frame>(std::move(out));
    };
    const std::vector<FramePtr> one{frame(0x1000, "aa", "/a", 0x10), frame(0x2000, "", "/b", 0x20)};
    const std::string hash = stack_hash({}, one);
    CHECK(hash.size() == 32);
    CHECK(hash.find_first_not_of("0123456789abcdef") == std::string::npos);
    CHECK(stack_hash({}, {frame(0x9000, "aa", "/moved", 0x10), frame(0x8000, "", "/b", 0x20)}) == hash);
    CHECK(stack_hash({}, {frame(0x1000, "aa", "/a", 0x11), frame(0x2000, "", "/b", 0x20)}) != hash);
    CHECK(stack_hash({}, {one[1], one[0]}) != hash);
    CHECK(stack_hash({}, {one[0]}) != hash);
    CHECK(stack_hash({one[0]}, {one[1]}) != hash);
    // What lies beyond main() and what was inlined is no part of it.
    auto main = std::make_shared<Frame>(*frame(0x3000, "cc", "/c", 0x30)), within = std::make_shared<Frame>(*one[0]);
    main->symbol = "main";
    within->inlined = true;
    CHECK(stack_hash({}, {one[0], main, one[1]}) == stack_hash({}, {one[0], main}));
    CHECK(stack_hash({}, {within, one[0], one[1]}) == hash);
    CHECK(stack_hash({}, {}) == "0880945b4fab1be95aa0733055273845"); // FNV-1a 128 of two zero bytes
}
