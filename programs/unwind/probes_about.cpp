// Two kinds of probes can be seen from outside: those whose BPF program is loaded, and those that tracefs lists. A probe of
// perf_event_open(2) without either, as `perf stat` has it, can't be told from its absence.
#include "programs/unwind/probes_about.h"

#include <string>

#include <linux/bpf.h>

#include "runtime/kernel/each_program.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0 {

namespace {

constexpr int kMostPrograms = 1024; // more: whoever has so many has probes, too

// Kprobes' programs are of that kind as well, and which a program is isn't told: then there may be some.
bool program_may_stand_there() {
    int seen = 0;
    bool may = false;
    const Result<void> all = each_program([&](uint32_t, Fd, const sys::ProgInfo &info) {
        may = info.type == BPF_PROG_TYPE_KPROBE || ++seen == kMostPrograms;
        return !may;
    });
    return may || !all;
}

// As perf-probe(1) makes them. Where tracefs isn't mounted nobody has made any by its files.
bool listed() {
    for (const char *path : {"/sys/kernel/tracing/uprobe_events", "/sys/kernel/debug/tracing/uprobe_events"})
        if (const Result<std::string> list = sys::read_file(path)) return !list->empty(); // one list, at both paths
    return false;
}

} // namespace

bool probes_may_be_about() {
    sys::Because why("does anybody probe programs? Then stacks may lead to the kernel's own addresses");
    return program_may_stand_there() || listed();
}

} // namespace rawbpf::inline v0
