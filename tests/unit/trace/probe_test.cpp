// Probes as people write them.
#include "programs/trace/probe.h"

#include "runtime/base/format.h"
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

TEST_CASE("trace probe: places inside of functions") {
    const auto offset = [](std::string_view text) {
        const Result<ProbeSpec> spec = parse_probe(text);
        return spec ? format("{} {}+{}", probe_kind_name(spec->kind), spec->pattern, spec->offset) : spec.error().context;
    };
    CHECK(offset("uprobe:./p:f+16") == "uprobe f+16");
    CHECK(offset("uprobe:./p:f+0x10") == "uprobe f+16");
    CHECK(offset("uprobe:./p:ns::f(int)+4") == "uprobe ns::f(int)+4");
    CHECK(offset("kprobe:vfs_read+8") == "kprobe vfs_read+8");
    CHECK(offset("vfs_read+8") == "kprobe vfs_read+8"); // what other way there is has none
    CHECK(offset("vfs_read+0") == "kprobe vfs_read+0");
    for (const char *name : {"A::operator+", "operator++", "operator+=", "f+", "f+0x", "f+1g", "f+99999999999999999999"})
        CHECK(offset(format("uprobe:./p:{}", name)) == format("uprobe {}+0", name));
    CHECK(offset("kprobe:vfs_*+4").find("beginning of one function") != std::string::npos);
    CHECK(offset("kretprobe:vfs_read+4") == "probe \"kretprobe:vfs_read+4\": kretprobe has no offsets");
    CHECK(offset("fentry:vfs_read+4") == "probe \"fentry:vfs_read+4\": fentry has no offsets");
    CHECK(offset("uretprobe:./p:f+4") == "probe \"uretprobe:./p:f+4\": uretprobe has no offsets");
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
