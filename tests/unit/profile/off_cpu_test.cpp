// The off-CPU program in every configuration, its records, and how waits are shown: what counts of them is time.
#include "programs/profile/off_cpu.h"

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "programs/capture/off_cpu_dsl.h"
#include "programs/processes/stacks.h"
#include "programs/profile/begun_waits.h"
#include "programs/profile/off_cpu_dsl.h"
#include "programs/render/json_line.h"
#include "programs/render/ledger.h"
#include "programs/render/tool_formats.h"
#include "runtime/object/unit_object.h"
#include "tests/support/profile_configs.h"
#include "tests/support/test.h"
#include "tests/unit/render/samples.h"

using namespace rawbpf;

namespace {

std::set<std::string> map_names(const Unit &unit) {
    std::set<std::string> out;
    for (const MapDef &map : unit.maps) out.insert(map.name);
    return out;
}

std::string render_waits(render::Format format, const std::vector<std::pair<NamedSample, uint64_t>> &samples) {
    std::string out;
    render::Writer writer(out);
    auto renderer = render::make_any_renderer(format, {}, writer);
    if (!renderer) return "error: " + renderer.error().message();
    RunInfo run = test::run_info();
    run.event = kWaits;
    run.frequency = 0;
    (*renderer)->begin(run);
    Ledger ledger;
    for (const auto &[sample, count] : samples) {
        (*renderer)->sample(sample, sample.weight);
        ledger.shown += count;
    }
    (*renderer)->end(ledger);
    return out;
}

NamedSample wait(uint64_t ns, const std::string &function = "oc_nap") {
    NamedSample out =
        test::stack("split", {test::user_frame("main"), test::user_frame(function)}, {test::kernel_frame("schedule")});
    out.weight = ns;
    return out;
}

} // namespace

TEST_CASE("profile off-cpu: every configuration builds and becomes a spec") {
    test::each_profile_config([](const ProfileConfig &config, unsigned number) {
        if (config.skip_idle) return;
        INFO(number);
        OffCpuProgram options;
        options.config = config;
        options.follow = config.filter_pid == PROFILE_PIDS_LEFT_OUT;
        if (options.follow) options.config.filter_pid = PROFILE_PIDS_WANTED;
        options.wide_state = number % 2;
        options.config.wakeup_bytes = number % 3 ? 64 << 10 : 0; // a ring that holds copies, or none
        options.min_wait_ns = number % 3 ? uint64_t{1} << 40 : 0;
        for (const bool unwind : {false, true}) {
            UnwindProgramOptions walk;
            walk.depth = number % 2 ? 255 : 100;
            walk.has_bpf_loop = number % 4 != 0;
            walk.has_task_pt_regs = number % 8 != 0;
            walk.copies = number % 5 != 0;
            const bool languages = unwind && walk.has_bpf_loop && number % 3 != 0;
            const LabelParts parts;
            const bool labels = number % 7 < 3;
            Unit unit = off_cpu_unit(options, unwind ? &walk : nullptr, languages, labels ? &parts : nullptr);
            auto spec = object_of(unit);
            REQUIRE(spec);
            const ProgramSpec *program = spec->find_program("profile");
            REQUIRE(program);
            CHECK(program->section == "raw_tp/sched_switch");
            CHECK((spec->find_program("profile_fork") != nullptr) == options.follow);
            CHECK((spec->find_program("profile_exit") != nullptr) == options.follow);
            const std::set<std::string> names = map_names(unit);
            CHECK((names.count("profile_followed") == 1) == options.follow);
            CHECK((names.count("profile_pids") == 1) == (options.config.filter_pid != PROFILE_PIDS_ANY));
            CHECK((names.count("profile_cgroup") == 1) == (config.filter_cgroup != 0));
            CHECK((names.count("unwind_processes") == 1) == unwind);
            CHECK((names.count("profile_copies") == 1) == (unwind && walk.copies && options.config.wakeup_bytes != 0));
            const MapSpec *off = spec->find_map("profile_off");
            REQUIRE(off);
            CHECK(off->max_entries == OffCpuProgram{}.threads);
            const uint32_t frames = 127 + (unwind && walk.depth > 127 ? walk.depth : 127);
            CHECK((names.count("label_processes") == 1) == labels);
            const uint32_t listed = (languages ? 8 * 2 * LANGUAGE_FRAMES : 0) + (labels ? 8 * LABEL_ROOM_WORDS : 0);
            CHECK(off->value_size ==
                  waiting_record_at(unwind ? &walk : nullptr) + sizeof(OffCpuHead) + sizeof(ProfileRecord) + 8 * frames + listed);
            CHECK((names.count("language_processes") == 1) == languages);
        }
    });
}

TEST_CASE("profile off-cpu: a record is taken apart, and cut anywhere it is refused") {
    alignas(8) std::byte bytes[sizeof(OffCpuHead) + sizeof(ProfileRecord) + 24] = {};
    const OffCpuHead head{9000, 4000};
    ProfileRecord record{};
    record.head.t_ns = 5000;
    record.head.pid = 7;
    record.head.kernel_bytes = 8;
    record.head.user_bytes = 16;
    const uint64_t frames[] = {1, 2, 3};
    std::memcpy(bytes, &head, sizeof head);
    std::memcpy(bytes + sizeof head, &record, sizeof record);
    std::memcpy(bytes + sizeof head + sizeof record, frames, sizeof frames);
    const auto off_cpu = profile::make_off_cpu(0);
    const auto wait = off_cpu->parse(Bytes(bytes));
    REQUIRE(wait);
    CHECK(wait->left_ns == 5000);
    CHECK(wait->waited_ns == 4000);
    CHECK(wait->sample.head.t_ns == 9000);
    CHECK(wait->sample.head.pid == 7);
    CHECK(wait->sample.kernel.size() == 1);
    CHECK(wait->sample.user.size() == 2);
    for (size_t size = 0; size < sizeof bytes; ++size) CHECK(!off_cpu->parse(Bytes(bytes, size)));
}

