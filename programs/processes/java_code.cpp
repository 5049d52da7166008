// How often? A list of five thousand pieces of code is read in some milliseconds, a page for each. It is read again each second
// while samples come, as a heap's memory is used again, and for at most a twentieth of the time. In between, an address that
// isn't in it is looked for by itself. A piece's name is read once.
//
// The interpreter's frames tell which method they run only where the stack was copied: a word of it is the method's address. A
// method whose class was unloaded may give its address to another one; so its name is asked for when it is met, and asked for
// again with each list.
#include "programs/processes/java_code.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "programs/languages/memory.h"
#include "programs/processes/live_symbols.h"
#include "runtime/base/format.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::processes {

using namespace languages;

namespace {

constexpr uint64_t kLongestWaitNs = 4'000'000'000; // for the tables of a virtual machine that tells too little
constexpr uint64_t kShare = 20;                    // of the time one is lists'
constexpr uint64_t kOldNs = 1'000'000'000;         // a list
constexpr size_t kMostMachines = 64;
constexpr size_t kTablePages = 2048, kListPages = 1 << 18, kNamePages = 1 << 16;
constexpr size_t kMostCodeMemory = 48 << 20; // as of a perf map
constexpr size_t kPiecePages = 64, kMostVain = 1 << 12;
constexpr size_t kMostNames = 1 << 18, kMostWords = 1 << 18;
constexpr std::string_view kFile = "libjvm.so";

} // namespace

const Interpreter *JavaCode::file_of(uint32_t pid, const ProcessTable::Mapping &mapping) {
    const auto [at, fresh] = files_.try_emplace(mapping.module);
    if (fresh) {
        sys::Because why("a Java virtual machine's library: where it tells of its code");
        std::optional<Interpreter> found;
        if (!read_mapped(table_, pid, mapping,
                         [&](const elf::Elf &file, Bytes bytes) { found = hotspot::recognise(file, bytes); })) {
            files_.erase(at);
            return nullptr;
        }
        at->second = std::move(found);
    }
    return at->second ? &*at->second : nullptr;
}

bool JavaCode::look(uint32_t pid, uint64_t now_ns) {
    const ProcessTable::Image *image = table_.last_image(pid);
    return image && look(pid, *image, now_ns);
}

bool JavaCode::look(uint32_t pid, const ProcessTable::Image &image, uint64_t now_ns) {
    if constexpr (kHostArch != Arch::x86_64) return false; // the interpreter's frames were looked at there only
    for (const ProcessTable::Mapping &mapping : image) {
        const Module &module = table_.modules()[mapping.module];
        const std::string_view path = module.path;
        if (module.kind != ModuleKind::file || path.substr(path.rfind('/') + 1) != kFile) continue;
        const Interpreter *file = file_of(pid, mapping);
        const auto bias = file ? bias_of(*file, mapping.start, mapping.file_offset) : std::nullopt;
        if (!bias) continue;
        auto at = machines_.find(pid);
        if (at == machines_.end() || at->second.module != mapping.module || at->second.bias != *bias || at->second.ended) {
            if (machines_.size() >= kMostMachines)
                for (auto old = machines_.begin(); old != machines_.end();)
                    old = old->second.ended ? machines_.erase(old) : std::next(old);
            if (machines_.size() >= kMostMachines) return false;
            Machine fresh;
            fresh.module = mapping.module;
            fresh.bias = *bias;
            at = machines_.insert_or_assign(pid, std::move(fresh)).first;
        }
        return find(pid, at->second, now_ns);
    }
    return false;
}

bool JavaCode::find(uint32_t pid, Machine &machine, uint64_t now_ns) {
    if (!machine.heaps.empty()) return true;
    if (machine.tried_ns != 0 && now_ns < machine.tried_ns + machine.wait_ns) return false;
    machine.tried_ns = now_ns;
    sys::Because why("a Java virtual machine's tables of its own structures, and where its code lies");
    auto pages = ProcessPages::open(pid);
    if (!pages) return false; // it has ended, most likely
    Memory memory(*pages, kTablePages);
    if (!machine.layout) {
        const auto structs = hotspot::VmStructs::read(memory, *files_[machine.module], machine.bias, machine.why);
        if (structs) machine.layout = hotspot::layout_of(*structs, machine.why);
        machine.keeps_frames = structs && hotspot::has_flag(memory, *structs, "PreserveFramePointer");
        if (!machine.layout) { // of one that tells too little there will never be
            machine.wait_ns = std::min(machine.wait_ns * 2, kLongestWaitNs);
            return false;
        }
    }
    auto heaps = hotspot::read_heaps(memory, *machine.layout);
    if (!heaps) return false; // it has only begun
    machine.heaps = std::move(*heaps);
    read(pid, machine, now_ns);
    table_.tell_again(pid);
    return true;
}

void JavaCode::read(uint32_t pid, Machine &machine, uint64_t now_ns) {
    const uint64_t before = machine.read_ns, began = sys::monotonic_ns();
    machine.read_ns = now_ns;
    sys::Because why("the list of the code that a Java virtual machine has made, and its methods' names");
    auto pages = ProcessPages::open(pid);
    if (!pages) return; // it has ended: what was read stays
    Memory heads(*pages, kListPages), names(*pages, kNamePages);
    auto heaps = hotspot::read_heaps(heads, *machine.layout);
    if (!heaps) return;
    machine.heaps = std::move(*heaps);
    std::vector<hotspot::Code> list = hotspot::read_code(heads, *machine.layout, machine.heaps);
    for (const hotspot::Code &code : list) {
        const hotspot::Code *old = hotspot::find_code(machine.list, code.begin);
        if (!old || !old->is(code)) name(names, machine, code, before);
    }
    machine.code.settle();
    machine.list = std::move(list);
    machine.methods.clear();
    machine.vain.clear();
    machine.took_ns = sys::monotonic_ns() - began;
}

