#include "programs/unwind/probes_about.h"

#include <cerrno>
#include <string>

#include <linux/bpf.h>

#include "runtime/sys/bpf.h"
#include "runtime/sys/choke.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0 {

namespace {

constexpr int kMostPrograms = 1024; // more: whoever has so many has probes, too

// Kprobes' programs are of that kind as well, and which a program is isn't told: then there may be some.
bool program_may_stand_there() {
    uint32_t id = 0;
    for (int i = 0; i < kMostPrograms; ++i) {
        const Result<uint32_t> next = sys::next_id(sys::ObjectKind::program, id);
        if (!next) return next.error().os != ENOENT;
        id = *next;
        const Result<Fd> program = sys::fd_by_id(sys::ObjectKind::program, id);
        if (!program && program.error().os == ENOENT) continue; // it has gone
        const Result<sys::ProgInfo> info = program ? sys::prog_info(program->get()) : Unexpected(Error(program.error()));
        if (!info || info->type == BPF_PROG_TYPE_KPROBE) return true;
    }
    return true;
}

// As perf-probe(1) makes them. Where tracefs isn't mounted nobody has made any by its files.
bool listed() {
    for (const char *path : {"/sys/kernel/tracing/uprobe_events", "/sys/kernel/debug/tracing/uprobe_events"})
        if (const Result<std::string> list = sys::read_file(path); list && !list->empty()) return true;
    return false;
}

} // namespace

bool probes_may_be_about() {
    sys::Because why("does anybody probe programs? Then stacks may lead to the kernel's own addresses");
    return program_may_stand_there() || listed();
}

} // namespace rawbpf::inline v0
