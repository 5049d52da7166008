// BPF_PROG_TEST_RUN with the same interface for every type of program.
//
//      type                    gets                               repeats
//      socket, XDP, tc, ...    a packet of at least 14 bytes      in the kernel, which measures the time of a run
//      raw tracepoint          a context of numbers (5.10)        here, one call each
//      syscall                 a context (5.14)                   here
//
// If a program needs memory, its harness gets it from a map, whatever the context is; the context is then only a placeholder.
// Old packet loads count from behind the 14 bytes of the Ethernet header, so the memory is placed there.
#include "runtime/kernel/test_run.h"

#include <algorithm>
#include <cerrno>

#include "asm/kinds.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/map.h"
#include "runtime/object/harness.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0 {

namespace {

constexpr size_t kEthernet = 14, kLeastPacket = 64;
// So many runs in one call outweigh the call. Our own clock then has fractions of a nanosecond, and leaves out the time in which
// others had the CPU; the kernel's answer is whole nanoseconds.
constexpr uint32_t kRunsToClock = 1000;

/// The programs that the n-th one may go on to, itself included.
std::vector<std::string> reachable(const ObjectSpec &spec, size_t program) {
    std::vector<std::string> names = {spec.programs[program].name};
    for (size_t n = 0; n < names.size(); ++n)
        for (const ProgramSpec &p : spec.programs) {
            if (p.name != names[n]) continue;
            for (const Fixup &fixup : p.fixups) {
                if (fixup.kind != Fixup::Kind::map_fd || spec.maps[fixup.map].type != BPF_MAP_TYPE_PROG_ARRAY) continue;
                for (const MapSpec::Slot &slot : spec.maps[fixup.map].slots)
                    if (std::find(names.begin(), names.end(), slot.target) == names.end()) names.push_back(slot.target);
            }
        }
    return names;
}

} // namespace

Result<TestRun> test_run(ObjectSpec spec, size_t n, const TestRunOptions &options) {
    HarnessOptions wanted;
    wanted.memory = !options.packet;
    wanted.contents = options.memory;
    ObjectSpec wrapped = TRY(harness(spec, n, wanted));
    const ProgramSpec &program = wrapped.programs[n];

    LoadOptions loading;
    loading.btf_path = options.btf_path;
    loading.programs = reachable(wrapped, n);
    loading.pin_by_name = false;
    TestRun out;
    {
        Result<LoadedObject> loaded = load(wrapped, loading);
        if (!loaded) {
            Error error = std::move(loaded).error();
            if (error.kind == Errc::rejected && wanted.memory)
                error.hint += format("{}instruction numbers include the {} instructions that rawbpf puts before the program",
                                     error.hint.empty() ? "" : "\n", program.insns.size() - spec.programs[n].insns.size() - 5);
            return Unexpected(std::move(error));
        }
        out.object = std::move(*loaded);
    }
    const Program *loaded = out.object.find_program(program.name);
    const Map *result = out.object.find_map(kHarnessResult);
    if (!loaded || !result) return fail(Errc::internal, "the program or its result isn't there after loading");

    const bool raw = program_type_row(program.type).run == ProgramRun::arguments;
    std::vector<std::byte> packet;
    std::vector<std::byte> after(options.memory.size() + 256); // XDP may have grown it
    sys::ProgTestRunAttr attr;
    attr.prog_fd = static_cast<uint32_t>(loaded->fd.get());
    if (!raw) {
        packet = options.memory;
        if (!options.packet) packet.insert(packet.begin(), kEthernet, std::byte{0});
        if (packet.size() < (options.packet ? kEthernet : kLeastPacket) &&
            !(reads_packet(program) && packet.size() > kEthernet)) {
            if (options.packet)
                return fail(Errc::invalid_argument, "a packet of {} bytes is too short: the kernel takes {} or more",
                            packet.size(), kEthernet);
            packet.resize(kLeastPacket);
        }
        attr.data_in = sys::reg(packet.data());
        attr.data_size_in = static_cast<uint32_t>(packet.size());
        attr.repeat = options.repeat;
        if (options.packet) {
            attr.data_out = sys::reg(after.data());
            attr.data_size_out = static_cast<uint32_t>(after.size());
        }
    }
    const auto call = [&]() -> Result<void> {
        Result<void> ran = [&] {
            sys::Because why("runs it once, with nothing attached");
            return sys::prog_test_run(attr);
        }();
        if (ran) return {};
        Error error = std::move(ran).error();
        constexpr int kNotSupported = 524; // ENOTSUPP, which user space has no name for
        if (error.os == kNotSupported || error.os == EOPNOTSUPP || error.os == EINVAL) {
            error.kind = Errc::unsupported;
            error.hint = "the kernel runs socket, XDP, tc, cgroup, flow dissector, lwt, sk_lookup, raw tracepoint (5.10) and "
                         "syscall (5.14) programs on request";
        }
        return Unexpected(in_context(std::move(error), format("program {}", program.name)));
    };
    double sum = 0;
    const uint32_t repeat = std::max(options.repeat, 1U);
    for (uint32_t n = 0; const uint32_t runs = runs_of_batch(repeat, n); ++n) {
        const uint64_t started = sys::process_cpu_ns();
        if (!raw) attr.repeat = runs;
        for (uint32_t i = 0; i < (raw ? runs : 1); ++i) TRY(call());
        const bool clocked = !raw || repeat > 1; // a single run of those that the kernel doesn't time is mostly system call
        const bool ours = raw || runs >= kRunsToClock;
        const double ns = !clocked ? 0 : ours ? static_cast<double>(sys::process_cpu_ns() - started) / runs : attr.duration;
        if (clocked) out.batches.push_back(ns);
        sum += ns * runs;
        if (options.packet && !raw && attr.data_size_out == packet.size()) // it stays as the last run left it
            std::copy_n(after.begin(), packet.size(), packet.begin());
    }
    out.ns = static_cast<uint64_t>(sum / repeat);
    out.r0 = TRY((result->get<uint32_t, uint64_t>(0)));
    if (options.packet) {
        after.resize(std::min<size_t>(attr.data_size_out, after.size()));
        out.memory = std::move(after);
    } else if (const Map *memory = out.object.find_map(kHarnessMemory)) {
        out.memory.resize(memory->lookup_size());
        const uint32_t key = 0;
        TRY(memory->lookup(&key, out.memory.data()));
    }
    return out;
}

} // namespace rawbpf::inline v0
