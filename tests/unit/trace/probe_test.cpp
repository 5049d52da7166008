// Probes as people write them.
#include "programs/trace/probe.h"

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;

namespace {
std::string read(std::string_view text) {
    Result<ProbeSpec> spec = parse_probe(text);
    if (!spec) return spec.error().context;
    return std::string(probe_kind_name(spec->kind)) + "|" + spec->file + "|" + spec->category + "|" + spec->pattern;
}
} // namespace

TEST_CASE("trace probe: kinds and their parts") {
    CHECK(read("vfs_*") == "function|||vfs_*");
    CHECK(read("kprobe:vfs_read") == "kprobe|||vfs_read");
    CHECK(read("kr:vfs_read") == "kretprobe|||vfs_read");
    CHECK(read("fentry:tcp_*") == "fentry|||tcp_*");
    CHECK(read("uprobe:/bin/bash:readline") == "uprobe|/bin/bash||readline");
    CHECK(read("uprobe:libc:malloc") == "uprobe|libc||malloc");
    CHECK(read("uretprobe:./a:b:f") == "uretprobe|./a:b||f");
    CHECK(read("uprobe:./prog:std::sort*") == "uprobe|./prog||std::sort*");
    CHECK(read("uprobe:./prog:0x1136") == "uprobe|./prog||0x1136");
    CHECK(read("tracepoint:sched:sched_*") == "tracepoint||sched|sched_*");
    CHECK(read("tracepoint:sched/sched_switch") == "tracepoint||sched|sched_switch");
    CHECK(read("raw_tp:sched_switch") == "raw_tp|||sched_switch");
    CHECK(read("syscall:open*") == "syscall|||open*");
}

TEST_CASE("trace probe: what is wrong is said") {
    CHECK(read("") == "a probe without a name");
    CHECK(read("/bin/bash") == "probe \"/bin/bash\": a path alone");
    CHECK(read("kpobe:x") == "probe \"kpobe:x\": there is no kind of probe called kpobe");
    CHECK(read("kprobe:") == "probe \"kprobe:\": not of the form kprobe:GLOB");
    CHECK(read("uprobe:malloc") == "probe \"uprobe:malloc\": not of the form uprobe:PATH:GLOB");
    CHECK(read("uprobe:/bin/sh:") == "probe \"uprobe:/bin/sh:\": not of the form uprobe:PATH:GLOB");
    CHECK(read("tracepoint:sched") == "probe \"tracepoint:sched\": not of the form tracepoint:CATEGORY:GLOB");
    CHECK(read("syscall:a:b") == "probe \"syscall:a:b\": not of the form syscall:GLOB");
}