void JavaCode::name(Memory &memory, Machine &machine, const hotspot::Code &code, uint64_t since_ns) {
    if (machine.code.memory() > kMostCodeMemory) return;
    const bool method = code.kind == hotspot::Kind::method;
    const std::string name = method ? hotspot::method_name(memory, *machine.layout, code.method) : code.name;
    machine.code.add(code.begin, code.end - code.begin, name, since_ns);
}

JavaCode::Machine *JavaCode::living(uint32_t pid) {
    const auto at = machines_.find(pid);
    return at == machines_.end() || at->second.heaps.empty() || at->second.ended ? nullptr : &at->second;
}

void JavaCode::read_again(uint32_t pid, Machine &machine, uint64_t now_ns) {
    if (now_ns >= machine.read_ns + std::max(kOldNs, machine.took_ns * kShare)) read(pid, machine, now_ns);
}

bool JavaCode::read_at(uint32_t pid, uint64_t pc, uint64_t now_ns) {
    Machine *machine = living(pid);
    if (!machine || machine->vain.size() >= kMostVain || !machine->vain.insert(pc).second) return false;
    sys::Because why("a piece of code that a Java virtual machine has made since its list was read, and its name");
    auto pages = ProcessPages::open(pid);
    if (!pages) return false;
    Memory memory(*pages, kPiecePages);
    auto heaps = hotspot::read_heaps(memory, *machine->layout); // they grow
    if (!heaps) return false;
    machine->heaps = std::move(*heaps);
    auto code = hotspot::read_code_at(memory, *machine->layout, machine->heaps, pc);
    if (!code) return false;
    machine->vain.erase(pc);
    name(memory, *machine, *code, std::min(machine->read_ns, now_ns));
    machine->code.settle();
    hotspot::put_code(machine->list, std::move(*code));
    return true;
}

void JavaCode::ended(uint32_t pid) {
    if (const auto at = machines_.find(pid); at != machines_.end()) at->second.ended = true;
}

const JavaCode::Machine *JavaCode::known(uint32_t pid) const {
    const auto at = machines_.find(pid);
    return at == machines_.end() || at->second.heaps.empty() ? nullptr : &at->second;
}

bool JavaCode::in_heap(uint32_t pid, uint64_t address) const {
    const Machine *machine = known(pid);
    return machine && !machine->keeps_frames &&
           std::any_of(machine->heaps.begin(), machine->heaps.end(),
                       [&](const hotspot::Heap &heap) { return address >= heap.begin && address < heap.end; });
}

std::optional<unwind::ListedRule> JavaCode::rule(uint32_t pid, uint64_t pc) const {
    const Machine *machine = known(pid);
    const hotspot::Code *code = machine ? hotspot::find_code(machine->list, pc) : nullptr;
    return code ? std::optional(hotspot::rule_at(*code, pc)) : std::nullopt;
}

const symbols::CompiledCode *JavaCode::code(uint32_t pid, uint64_t address, uint64_t now_ns) {
    if (Machine *machine = living(pid)) {
        read_again(pid, *machine, now_ns);
        if (!machine->code.knows(address)) (void)read_at(pid, address, now_ns);
    }
    return code(pid);
}

const symbols::CompiledCode *JavaCode::code(uint32_t pid) const {
    const Machine *machine = known(pid);
    return machine ? &machine->code : nullptr;
}

std::optional<uint64_t> JavaCode::method(uint32_t pid, uint64_t word) {
    const auto at = machines_.find(pid);
    if (at == machines_.end() || !at->second.layout) return std::nullopt;
    Machine &machine = at->second;
    const auto known = machine.methods.find(word);
    if (known != machine.methods.end()) return known->second != 0 ? std::optional(known->second) : std::nullopt;
    if (machine.ended || machine.methods.size() >= kMostWords || names_.size() >= kMostNames) return std::nullopt;
    sys::Because why("the name of a method that Java's interpreter runs");
    auto pages = ProcessPages::open(pid);
    if (!pages) return std::nullopt;
    Memory memory(*pages, kPiecePages);
    std::string name = hotspot::method_name(memory, *machine.layout, word);
    uint64_t number = 0;
    if (!name.empty()) {
        const auto [entry, fresh] = numbers_.try_emplace(std::move(name), kMethods + names_.size());
        if (fresh) names_.push_back(entry->first);
        number = entry->second;
    }
    machine.methods.emplace(word, number);
    return number != 0 ? std::optional(number) : std::nullopt;
}

std::optional<std::string> JavaCode::method_name(uint64_t number) const {
    if (number < kMethods || number - kMethods >= names_.size()) return std::nullopt;
    return names_[number - kMethods];
}

std::vector<std::string> JavaCode::learnt() const {
    std::vector<std::string> out;
    for (const auto &[pid, machine] : machines_)
        if (!machine.heaps.empty())
            out.push_back(format("{} of process {}: {} pieces of code in {} heaps", table_.modules()[machine.module].path, pid,
                                 machine.list.size(), machine.heaps.size()));
    return out;
}

std::vector<std::string> JavaCode::warnings() const {
    std::vector<std::string> out;
    for (const auto &[pid, machine] : machines_)
        if (!machine.layout && !machine.why.empty())
            out.push_back(format("process {}: Java's functions aren't shown: {}", pid, machine.why));
    return out;
}

} // namespace rawbpf::inline v0::processes
