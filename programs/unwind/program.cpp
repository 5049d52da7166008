// What the walk needs of a kernel, asked for by trying; never by its version.
#include "programs/unwind/program.h"

#include <algorithm>

#include <linux/bpf.h>

#include "runtime/base/format.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"

namespace rawbpf::inline v0 {

namespace {

constexpr uint64_t kMostPools = 4096; // of a megabyte

} // namespace

MapSpec unwind_pool_spec() {
    MapSpec pool;
    pool.name = "unwind_pool";
    pool.type = BPF_MAP_TYPE_ARRAY;
    pool.key_size = 4;
    pool.value_size = UNWIND_POOL_BYTES;
    pool.max_entries = 1;
    pool.flags = BPF_F_MMAPABLE;
    return pool;
}

void complete_unwind_maps(ObjectSpec &spec) {
    if (MapSpec *pools = spec.find_map("unwind_pools")) pools->inner = std::make_shared<MapSpec>(unwind_pool_spec());
}

UnwindProgramOptions probe_unwind() {
    UnwindProgramOptions options;
    options.has_bpf_loop = has_feature(Feature::bpf_loop);
    options.has_task_pt_regs = has_feature(Feature::task_pt_regs);
    if (!options.has_task_pt_regs) {
        constexpr uint32_t kStack = 1 << 14; // THREAD_SIZE of x86_64, riscv64, and of arm64 but with pages of 64 KiB
        const auto types = kernel_btf();
        const auto registers = types ? (*types)->find("pt_regs", btf::Kind::struct_) : std::nullopt;
        const auto size = registers ? (*types)->size_of(*registers) : Result<uint64_t>(0);
        if (size && *size > 0 && *size < kStack) options.registers_at = kStack - static_cast<uint32_t>(*size);
    }
    // A signature takes the bits that an address of this size leaves free. The stack lies at the top of what a process has.
    if (unwind::find_machine(options.arch)->signs) {
        const int local = 0;
        options.address_mask = ~0ull >> __builtin_clzll(reinterpret_cast<uintptr_t>(&local));
    }
    return options;
}

std::optional<UnwindProgramOptions> unwind_options(const UnwindChoice &choice, std::string &note) {
    note.clear(); // whatever a kernel lacks, there is another way
    if (choice.by == UnwindBy::fp) return {};
    if (!unwind::has_machine(kHostArch)) {
        if (kHostArch == Arch::arm) // arch/arm/kernel/perf_callchain.c, struct frame_tail
            note = "user stacks are walked as 32-bit ARM's kernel does, by the frames of ARM code compiled with -mapcs-frame; of "
                   "other code, "
                   "Thumb's for example, only the function that ran is known";
        else
            note = format(
                "user stacks are walked by frame pointers, and end in code without them: rawbpf has no unwind tables for {}",
                kHostArch == Arch::other ? "this machine" : kHost.name);
        return {};
    }
    UnwindProgramOptions options = probe_unwind();
    options.depth = choice.depth;
    options.pools = static_cast<uint32_t>(std::clamp<uint64_t>(choice.memory >> 20, 1, kMostPools));
    return options;
}

bool goes_without(const UnwindChoice &choice, const Error &refused, std::string &note) {
    if (choice.by == UnwindBy::tables || refused.kind == Errc::permission) return false;
    note = format("user stacks are walked by frame pointers, and end in code without them: {}", refused.message());
    return true;
}

} // namespace rawbpf::inline v0
