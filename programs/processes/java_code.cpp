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
constexpr size_t kStackPages = 1 << 12; // for the methods of one stack
constexpr size_t kMostWords = 1 << 18;
constexpr std::string_view kFrozen = "[callers in Java's heap]"; // of a virtual thread
constexpr std::string_view kFile = "libjvm.so";

} // namespace

void JavaCode::start() {
    if constexpr (kHostArch == Arch::x86_64)
        files_.start(hotspot::recognise); // the interpreter's frames were looked at there only
}

bool JavaCode::look(uint32_t pid, uint64_t now_ns) {
    const ProcessTable::Image *image = table_.last_image(pid);
    return image && look(pid, *image, now_ns);
}

bool JavaCode::look(uint32_t pid, const ProcessTable::Image &image, uint64_t now_ns) {
    if constexpr (kHostArch != Arch::x86_64) return false;
    for (const ProcessTable::Mapping &mapping : image) {
        const Module &module = table_.modules()[mapping.module];
        const std::string_view path = module.path;
        if (module.kind != ModuleKind::file || path.substr(path.rfind('/') + 1) != kFile) continue;
        const Interpreter *file = files_.of(pid, mapping);
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
        const auto structs = hotspot::VmStructs::read(memory, files_.at(machine.module), machine.bias, machine.why);
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
    std::vector<hotspot::Code> list = hotspot::read_code(heads, *machine.layout, *heaps);
    Memory then(*pages, kTablePages);
    if (!hotspot::read_heaps(then, *machine.layout)) return; // it has ended meanwhile, and the list is cut
    machine.heaps = std::move(*heaps);
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
    const std::string name = method ? hotspot::read_method(memory, machine.layout->methods, code.method).name : code.name;
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

bool JavaCode::holds(const Machine &machine, uint64_t address) {
    return std::any_of(machine.heaps.begin(), machine.heaps.end(),
                       [&](const hotspot::Heap &heap) { return address >= heap.begin && address < heap.end; });
}

bool JavaCode::in_heap(uint32_t pid, uint64_t address) const {
    const Machine *machine = known(pid);
    return machine && !machine->keeps_frames && holds(*machine, address);
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

class JavaCode::Reading {
  public:
    explicit Reading(uint32_t pid) : pid_(pid) {}
    /// nullptr: it has ended.
    Memory *memory() {
        if (tried_) return memory_ ? &*memory_ : nullptr;
        tried_ = true;
        auto pages = ProcessPages::open(pid_);
        if (!pages) return nullptr;
        pages_ = std::move(*pages);
        return &memory_.emplace(*pages_, kStackPages);
    }

  private:
    uint32_t pid_;
    bool tried_ = false;
    std::optional<ProcessPages> pages_;
    std::optional<Memory> memory_;
};

const hotspot::Method &JavaCode::method(Machine &machine, Memory &memory, uint64_t address) {
    if (machine.methods.size() >= kMostWords) machine.methods.clear();
    const auto [at, fresh] = machine.methods.try_emplace(address);
    if (fresh) at->second = hotspot::read_method(memory, machine.layout->methods, address);
    return at->second;
}

InlinedFrames::Frame JavaCode::frame_of(Memory &memory, const hotspot::Method &method, std::optional<uint32_t> bytecode) {
    return {frames_.text(method.name), frames_.text(method.file), bytecode ? hotspot::line_of(memory, method, *bytecode) : 0};
}

uint64_t JavaCode::interpreted(Machine &machine, Reading &reading, const unwind::FrameFunction &function) {
    Memory *memory = reading.memory();
    if (!memory) return 0;
    const hotspot::Method &its = method(machine, *memory, function.word);
    if (its.name.empty()) return 0;
    // While the interpreter runs a method its place is in a register; it writes it into the frame when it calls. The register is
    // anything else's in code that it calls, and then the address isn't in the method.
    const auto running = its.bytecode_at(function.running);
    return frames_.number({std::nullopt, {frame_of(*memory, its, running ? running : its.bytecode_at(function.position))}});
}

// Compiled code may be freed, and its memory used again, while its tables are read. Its number says whether it was still there
// when all was read: numbers count up, and none comes again.
void JavaCode::expand(uint32_t pid, std::span<const unwind::FrameFunction> functions, uint64_t t_ns,
                      std::span<FrameLocation> places) {
    Machine *machine = living(pid);
    if (!machine || !machine->layout) return;
    sys::Because why("which methods run in a Java virtual machine's code, and at which lines");
    struct Found {
        FrameLocation *place;
        const hotspot::Code *code;
        InlinedFrames::Entry entry;
    };
    std::vector<Found> found;
    Reading reading(pid);
    for (const unwind::FrameFunction &function : functions)
        if (const uint64_t number = function.known ? 0 : interpreted(*machine, reading, function))
            places[function.frame].file_offset = number;
    for (FrameLocation &place : places) {
        const uint64_t pc = place.address, at = pc - (place.caller ? 1 : 0);
        if (frames_.is_number(place.file_offset) || !holds(*machine, at)) continue;
        const uint64_t layer = machine->code.layer_at(at, t_ns);
        if (const auto known = machine->places.find(pc); known != machine->places.end() && known->second.layer == layer) {
            if (known->second.number != 0) place.file_offset = known->second.number;
            continue;
        }
        const hotspot::Code *code = hotspot::find_code(machine->list, at);
        if (!code || layer != machine->code.last_layer(at) || machine->places.size() >= kMostWords) continue;
        const bool method = code->kind == hotspot::Kind::method && machine->layout->scopes;
        Memory *memory = method || code->kind == hotspot::Kind::routine ? reading.memory() : nullptr;
        if (!memory) continue;
        if (!method) {
            const bool barrier = place.caller && hotspot::is_return_barrier(*memory, *code, pc);
            const uint64_t number = barrier ? frames_.number({std::nullopt, {{frames_.text(kFrozen), frames_.text(""), 0}}}) : 0;
            if (number != 0) frozen_ = number;
            machine->places[pc] = {layer, number};
            if (number != 0) place.file_offset = number;
            continue;
        }
        Found one{&place, code, {layer, {}}};
        for (const hotspot::Scope &scope : hotspot::scopes_at(*memory, *machine->layout->scopes, *code, pc, place.caller))
            one.entry.frames.push_back(frame_of(*memory, this->method(*machine, *memory, scope.method), scope.bytecode));
        found.push_back(std::move(one));
    }
    if (found.empty()) return;
    reading.memory()->forget();
    for (Found &one : found) {
        if (!hotspot::is_there(*reading.memory(), *machine->layout, *one.code)) {
            machine->methods.clear(); // what was taken for a method may have been anything
            continue;
        }
        const uint64_t layer = *one.entry.layer;
        const bool whole = !one.entry.frames.empty() &&
                           std::none_of(one.entry.frames.begin(), one.entry.frames.end(),
                                        [&](const InlinedFrames::Frame &frame) { return frame.name == frames_.text(""); });
        const uint64_t number = whole ? frames_.number(std::move(one.entry)) : 0;
        machine->places[one.place->address] = {layer, number};
        if (number != 0) one.place->file_offset = number;
    }
}

bool JavaCode::lacks_callers(std::span<const FrameLocation> places) const {
    return frozen_ != 0 &&
           std::any_of(places.begin(), places.end(), [&](const FrameLocation &place) { return place.file_offset == frozen_; });
}

std::vector<std::string> JavaCode::learnt() const {
    std::vector<std::string> out;
    for (const auto &[pid, machine] : machines_)
        if (!machine.heaps.empty())
            out.push_back(format("{} of process {}: {} pieces of code in {} heaps; {} places with lines{}",
                                 table_.modules()[machine.module].path, pid, machine.list.size(), machine.heaps.size(),
                                 machine.places.size(), machine.layout->scopes ? "" : " (it doesn't tell what was inlined)"));
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
