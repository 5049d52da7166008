// `rawbpf doctor PATH...` and `rawbpf doctor -p PID`: what a profile of a file, or of all files that a process has mapped,
// will show. If a file can't be read, the command says so and goes on with the next.
#include "cli/doctor_modules.h"

#include <algorithm>

#include "cli/console.h"
#include "cli/object_file.h"
#include "programs/doctor/context.h"
#include "programs/doctor/goroutines.h"
#include "programs/doctor/module.h"
#include "programs/doctor/runtime.h"
#include "programs/usdt/binary.h"
#include "programs/xz.h"
#include "runtime/base/fail.h"
#include "runtime/link/user_functions.h"
#include "runtime/symbols/vdso.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf doctor";

/// How many of a process's mappings are of that one's file.
size_t regions_of(const symbols::ProcessMaps &maps, const symbols::Region &file) {
    return static_cast<size_t>(std::count_if(maps.regions.begin(), maps.regions.end(), [&](const symbols::Region &region) {
        return region.device == file.device && region.inode == file.inode && region.path == file.path;
    }));
}

struct Examination {
    bool json;
    std::string text = {};
    int status = 0;

    void complain_of(const Error &error) {
        status = std::max(status, complain(kWho, error, error.kind == Errc::permission ? 3 : 1));
    }

    Result<void> file(std::string path) {
        if (path.find('/') == std::string::npos && !sys::exists(path))
            if (Result<std::string> found = find_binary(path)) path = *found;
        const usdt::Binary binary = TRY(usdt::Binary::open(path, path));
        Result<symbols::ElfSymbols> names = symbols::ElfSymbols::load(path, {}, unpack_xz);
        if (!names) complain_of(names.error());
        const doctor::Module module = doctor::examine_module(binary.elf(), path, names ? &*names : nullptr, {});
        if (!json && !text.empty()) text += '\n';
        json ? append_module_json(text, module, 0) : append_module_text(text, module);
        return {};
    }

    Result<void> process(int pid) {
        const symbols::ProcessMaps maps = TRY_IN(symbols::read_maps(pid), "process {}", pid);
        const std::string root = format("/proc/{}/root", pid);
        std::vector<doctor::Module> modules;
        std::vector<doctor::Runtime> runtimes;
        std::vector<doctor::Goroutines> goroutines;
        size_t anonymous = 0;
        for (const symbols::Region &region : maps.regions) {
            // Of a file in memory it is seen below whether it is a program, as profile sees it.
            const bool memory = region.kind() == symbols::RegionKind::memfd && !usdt::is_memory_file(region);
            anonymous += memory || region.kind() == symbols::RegionKind::anonymous;
            if (region.kind() != symbols::RegionKind::vdso) continue;
            Result<Bytes> image = symbols::vdso_image(); // the same in every process of this machine
            Result<elf::Elf> elf = image ? elf::Elf::parse(*image, "[vdso]") : std::move(image).failure();
            Result<symbols::ElfSymbols> names = symbols::load_vdso();
            if (elf) modules.push_back(doctor::examine_module(*elf, "[vdso]", names ? &*names : nullptr, root));
        }
        for (const symbols::Region &region : usdt::mapped_files(maps)) {
            const bool memory = usdt::is_memory_file(region);
            Result<usdt::MappedBinary> mapped = usdt::open_mapped(pid, region);
            if (!mapped) {
                if (mapped.error().kind != Errc::bad_input) complain_of(mapped.error()); // else: no ELF file
                if (memory) anonymous += regions_of(maps, region);
                continue;
            }
            Result<symbols::ElfSymbols> names = symbols::ElfSymbols::load(pid, region, {}, unpack_xz);
            modules.push_back(doctor::examine_module(mapped->binary.elf(), memory ? region.path : region.file(),
                                                     names ? &*names : nullptr, root));
            auto runtime = doctor::examine_runtime(pid, region, mapped->binary.elf(), mapped->binary.bytes());
            if (runtime) runtimes.push_back(std::move(*runtime));
            auto by_go =
                doctor::examine_goroutines(memory ? region.path : region.file(), mapped->binary.elf(), mapped->binary.bytes());
            if (by_go) goroutines.push_back(std::move(*by_go));
        }
        const doctor::CompiledNames compiled = doctor::compiled_names(pid, maps, anonymous);
        doctor::settle_runtimes(runtimes, compiled.any);
        if (!json) {
            if (!text.empty()) text += '\n';
            append_process_text(text, pid, modules, anonymous, compiled.text);
            for (const doctor::Runtime &runtime : runtimes) append_runtime_text(text, runtime);
            for (const doctor::Goroutines &one : goroutines) append_goroutines_text(text, one);
            doctor::append_context_text(text, static_cast<uint32_t>(pid));
        } else {
            for (const doctor::Module &module : modules) append_module_json(text, module, pid);
            for (const doctor::Runtime &runtime : runtimes) append_runtime_json(text, runtime, pid);
            if (anonymous != 0 || !compiled.text.empty()) doctor::append_compiled_json(text, pid, anonymous, compiled.text);
            for (const doctor::Goroutines &one : goroutines) append_goroutines_json(text, one, pid);
            doctor::append_context_json(text, static_cast<uint32_t>(pid));
        }
        return {};
    }
};

} // namespace

int examine_modules(const Arguments &a, const DoctorModuleIds &ids) {
    Examination run{.json = a.text(ids.format) == "json"};
    if (run.json) append_json_header(run.text, a);
    bool any = false;
    const auto note = [&](Result<void> done) { done ? void(any = true) : run.complain_of(done.error()); };
    for (std::string_view operand : a.operands()) note(run.file(std::string(operand)));
    for (int pid : a.pids(ids.pid)) note(run.process(pid));
    if (!any) return run.status;
    return std::max(run.status, write_result(kWho, a.text(ids.output), run.text));
}

} // namespace rawbpf::inline v0::cli