TEST_CASE("profile off-cpu: the stack of a wait that has only begun is kept until the wait is over") {
    alignas(8) std::byte bytes[sizeof(OffCpuHead) + sizeof(ProfileRecord) + sizeof(UnwindRegisters) + 64] = {};
    const OffCpuHead head{5000, OFF_CPU_STACK};
    ProfileRecord record{};
    record.head.t_ns = 5000;
    record.head.tid = 8;
    record.head.ending = UNWIND_ENDED_NO_PROCESS | UNWIND_COPIED;
    std::memcpy(bytes, &head, sizeof head);
    std::memcpy(bytes + sizeof head, &record, sizeof record);
    const auto begun = profile::make_off_cpu(0)->parse(Bytes(bytes));
    REQUIRE(begun);
    CHECK(begun->waited_ns == 0);
    CHECK(begun->left_ns == 5000);
    REQUIRE(begun->sample.copy);
    CHECK(begun->sample.copy->bytes.size() == 64);

    profile::BegunWaits waits;
    profile::RawSample sample = begun->sample;
    waits.keep(sample); // nothing came of the copy
    CHECK(!waits.take(8, 5000));
    const uint64_t frames[] = {1, 2};
    sample.user = frames;
    sample.head.ending = UNWIND_ENDED_ROOT | UNWIND_TABLES;
    waits.keep(sample);
    CHECK(!waits.take(9, 5000)); // another thread's
    const profile::BegunWaits::Stack *stack = waits.take(8, 5000);
    REQUIRE(stack);
    CHECK(stack->frames == std::vector<uint64_t>{1, 2});
    CHECK(stack->ending == (UNWIND_ENDED_ROOT | UNWIND_TABLES));
    CHECK(!waits.take(8, 5000)); // once
    waits.keep(sample);
    CHECK(!waits.take(8, 6000)); // another wait of the thread's, and that of 5000 is over
    CHECK(!waits.take(8, 5000));
}

TEST_CASE("profile off-cpu: equal waits are counted, and their times added") {
    processes::CountTable table;
    processes::InternedSample sample;
    sample.pid = 3;
    for (const uint64_t ns : {5, 7, 11}) {
        sample.weight = ns;
        table.add(sample);
    }
    REQUIRE(table.entries().size() == 1);
    CHECK(table.entries()[0].count == 3);
    CHECK(table.entries()[0].weight == 23);
}

TEST_CASE("render: waits count by their time") {
    CHECK(render_waits(render::Format::folded, {{wait(1'500'000), 3}, {wait(400'600, "lock"), 1}}) ==
          "split;main;lock;schedule_[k] 401\nsplit;main;oc_nap;schedule_[k] 1500\n");
    const std::string top = render_waits(render::Format::top, {{wait(3'000'000), 3}, {wait(1'000'000, "lock"), 1}});
    CHECK(top.find("LONGEST STACKS") != std::string::npos);
    CHECK(top.find(" 3.0 ms   75.0 %") != std::string::npos);
    CHECK(render_waits(render::Format::top, {}) == "no waits\n");
    const std::string svg = render_waits(render::Format::svg, {{wait(3'000'000), 3}, {wait(1'000'000, "lock"), 1}});
    CHECK(svg.find(">Off-CPU flame graph: ") != std::string::npos);
    CHECK(svg.find("4.0 ms in 4 waits") != std::string::npos);
    CHECK(svg.find("3.0 ms, 75.00 %") != std::string::npos);
    const std::string table = render_waits(render::Format::table, {{wait(1'234'567), 1}});
    CHECK(table.find("UStackSz  WAITED_us\n") != std::string::npos);
    CHECK(table.find("16        1234.567\n") != std::string::npos);
    const std::string script = render_waits(render::Format::perf_script, {{wait(1'234'567), 1}});
    CHECK(script.find("   1234567 off-cpu: \n") != std::string::npos);
    if (render::writes_json()) {
        CHECK(render_waits(render::Format::json, {{wait(1'234'567), 1}}).find("\"weight\":1234567,") != std::string::npos);
        const std::string speedscope = render_waits(render::Format::speedscope, {{wait(1'234'567), 1}});
        CHECK(speedscope.find("\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":1234567") != std::string::npos);
    }
}

TEST_CASE("render: the ledger of waits") {
    RunInfo run = test::run_info();
    run.event = kWaits;
    run.frequency = 0;
    Ledger ledger;
    ledger.fired = 12;
    ledger.shown = 10;
    ledger.filtered = 2;
    ledger.waits = {{"still_waiting", 1}, {"too_short", 2}, {"preempted", 30}};
    render::RunCost cost;
    cost.bpf_runs = 1000;
    cost.bpf_ns = 500'000;
    const std::string text = render::ledger_text("rawbpf profile", run, ledger, cost, "wait");
    CHECK(text.find("rawbpf profile: 10 waits\n") == 0);
    CHECK(text.find("  of waits    preempted 30, too short 2, still waiting 1\n") != std::string::npos);
    CHECK(text.find("500 ns a switch in BPF") != std::string::npos);
}
