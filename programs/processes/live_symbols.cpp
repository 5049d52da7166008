// Naming while processes come and go. A mapped file is opened at the first sample in it, while its process most likely lives (or
// earlier, when its unwind table is read: on a busy machine that takes longer than some processes live), and held by descriptor:
// then it doesn't matter that the process ends, its container is removed, or a package upgrade replaces the file. Reading the
// symbols waits until a name is asked for. For outputs made at the end that keeps the capture small (a descriptor a module), and
// one module's symbols are in memory at a time.
#include "programs/processes/live_symbols.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fcntl.h>

#include "programs/processes/jvm_attach.h"
#include "programs/xz.h"
#include "runtime/base/fail.h"
#include "runtime/elf/elf.h"
#include "runtime/symbols/name_strings.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/process.h"
#include "runtime/sys/unread.h"

namespace rawbpf::inline v0::processes {

namespace {

constexpr size_t kMostHeld = 400;             // descriptors; the usual limit of a process is 1024
constexpr size_t kMostUnused = kMostHeld / 2; // of files that no sample has been in: the others need their place
constexpr uint64_t kReadAgainNs = 1'000'000'000;
constexpr size_t kMostWarnings = 20;
constexpr size_t kMostJits = 64;                // processes whose compiled code is known
constexpr uint64_t kAskAgainNs = 1'000'000'000; // a Java virtual machine, which takes some hundredths of a second
// One that didn't answer: asking takes up to two seconds, in which nothing else is done. The wait doubles.
constexpr uint64_t kFirstSilenceNs = 4'000'000'000, kLastSilenceNs = 64'000'000'000;

} // namespace

void LiveSymbols::missed(const std::string &what, const Error &error) {
    if (warnings_.size() < kMostWarnings) warnings_.push_back(format("{}: {}", what, error.message()));
    unread_ = unread_ || sys::is_unread(error);
}

Result<symbols::ProcessMaps> LiveSymbols::maps(uint32_t pid) {
    sys::Because why("the code that a process has mapped, to find the file behind an address");
    return symbols::read_maps(static_cast<int>(pid));
}

uint32_t LiveSymbols::parent(uint32_t pid) {
    sys::Because why("whose child a process is that we weren't told of, as events were lost");
    return static_cast<uint32_t>(sys::status_number(static_cast<int>(pid), "PPid").value_or(0));
}

void LiveSymbols::met(uint32_t module_id, Module &module, const std::vector<uint32_t> &pids, uint64_t start, uint64_t end) {
    if (module.kind != ModuleKind::file) return;
    Table &table = tables_[module_id];
    hold(table, module, pids, start, end);
    if (!build_ids_ || !table.file) return;
    if (auto image = sys::map_file(table.file, module.path)) {
        if (auto elf = elf::Elf::parse(image->bytes(), module.path)) module.build_id = elf->build_id().value_or("");
    } else {
        missed(format("{}: its build-id isn't known", module.path), image.error());
    }
    table.build_id = module.build_id;
}

void LiveSymbols::opened(uint32_t module_id, const Fd &file, const std::string &root) {
    if (held_ >= kMostUnused) return;
    Table &table = tables_[module_id];
    if (table.file) return;
    sys::Because why("held open from now on, so that its symbols can be read after the process has ended");
    auto again = sys::duplicate(file.get());
    if (!again) return; // met() tries once more
    table.file = std::move(*again);
    table.root = root;
    ++held_;
}

bool LiveSymbols::met_jit(const std::vector<uint32_t> &pids, const symbols::Region *dump) {
    jits_.erase(pids[0]);                       // of an earlier process with this number
    if (jits_.size() >= kMostJits) return true; // the others are opened when their names are asked for
    const bool told = open_jit(pids, dump);
    return (java_ && java_->look(pids[0], sys::monotonic_ns())) || told;
}

bool LiveSymbols::open_jit(const std::vector<uint32_t> &pids, const symbols::Region *dump) {
    const uint32_t pid = pids[0];
    sys::Because why("held open, so that the names of just-in-time compiled code outlive the process");
    Jit jit;
    if (dump)
        if (auto opened = symbols::open_mapped(*dump, pids)) {
            jit.file = std::move(opened->file);
            jit.is_dump = true;
        }
    if (!jit.file && ask_jvms_ && ask(pid)) jit.asked_ns = sys::monotonic_ns();
    for (const uint32_t its : pids) { // a child of a fork has its parent's code
        if (jit.file) break;
        auto file = symbols::PerfMap::open(static_cast<int>(its), {}, owner_);
        if (file)
            jit.file = std::move(*file);
        else if (its == pid && sys::is_unread(file.error()))
            missed(format("process {}: its compiled code has no names", pid), file.error());
    }
    if (!jit.file) return false;
    read(pid, jits_[pid] = std::move(jit));
    return true;
}

bool LiveSymbols::ask(uint32_t pid) {
    const auto before = silent_.find(pid);
    if (before != silent_.end() && sys::monotonic_ns() < before->second.until_ns) return false;
    if (!is_jvm(pid)) return false;
    const auto asked = ask_for_perf_map(pid);
    if (!asked) missed(format("process {}: its compiled code has no names", pid), asked.error());
    if (asked || asked.error().kind == Errc::not_found) {
        silent_.erase(pid);
        return asked.has_value();
    }
    Silence &its = silent_[pid];
    its.length_ns = std::clamp(2 * its.length_ns, kFirstSilenceNs, kLastSilenceNs);
    its.until_ns = sys::monotonic_ns() + its.length_ns;
    return false;
}

/// True: there was something new.
bool LiveSymbols::read(uint32_t pid, Jit &jit) {
    if (!jit.file || jit.damaged) return false; // without a file: when it was looked for stays, in in_memory()
    const uint64_t before = std::exchange(jit.read_ns, sys::monotonic_ns());
    sys::Because why("what a just-in-time compiler has told of its code since the last look");
    const auto news = jit.is_dump ? jit.dump.read_more(jit.file, before) : jit.map.read_more(jit.file, before);
    if (news) return *news;
    jit.damaged = true;
    missed(format("process {}: some of its compiled code has no names", pid), news.error());
    return true;
}

LiveSymbols::Jit *LiveSymbols::teller(uint32_t pid) {
    const auto at = jits_.find(pid);
    return at == jits_.end() || !at->second.file ? nullptr : &at->second;
}

const symbols::JitDump *LiveSymbols::dump_of(uint32_t pid) const {
    const auto at = jits_.find(pid);
    return at == jits_.end() || !at->second.is_dump ? nullptr : &at->second.dump;
}

bool LiveSymbols::read_news(uint32_t pid, uint64_t t_ns) {
    Jit *const told = teller(pid);
    return told && told->is_dump && t_ns > told->read_ns && read(pid, *told);
}

uint64_t LiveSymbols::code_layer(uint32_t pid, uint64_t address, uint64_t t_ns) {
    Jit *const told = teller(pid);
    if (!told) {
        const symbols::CompiledCode *code = java_ ? java_->code(pid, address, sys::monotonic_ns()) : nullptr;
        return code ? code->layer_at(address, t_ns) : 0;
    }
    Jit &jit = *told;
    if (t_ns > jit.read_ns) read(pid, jit); // it may be newer than what was told: once for all samples that there are now
    // What a Java virtual machine has compiled since it was asked has no name yet.
    if (jit.asked_ns != 0 && !jit.code().knows(address) && sys::monotonic_ns() > jit.asked_ns + kAskAgainNs) {
        jit.asked_ns = ask(pid) ? sys::monotonic_ns() : 0;
        jit.map.read_again();
        read(pid, jit);
    }
    return jit.code().layer_at(address, t_ns);
}

std::optional<bool> LiveSymbols::is_program(uint32_t pid, const symbols::Region &region) {
    sys::Because why("a file in memory: a program, or what a runtime has written?");
    Module module;
    module.path = region.path;
    module.inode = region.inode;
    auto opened = open_mapped(module, {pid}, region.start, region.end);
    if (!opened) return std::nullopt;
    std::array<std::byte, 4> magic{};
    auto n = sys::pread(opened->file.get(), magic.data(), magic.size(), 0);
    return n && *n == magic.size() && std::memcmp(magic.data(), "\177ELF", magic.size()) == 0;
}

void LiveSymbols::hold(Table &table, const Module &module, const std::vector<uint32_t> &pids, uint64_t start, uint64_t end) {
    if (table.file || held_ >= kMostHeld) return;
    sys::Because why("held open, so that its symbols can be read after the process has ended");
    auto opened = open_mapped(module, pids, start, end);
    if (!opened) return;
    table.file = std::move(opened->file);
    table.root = std::move(opened->root);
    ++held_;
}

// The table keeps its descriptor: symbols may be dropped and loaded again.
Result<Fd> LiveSymbols::open_again(const Table &table, const Module &module) {
    if (table.file) return sys::duplicate(table.file.get());
    return std::move(TRY(open_mapped(module, {}, 0, 0)).file);
}

void LiveSymbols::load(Table &table, const Module &module) {
    table.loaded = true;
    if (module.kind == ModuleKind::vdso) {
        if (auto symbols = symbols::load_vdso())
            table.symbols = std::move(*symbols);
        else if (sys::is_unread(symbols.error()))
            missed(format("{}: its functions have no names", module.path), symbols.error());
        return;
    }
    Result<Fd> again = open_again(table, module);
    Result<symbols::ElfSymbols> symbols =
        again ? symbols::ElfSymbols::load(std::move(*again), module.path, table.root, unpack_xz, debug_info_)
              : Unexpected(std::move(again).error());
    if (!symbols) {
        missed(format("{}: its functions have no names", module.path), symbols.error());
        return;
    }
    table.build_id = symbols->build_id();
    table.symbols = std::move(*symbols);
}

std::vector<symbols::KernelName> LiveSymbols::kernel(std::vector<uint64_t> addresses) {
    sys::Because why("names of kernel functions, in one pass");
    auto names = symbols::name_kernel_addresses(std::move(addresses));
    if (names) return std::move(*names);
    if (!kernel_warned_) missed("kernel functions have no names", names.error());
    kernel_warned_ = true;
    return {};
}

std::optional<symbols::Name> LiveSymbols::in_module(uint32_t module_id, const Module &module, uint64_t file_offset) {
    Table &table = tables_[module_id];
    if (!table.loaded) load(table, module);
    std::optional<symbols::Name> name = table.symbols ? table.symbols->find(file_offset) : std::nullopt;
    if (const std::optional<Error> failed = symbols::read_failure(); failed && !table.told) {
        missed(format("{}: some of its functions have no names", module.path), *failed);
        table.told = true;
    }
    return name;
}

std::optional<uint64_t> LiveSymbols::begin_of(uint32_t module_id, const Module &, uint64_t file_offset) {
    const Table &table = tables_[module_id];
    return table.symbols ? table.symbols->begin_of(file_offset) : std::nullopt;
}

std::optional<ScriptFrame> LiveSymbols::in_script(uint64_t offset) {
    return scripts_ ? std::optional(scripts_->frame(offset)) : std::nullopt;
}

std::string LiveSymbols::build_id(uint32_t module_id, const Module &) { return tables_[module_id].build_id; }

std::vector<SourceFrame> LiveSymbols::in_source(uint32_t module_id, const Module &module, uint64_t file_offset) {
    Table &table = tables_[module_id];
    if (!debug_info_ || table.lines_missed) return {};
    if (!table.loaded) load(table, module);
    const std::optional<uint64_t> address = table.symbols ? table.symbols->address_of(file_offset) : std::nullopt;
    if (!address) return {};
    if (!table.lines_sought) {
        table.lines_sought = true;
        sys::Because why("a module's debug info, for lines and inlined functions");
        Result<Fd> again = open_again(table, module);
        Result<std::unique_ptr<ModuleLines>> lines =
            again ? debug_info_->open(std::move(*again), module.path, table.root) : Unexpected(std::move(again).error());
        if (lines) {
            table.lines = std::move(*lines);
        } else {
            table.lines_missed = true;
            missed(format("no lines for {}", module.path), lines.error());
        }
    }
    return table.lines ? table.lines->find(*address) : std::vector<SourceFrame>();
}

bool LiveSymbols::unlinked(uint32_t module_id, const Module &module) const {
    if (module.kind != ModuleKind::file) return false;
    if (const auto table = tables_.find(module_id); table != tables_.end() && table->second.file) {
        sys::Because why("does a path still lead to this file? A report can't find another one's names");
        if (const auto st = sys::stat_fd(table->second.file.get())) return st->st_nlink == 0;
    }
    symbols::Region region;
    region.path = module.path;
    return region.kind() != symbols::RegionKind::file;
}

void LiveSymbols::done_with(uint32_t module_id) {
    Table &table = tables_[module_id];
    table.lines.reset();
    table.lines_sought = false;
    table.symbols.reset();
    table.loaded = false;
}

std::optional<symbols::CompiledName> LiveSymbols::in_memory(uint32_t pid, uint64_t address, uint64_t layer) {
    if (java_ && java_->frames().is_number(layer)) {
        const InlinedFrames::Entry *entry = java_->frames().find(layer);
        if (!entry || !entry->layer) return std::nullopt; // in_made_code() names it
        layer = *entry->layer;
    }
    const symbols::CompiledCode *java = java_ ? java_->code(pid) : nullptr;
    if (java && !teller(pid)) return java->find(address, layer);
    if (jits_.size() > 2 * kMostJits) jits_.clear();
    Jit &jit = jits_[pid];
    if (auto name = jit.code().find(address, layer)) return name;
    const uint64_t now = sys::monotonic_ns();
    if (jit.read_ns != 0 && now - jit.read_ns < kReadAgainNs) return std::nullopt;
    if (jit.file)
        read(pid, jit);
    else if (!open_jit({pid}, nullptr))
        jit.read_ns = now;
    return jit.code().find(address, layer);
}

std::vector<SourceFrame> LiveSymbols::in_made_code(uint64_t layer) {
    auto its = js_ ? js_->frames().source(layer) : std::vector<SourceFrame>();
    return !its.empty() || !java_ ? its : java_->frames().source(layer);
}

} // namespace rawbpf::inline v0::processes
