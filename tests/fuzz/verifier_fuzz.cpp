// Our verifier on any instructions, and what explains it on any log: no crash, and an end in bounded time.
//
//      first byte   bit 0: the rest is instructions, or a log of the program below
//                   bits 1 to 3: the program's type; bit 4: memory instead of a context
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "asm/assemble.h"
#include "asm/map_types.h"
#include "programs/explain/explanation.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/uapi.h"
#include "runtime/verifier/follow.h"
#include "runtime/verifier/verify.h"

using namespace rawbpf;

namespace {

constexpr std::string_view kProgram =
    ".map m hash key 4 value 16 entries 4\n.program p \"tc\"\nr6 = *(u32 *)(r1 + 0)\n*(u32 *)(r10 - 4) = r6\nr1 = m ll\nr2 = "
    "r10\n"
    "r2 += -4\ncall bpf_map_lookup_elem\nif r0 == 0 goto out\nr1 = r6\ncall f\nlock *(u64 *)(r0 + 0) += r6\nout: r0 = 0\nexit\n"
    ".function f\nr0 = r1\nexit\n";

const ObjectSpec &the_program() {
    static const ObjectSpec spec = [] {
        Assembled made = assemble(kProgram);
        if (!made) abort();
        Result<ObjectSpec> out = object_of(made.unit);
        if (!out) abort();
        return std::move(*out);
    }();
    return spec;
}

void show(const ObjectSpec &spec, explain::Trace trace) {
    const explain::Explanation e = explain::explain(spec, spec.programs[0], std::move(trace), nullptr);
    std::string out = explain::short_text(e);
    explain::append_text(out, e);
    explain::append_json_lines(out, e);
    explain::append_page(out, e);
    if (out.empty()) abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const uint8_t choice = data[0];
    const std::string_view rest(reinterpret_cast<const char *>(data) + 1, size - 1);
    if (choice & 1) {
        if (Result<explain::Trace> trace = explain::trace_of_log(rest, the_program().programs[0]))
            show(the_program(), std::move(*trace));
        return 0;
    }
    constexpr size_t kMost = 256; // instructions
    constexpr uint32_t kTypes[] = {BPF_PROG_TYPE_SOCKET_FILTER,  BPF_PROG_TYPE_KPROBE,    BPF_PROG_TYPE_SCHED_CLS,
                                   BPF_PROG_TYPE_TRACEPOINT,     BPF_PROG_TYPE_XDP,       BPF_PROG_TYPE_PERF_EVENT,
                                   BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_PROG_TYPE_CGROUP_SKB};
    ObjectSpec spec;
    spec.name = "fuzz";
    spec.license = "GPL";
    spec.maps = the_program().maps;
    ProgramSpec &program = spec.programs.emplace_back();
    program.name = "main";
    program.type = kTypes[choice >> 1 & 7];
    program.insns.resize(std::min(rest.size() / sizeof(Insn), kMost));
    if (program.insns.empty()) return 0;
    std::memcpy(static_cast<void *>(program.insns.data()), rest.data(), program.insns.size() * sizeof(Insn));
    for (size_t n = 0; n + 1 < program.insns.size(); ++n) // ld_imm64 of a map
        if (program.insns[n].code == 0x18 && program.insns[n].src == 1)
            program.fixups.emplace_back().insn = static_cast<uint32_t>(n); // of the first map
    verifier::VerifyOptions options;
    options.most_steps = 5'000;
    if (choice & 16) options.memory = 32;
    const verifier::Verdict verdict = verifier::verify(spec, 0, options);
    if (verdict.placed && verdict.insn >= program.insns.size()) abort();
    show(spec, explain::trace_of(spec, program, verdict));
    // A run that goes straight on, as far as the verifier follows.
    verifier::Follower follower(spec, 0, options);
    const uint64_t registers[11] = {};
    for (uint32_t n = 1; n < 64 && follower.state(); ++n)
        follower.advance(static_cast<uint32_t>(follower.state()->insn + (is_wide(program.insns[follower.state()->insn]) ? 2 : 1)),
                         0, registers);
    for (int n = 0; n < 70; ++n) {
        follower.back();
        (void)follower.state();
    }
    return 0;
}
