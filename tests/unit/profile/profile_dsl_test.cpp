// The DSL twin of the profile program: every configuration builds, and only what is switched on is in it.
#include "programs/profile/profile_dsl.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "asm/helpers.h"
#include "asm/map_types.h"
#include "asm/print.h"
#include "asm/program_types.h"
#include "programs/profile/program.h"
#include "runtime/base/format.h"
#include "runtime/object/unit_object.h"
#include "tests/support/profile_configs.h"
#include "tests/support/profile_in_c.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

std::vector<std::string> helpers_called(const Unit &unit) {
    std::vector<std::string> out;
    const std::vector<Insn> &insns = unit.functions.at(0).insns;
    for (size_t i = 0; i < insns.size(); i += is_wide(insns[i]) ? 2 : 1)
        if (insns[i].code == 0x85) out.emplace_back(find_helper(int64_t{insns[i].imm})->name);
    return out;
}

std::set<std::string> map_names(const Unit &unit) {
    std::set<std::string> out;
    for (const MapDef &map : unit.maps) out.insert(map.name);
    return out;
}

} // namespace

TEST_CASE("profile twin: every configuration builds and becomes a spec") {
    test::each_profile_config([](const ProfileConfig &config, unsigned number) {
        INFO(number);
        Unit unit = profile_unit(config);
        auto spec = object_of(unit);
        REQUIRE(spec);
        REQUIRE(spec->programs.size() == 1);
        CHECK(spec->programs[0].name == "profile");
        CHECK(spec->programs[0].section == (config.tracepoint ? "tracepoint" : "perf_event"));
        CHECK((map_names(unit).count("profile_pids") == 1) == (config.filter_pid != PROFILE_PIDS_ANY));
        CHECK((map_names(unit).count("profile_cgroup") == 1) == (config.filter_cgroup != 0));
    });
}

TEST_CASE("profile twin: every configuration builds with counting, too") {
    test::each_profile_config([](const ProfileConfig &config, unsigned number) {
        INFO(number);
        profile::ProgramOptions options;
        options.config = config;
        options.counting.emplace();
        options.counting->stacks = 100;
        options.counting->by_thread = number % 2 != 0;
        if (number % 3 == 0) options.unwind.emplace();
        auto spec = profile::program_spec(options);
        REQUIRE(spec);
        const MapSpec *stacks = spec->find_map("counted_stacks");
        REQUIRE(stacks);
        REQUIRE(stacks->inner);
        CHECK(stacks->inner->max_entries == 100);
        CHECK(stacks->inner->key_size == sizeof(ProfileRecord::key));
        CHECK(stacks->inner->value_size == sizeof(StackCount));
    });
    CHECK(map_names(profile_unit({})).count("counted_stacks") == 0);
}

TEST_CASE("profile twin: what is switched off isn't there") {
    ProfileConfig config{};
    using Names = std::vector<std::string>;
    Names send, rings{"profile_counts"};
    for (int i = 0; i < PROFILE_RINGS; ++i) {
        send.insert(send.end(), {"ringbuf_query", "ringbuf_output"});
        rings.push_back(format("profile_ring_{}", i));
    }
    Names least{"map_lookup_elem", "get_current_pid_tgid", "ktime_get_ns", "get_smp_processor_id", "get_current_comm"};
    least.insert(least.end(), send.begin(), send.end());
    CHECK(helpers_called(profile_unit(config)) == least);
    CHECK(map_names(profile_unit(config)) == std::set<std::string>(rings.begin(), rings.end()));
    config = {1, 1, 1, PROFILE_PIDS_WANTED, 1, 1 << 16, 0, 0, {}, 4, 4026531836};
    Names most{
        "map_lookup_elem", "get_current_pid_tgid", "get_ns_current_pid_tgid", "map_lookup_elem", "current_task_under_cgroup",
        "ktime_get_ns",    "get_smp_processor_id", "get_current_comm",        "get_stack",       "get_stack"};
    most.insert(most.end(), send.begin(), send.end());
    CHECK(helpers_called(profile_unit(config)) == most);
}

