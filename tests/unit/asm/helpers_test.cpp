// The table of helpers: dense, unique, and the builder's view of it.
#include "asm/helpers.h"

#include <set>
#include <string>

#include "tests/support/test.h"

using namespace rawbpf;

static_assert(decltype(helper::map_lookup_elem)::id == 1 && decltype(helper::map_lookup_elem)::most == 2);
static_assert(decltype(helper::ktime_get_ns)::most == 0);
static_assert(decltype(helper::perf_event_output)::least == 5);
static_assert(decltype(helper::trace_printk)::least == 2 && decltype(helper::trace_printk)::most == 5);
static_assert(decltype(helper::cgrp_storage_delete)::id == 211);

TEST_CASE("helpers: ids run from 1 without a hole, names are unique, versions never go back") {
    std::set<std::string> names;
    int64_t id = 0;
    KernelVersion last{3, 18};
    for (const HelperInfo &helper : all_helpers()) {
        INFO(std::string(helper.name));
        CHECK(helper.id == ++id);
        CHECK(find_helper(id) == &helper);
        CHECK(find_helper(helper.name) == &helper);
        CHECK(names.insert(std::string(helper.name)).second);
        const bool not_older =
            helper.since.major > last.major || (helper.since.major == last.major && helper.since.minor >= last.minor);
        CHECK(not_older);
        last = helper.since;
        CHECK(detail::count_arguments(helper.arguments) <= 5);
    }
    CHECK(id >= 211);
    CHECK(find_helper(int64_t{0}) == nullptr);
    CHECK(find_helper(id + 1) == nullptr);
    CHECK(find_helper(int64_t{-1}) == nullptr);
}

TEST_CASE("helpers: facts that can be looked up elsewhere") {
    const HelperInfo *get_stack = find_helper("bpf_get_stack");
    REQUIRE(get_stack != nullptr);
    CHECK(get_stack->id == 67);
    CHECK(get_stack->gpl_only);
    CHECK(get_stack->since == KernelVersion{4, 18});
    CHECK(get_stack->arguments == "(void *ctx, void *buf, __u32 size, __u64 flags)");
    CHECK(get_stack->prototype() == "long bpf_get_stack(void *ctx, void *buf, __u32 size, __u64 flags)");
    CHECK(find_helper("map_lookup_elem")->prototype() == "void *bpf_map_lookup_elem(void *map, const void *key)");
    CHECK(get_stack->argument(1) == "void *ctx");
    CHECK(get_stack->argument(3) == "__u32 size");
    CHECK(get_stack->argument(4) == "__u64 flags");
    CHECK(get_stack->argument(5) == "");
    CHECK(find_helper("ktime_get_ns")->argument(1) == "");
    CHECK(find_helper("ringbuf_reserve")->since == KernelVersion{5, 8});
    CHECK(find_helper("ringbuf_submit")->returns == "void");
    CHECK_FALSE(find_helper("ktime_get_ns")->gpl_only);
    CHECK(find_helper("no_such_helper") == nullptr);
    CHECK(find_helper("sys_bpf")->id == 166);
}

TEST_CASE("helpers: the arguments of each are its list") {
    for (const HelperInfo &helper : all_helpers()) {
        CAPTURE(helper.name);
        std::string list;
        for (int n = 1; n <= 6 && !helper.argument(n).empty(); ++n) {
            if (n > 1) list += ", ";
            list += helper.argument(n);
        }
        CHECK("(" + (list.empty() ? "void" : list) + ")" == helper.arguments);
    }
}
