// A place as a person writes it, as the name of a section.
#include "programs/running/adopt.h"

#include <string_view>
#include <utility>

#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("running: places of `rawbpf attach` as names of sections") {
    constexpr std::pair<std::string_view, std::string_view> kPlaces[] = {
        {"kprobe:vfs_read", "kprobe/vfs_read"},
        {"kprobe/vfs_read", "kprobe/vfs_read"},
        {"tracepoint:sched:sched_switch", "tracepoint/sched/sched_switch"},
        {"tracepoint/sched/sched_switch", "tracepoint/sched/sched_switch"},
        {"raw_tp:sched_switch", "raw_tp/sched_switch"},
        {"uprobe:/usr/bin/x:main", "uprobe//usr/bin/x:main"},
        {"uprobe//usr/bin/x:main", "uprobe//usr/bin/x:main"},
        {"xdp", "xdp"},
        {"nothing:x", "nothing:x"},
        {":", ":"},
        {"", ""},
    };
    for (const auto &place : kPlaces) CHECK(running::section_of_place(place.first) == place.second);
}