TEST_CASE("profile twin: maps as the C program has them") {
    const auto by_name = [](const ObjectSpec &spec) {
        std::map<std::string, const MapSpec *> out;
        for (const MapSpec &map : spec.maps)
            if (map.name.starts_with("profile_") && map.name.find('.') == std::string::npos) out[map.name] = &map;
        return out;
    };
    profile::ProgramOptions options;
    options.config = {1, 1, 1, PROFILE_PIDS_WANTED, 1, 0, 0, 0, {}, 0, 0};
    options.cpus = 3;
    options.pids = 7;
    auto dsl = profile::program_spec(options);
    REQUIRE(dsl);
    const auto maps = by_name(*dsl);
    CHECK(maps.size() == PROFILE_RINGS + 3);
    REQUIRE(maps.count("profile_counts") == 1);
    CHECK(map_kind_name(maps.at("profile_counts")->type) == "percpu_array");
    CHECK(maps.at("profile_counts")->value_size == sizeof(ProfileCpu));
    const std::optional<ObjectSpec> in_c = test::profile_in_c();
    if (!in_c) return; // not in this build
    auto c = profile::program_spec(*in_c, options);
    REQUIRE(c);
    const auto twins = by_name(*c);
    CHECK(twins.size() == maps.size());
    for (const auto &[name, map] : maps) {
        INFO(name);
        REQUIRE(twins.count(name) == 1);
        const MapSpec &twin = *twins.at(name);
        CHECK(map->type == twin.type);
        CHECK(map->key_size == twin.key_size);
        CHECK(map->value_size == twin.value_size);
        CHECK(map->max_entries == twin.max_entries);
    }
}

TEST_CASE("profile: an object of one's own is told what it lacks") {
    const std::optional<ObjectSpec> in_c = test::profile_in_c();
    if (!in_c) return; // not in this build
    profile::ProgramOptions options;
    options.config.filter_pid = PROFILE_PIDS_WANTED;
    const auto refused = [&](const std::function<void(ObjectSpec &)> &change) {
        ObjectSpec own = *in_c;
        change(own);
        auto spec = profile::program_spec(own, options);
        REQUIRE(!spec);
        CHECK(spec.error().kind == Errc::bad_input);
        CHECK(spec.error().hint.find("profile.bpf.c") != std::string::npos);
        return spec.error().context;
    };
    const auto without_map = [](std::string_view name) {
        return [name](ObjectSpec &own) { std::erase_if(own.maps, [&](const MapSpec &map) { return map.name == name; }); };
    };
    CHECK(profile::program_spec(*in_c, options));
    CHECK(refused([](ObjectSpec &own) { own.programs.clear(); }) == "profile.bpf.o: there is no program profile");
    CHECK(refused([](ObjectSpec &own) { own.programs[0].type = uint32_t(ProgramType::XDP), own.programs[0].section = "xdp"; }) ==
          "profile.bpf.o: program profile is in section \"xdp\"; it has to be in \"perf_event\"");
    CHECK(refused(without_map("profile_counts")) == "profile.bpf.o: there is no map profile_counts");
    CHECK(refused(without_map("profile_pids")) == "profile.bpf.o: there is no map profile_pids");
    CHECK(refused(without_map("profile_ring_7")) == "profile.bpf.o: there is no map profile_ring_7");
    CHECK(refused([](ObjectSpec &own) { own.find_map("profile_counts")->value_size = 8; }) ==
          format("profile.bpf.o: map profile_counts has type percpu_array, keys of 4 bytes and values of 8; it needs type "
                 "percpu_array, 4 "
                 "and {}",
                 sizeof(ProfileCpu)));
    CHECK(refused([](ObjectSpec &own) { own.find_map("profile_ring_0")->type = uint32_t(MapType::ARRAY); }) ==
          "profile.bpf.o: map profile_ring_0 has type array; it needs ringbuf");
    options.config.filter_pid = PROFILE_PIDS_ANY;
    ObjectSpec fewer = *in_c;
    without_map("profile_pids")(fewer);
    without_map("profile_cgroup")(fewer);
    CHECK(profile::program_spec(fewer, options)); // nobody asks for them
}
