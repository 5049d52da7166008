// The DSL twin of the profile program: every configuration builds, and only what is switched on is in it.
#include "programs/profile/profile_dsl.h"

#include <set>
#include <string>
#include <vector>

#include "asm/helpers.h"
#include "asm/print.h"
#include "runtime/object/unit_object.h"
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
    for (unsigned bits = 0; bits < 64; ++bits) {
        INFO(bits);
        ProfileConfig config{};
        config.want_kernel = bits & 1;
        config.want_user = bits >> 1 & 1;
        config.skip_idle = bits >> 2 & 1;
        config.filter_pid = bits >> 3 & 1;
        config.filter_cgroup = bits >> 4 & 1;
        config.pidns_ino = bits & 32 ? 4026531836 : 0;
        config.pidns_dev = 4;
        config.wakeup_bytes = 0xffffffff;
        Unit unit = profile_unit(config);
        auto spec = object_of(unit);
        REQUIRE(spec);
        REQUIRE(spec->programs.size() == 1);
        CHECK(spec->programs[0].name == "profile");
        CHECK(spec->programs[0].section == "perf_event");
        CHECK((map_names(unit).count("profile_pids") == 1) == (config.filter_pid != 0));
        CHECK((map_names(unit).count("profile_cgroup") == 1) == (config.filter_cgroup != 0));
    }
}

TEST_CASE("profile twin: what is switched off isn't there") {
    ProfileConfig config{};
    using Names = std::vector<std::string>;
    CHECK(helpers_called(profile_unit(config)) == Names{"map_lookup_elem", "get_current_pid_tgid", "map_lookup_elem",
                                                        "ktime_get_ns", "get_smp_processor_id", "get_current_comm",
                                                        "ringbuf_query", "ringbuf_output"});
    CHECK(map_names(profile_unit(config)) == std::set<std::string>{"profile_events", "profile_counts", "profile_scratch"});
    config = {1, 1, 1, 1, 1, 1 << 16, 4, 4026531836};
    CHECK(helpers_called(profile_unit(config)) == Names{"map_lookup_elem", "get_current_pid_tgid", "get_ns_current_pid_tgid",
                                                        "map_lookup_elem", "current_task_under_cgroup", "map_lookup_elem",
                                                        "ktime_get_ns", "get_smp_processor_id", "get_current_comm", "get_stack",
                                                        "get_stack", "ringbuf_query", "ringbuf_output"});
}

TEST_CASE("profile twin: maps as the controller and the C program know them") {
    Unit unit = profile_unit({1, 1, 1, 1, 1, 0, 0, 0});
    auto find = [&](std::string_view name) -> const MapDef & {
        for (const MapDef &map : unit.maps)
            if (map.name == name) return map;
        FAIL("no such map");
        return unit.maps.front();
    };
    CHECK(map_type_name(find("profile_events").type) == "ringbuf");
    CHECK(map_type_name(find("profile_counts").type) == "percpu_array");
    CHECK(find("profile_counts").value_size == sizeof(ProfileCounts));
    CHECK(map_type_name(find("profile_scratch").type) == "percpu_array");
    CHECK(find("profile_scratch").value_size == sizeof(ProfileScratch));
    CHECK(map_type_name(find("profile_pids").type) == "hash");
    CHECK(find("profile_pids").key_size == 4);
    CHECK(find("profile_pids").value_size == 1);
    CHECK(map_type_name(find("profile_cgroup").type) == "cgroup_array");
}
