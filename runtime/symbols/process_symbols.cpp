// Which table names an address is told by its mapping's kind. A process goes on while we look: an address outside of what was
// mapped makes us read the maps again, once a question; and so does a function that a JIT compiler has not written down yet.
#include "runtime/symbols/process_symbols.h"

#include "asm/machines.h"
#include "runtime/base/fail.h"
#include "runtime/symbols/kallsyms.h"
#include "runtime/symbols/mapped_file.h"
#include "runtime/symbols/name_strings.h"
#include "runtime/symbols/vdso.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::symbols {
namespace {

constexpr uint64_t kKernelHalf = kHost.kernel_from;

bool is_kernel(uint64_t address) { return address >= kKernelHalf; }

} // namespace

Result<ProcessSymbols> ProcessSymbols::of(int pid, const ProcessSymbolsOptions &options) {
    ProcessSymbols out;
    out.pid_ = pid == 0 ? sys::own_pid() : pid;
    out.options_ = options;
    sys::Because why("see which code a process has mapped, to name addresses in it");
    out.process_ = TRY_IN(sys::pidfd_open(out.pid_), "process {}", out.pid_); // before its maps: then they are of this process
    out.maps_ = TRY_IN(read_maps(out.pid_), "process {}", out.pid_);
    return out;
}

void ProcessSymbols::read_again() {
    if (fresh_) return;
    fresh_ = true;
    sys::Because why("see which code the process has mapped since");
    Result<ProcessMaps> now = read_maps(pid_);
    if (now && !sys::has_ended(process_.get())) maps_ = std::move(*now); // what has ended keeps the maps that it had
}

ProcessSymbols::Table &ProcessSymbols::table_of(const Region &region) {
    const auto [at, is_new] = tables_.try_emplace({region.inode, region.path});
    Table &table = at->second;
    if (!is_new) return table;
    const auto load = [&]() -> Result<ElfSymbols> {
        if (region.kind() == RegionKind::vdso) return load_vdso();
        const uint32_t pids[] = {static_cast<uint32_t>(pid_)};
        MappedFile mapped = TRY(open_mapped(region, pids));
        return ElfSymbols::load(std::move(mapped.file), region.file().empty() ? region.path : region.file(), mapped.root,
                                options_.decompress, options_.fetcher);
    };
    if (Result<ElfSymbols> symbols = load())
        table.symbols = std::move(*symbols);
    else
        table.problem = symbols.error().message();
    return table;
}

void ProcessSymbols::name_compiled(NamedAddress &at) {
    const auto find = [&] { return compiled_ ? compiled_->find(at.address) : std::nullopt; };
    std::optional<Name> name = find();
    if (!name) { // a JIT compiler appends to its map as it compiles
        sys::Because why("read the names that a just-in-time compiler wrote for its code");
        Result<PerfMap> map = PerfMap::load(pid_);
        if (map)
            compiled_ = std::move(*map);
        else
            at.why = format("the code was made at run time: {}", map.error().message());
        name = find();
    }
    if (name) {
        at.function = std::move(name->symbol);
        at.offset = name->offset;
        at.why.clear();
    } else if (at.why.empty()) {
        at.why = "the code was made at run time, and the perf map of the process doesn't name it";
    }
}

void ProcessSymbols::name_user(NamedAddress &at) {
    const Region *region = maps_.find(at.address);
    if (!region) {
        read_again();
        region = maps_.find(at.address);
    }
    if (!region) {
        at.why = "no code is mapped there";
        return;
    }
    at.module = region->path;
    const RegionKind kind = region->kind();
    if (kind == RegionKind::anonymous) return name_compiled(at);
    if (kind == RegionKind::vsyscall) {
        at.why = "the kernel's vsyscall page has no symbols";
        return;
    }
    at.file_offset = region->offset_of(at.address);
    Table &table = table_of(*region);
    if (!table.symbols) {
        if (kind == RegionKind::memfd) return name_compiled(at); // no program: what a runtime has written
        at.why = table.problem;
        return;
    }
    std::optional<Name> name = table.symbols->find(at.file_offset);
    const std::optional<Error> failed = read_failure();
    if (name) {
        at.function = std::move(name->symbol);
        at.offset = name->offset;
    } else {
        at.why = failed ? failed->message() : std::string("the file has no symbol there");
    }
}

std::vector<NamedAddress> ProcessSymbols::name(std::span<const uint64_t> addresses) {
    fresh_ = false;
    std::vector<NamedAddress> out(addresses.size());
    std::vector<uint64_t> of_kernel;
    for (size_t i = 0; i < addresses.size(); ++i) {
        out[i].address = addresses[i];
        if (is_kernel(addresses[i]))
            of_kernel.push_back(addresses[i]);
        else
            name_user(out[i]);
    }
    if (of_kernel.empty()) return out;
    sys::Because why("find the names of kernel functions, in one pass");
    const Result<std::vector<KernelName>> named = name_kernel_addresses(std::move(of_kernel));
    for (NamedAddress &at : out) {
        if (!is_kernel(at.address)) continue;
        if (!named) {
            at.why = named.error().message();
            continue;
        }
        for (const KernelName &one : *named) {
            if (one.address != at.address) continue;
            at.function = one.symbol;
            at.offset = one.offset;
            at.module = one.module;
        }
        if (at.function.empty()) at.why = "the kernel has no symbol there";
    }
    return out;
}

NamedAddress ProcessSymbols::name(uint64_t address) { return std::move(name(std::span<const uint64_t>(&address, 1)).front()); }

} // namespace rawbpf::inline v0::symbols
