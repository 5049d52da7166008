// Makes a machine from a spec, and a sentence from a fault.
//
// It does the same steps as the loader, with addresses of the emulator instead of descriptors: first maps, then each program's
// fixups, then decode(), when a program is first entered. Programs share maps and memory, as in a kernel.
//
//      r1 = 0x10000000   the memory that was given (or the context of a packet)
//      r2 = its length
//      r10 = 0x01000200  the end of frame 0's 512 bytes
//
// Everything else is zero, and random numbers always start the same, so that every run is the same.
#include "runtime/emulator/machine.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "asm/effects.h"
#include "asm/opcodes.h"
#include "asm/print.h"
#include "runtime/base/fail.h"
#include "runtime/btf/btf.h"
#include "runtime/emulator/lock.h"
#include "runtime/emulator/source.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::emulator {

namespace {
constexpr uint64_t kMayGoto = 8U << 20;        // BPF_MAX_LOOPS
constexpr uint64_t kHandleBytes = 16;          // between the addresses of two maps
constexpr uint64_t kSeed = 0x9e3779b97f4a7c15; // any number but 0
} // namespace

Result<std::unique_ptr<Machine>> Machine::create(const ObjectSpec &spec, MachineOptions options) {
    std::unique_ptr<Machine> machine(new Machine(spec, options)); // NOLINT: the constructor is private
    uint64_t bytes = 0;
    std::optional<btf::Btf> types;
    if (!spec.btf.empty())
        if (auto parsed = btf::Btf::parse(spec.btf, spec.name)) types = std::move(*parsed);
    for (const MapSpec &map : spec.maps) {
        const std::optional<uint32_t> lock = types ? lock_in(*types, map.value_type) : std::nullopt;
        machine->maps_.push_back(TRY(EmulatedMap::create(map, machine->memory_, machine->journal_, lock)));
        machine->maps_.back()->count_work(&machine->cpu_.work);
        bytes += machine->maps_.back()->bytes();
        if (bytes > kMostMapBytes)
            return fail(Errc::no_memory, "{}: its maps, up to {}, need {} MiB; the emulator has {} MiB for all maps", spec.name,
                        map.name, (bytes + (1 << 20) - 1) >> 20, kMostMapBytes >> 20);
    }
    for (const auto &map : machine->maps_)
        map->tell_when_gone(
            [](void *of, uint64_t address, uint32_t size) { static_cast<Machine *>(of)->forget_timers(address, size); },
            machine.get());
    TRY(machine->fill_outer_maps());
    machine->codes_.resize(spec.programs.size());
    machine->cpu_.random = kSeed;
    return machine;
}

/// Maps of maps hold the others' addresses, as their static initialisers say.
Result<void> Machine::fill_outer_maps() {
    for (size_t n = 0; n < maps_.size(); ++n) {
        if (maps_[n]->kind() != MapEngine::maps && maps_[n]->kind() != MapEngine::map_set) continue;
        for (const MapSpec::Slot &slot : spec_->maps[n].slots) {
            size_t inner = 0;
            while (inner < maps_.size() && maps_[inner]->name() != slot.target) ++inner;
            if (inner == maps_.size() || !maps_[n]->set_inner(slot.index, map_address(static_cast<uint32_t>(inner))))
                return fail(Errc::invalid_argument, "map {}: {} can't be its entry {}", maps_[n]->name(), slot.target,
                            slot.index);
        }
    }
    return {};
}

Result<void> Machine::set_memory(std::span<std::byte> bytes) {
    Object object;
    object.name = "memory";
    object.size = bytes.size();
    object.bytes = reinterpret_cast<uint8_t *>(bytes.data());
    packet_ = {object.bytes, bytes.size()};
    argument_ = length_ = bytes.size();
    if (!bytes.empty()) argument_ = TRY(memory_.add(std::move(object)));
    return {};
}

Result<void> Machine::set_packet(std::span<std::byte> bytes, bool xdp) {
    Object packet;
    packet.name = "the packet";
    packet.size = bytes.size();
    packet.bytes = reinterpret_cast<uint8_t *>(bytes.data());
    packet_ = {packet.bytes, bytes.size()};
    const uint64_t data = TRY(memory_.add(std::move(packet)));
    context_.reserve(std::max(sizeof(xdp_md), sizeof(__sk_buff))); // it stays where it is, whatever packet is next
    context_.resize(xdp ? sizeof(xdp_md) : sizeof(__sk_buff));
    auto set = [&](size_t offset, uint64_t value) { std::memcpy(&context_[offset], &value, 4); }; // addresses have 32 bits
    if (xdp) {
        set(offsetof(xdp_md, data), data);
        set(offsetof(xdp_md, data_meta), data);
        set(offsetof(xdp_md, data_end), data + bytes.size());
    } else {
        set(offsetof(__sk_buff, len), bytes.size());
        set(offsetof(__sk_buff, data), data);
        set(offsetof(__sk_buff, data_meta), data);
        set(offsetof(__sk_buff, data_end), data + bytes.size());
        if (bytes.size() >= 14) std::memcpy(&context_[offsetof(__sk_buff, protocol)], bytes.data() + 12, 2);
    }
    Object context;
    context.name = "the context";
    context.size = context_.size();
    context.bytes = context_.data();
    argument_ = TRY(memory_.add(std::move(context)));
    length_ = context_.size();
    return {};
}

/// What the loader makes of a jump table: an array of addresses of instructions.
Result<uint64_t> Machine::add_table(const std::vector<uint32_t> &places) {
    MapSpec spec;
    spec.name = ".jumptables";
    spec.type = uapi::BPF_MAP_TYPE_INSN_ARRAY;
    spec.key_size = sizeof(uint32_t);
    spec.value_size = 16; // struct bpf_insn_array_value
    spec.max_entries = static_cast<uint32_t>(places.size());
    spec.contents.resize(places.size() * spec.value_size);
    for (size_t n = 0; n < places.size(); ++n)
        std::memcpy(spec.contents.data() + n * spec.value_size, &places[n], sizeof places[n]);
    tables_.push_back(TRY(EmulatedMap::create(spec, memory_, journal_)));
    return tables_.back()->address();
}

Result<void> Machine::prepare(size_t n) {
    Code &code = codes_[n];
    if (!code.ops.empty()) return {};
    const ProgramSpec &program = spec_->programs[n];
    code.insns = program.insns;
    std::vector<uint64_t> tables; // addresses
    for (const Fixup &fixup : program.fixups) {
        if (fixup.insn + 1 >= code.insns.size())
            return fail(Errc::internal, "{}: a reference to an instruction behind the program's end", program.name);
        Insn &first = code.insns[fixup.insn];
        uint64_t value = 0;
        switch (fixup.kind) {
        case Fixup::Kind::map_fd: value = map_address(fixup.map); break;
        case Fixup::Kind::map_value:
            value = maps_[fixup.map]->address();
            if (!value)
                return fail(Errc::unsupported, "{}: instruction {}: the emulator has no addresses for values of map {} ({})",
                            program.name, fixup.insn, maps_[fixup.map]->name(), map_kind_name(maps_[fixup.map]->type()));
            value += fixup.offset;
            break;
        case Fixup::Kind::jump_table:
            if (tables.empty())
                for (const std::vector<uint32_t> &places : program.jump_tables) tables.push_back(TRY(add_table(places)));
            if (fixup.map >= tables.size())
                return fail(Errc::internal, "{}: a reference to jump table {} of {}", program.name, fixup.map, tables.size());
            value = tables[fixup.map] + fixup.offset;
            break;
        case Fixup::Kind::kfunc: continue; // says so when it is reached
        case Fixup::Kind::ksym:
            if (!fixup.weak)
                return fail(Errc::unsupported, "{}: instruction {}: {} is a kernel variable, which the emulator doesn't have",
                            program.name, fixup.insn, fixup.symbol);
            break;
        }
        first.src = 0;
        first.imm = static_cast<int32_t>(static_cast<uint32_t>(value));
        code.insns[fixup.insn + 1].imm = static_cast<int32_t>(static_cast<uint32_t>(value >> 32));
    }
    code.ops = TRY_IN(decode(code.insns, options_.stepping), "{}", program.name);
    for (const Fixup &fixup : program.fixups)
        if (const Helper found = fixup.kind == Fixup::Kind::kfunc ? find_emulated_kfunc(fixup.symbol) : nullptr;
            found && code.insns[fixup.insn].code == (BPF_JMP | BPF_CALL)) {
            Op &op = code.ops[op_index(fixup.insn, options_.stepping)];
            op.handler = handlers()[kDo_kfunc];
            op.imm = reinterpret_cast<uintptr_t>(found);
        }
    return {};
}

Result<void> Machine::enter(size_t program) {
    if (program >= codes_.size()) return fail(Errc::invalid_argument, "{}: there is no program {}", spec_->name, program);
    TRY(prepare(program));
    const uint64_t random = cpu_.random, recorded = cpu_.recorded_bytes, unprinted = cpu_.unprinted;
    cpu_ = {};
    cpu_.random = random;
    cpu_.recorded_bytes = recorded; // are kept from run to run
    cpu_.unprinted = unprinted;
    cpu_.may_goto = kMayGoto;
    cpu_.r[1] = argument_;
    cpu_.r[2] = length_;
    cpu_.r[10] = frame_address(0) + kFrameBytes;
    cpu_.frames[0].program = static_cast<uint32_t>(program);
    cpu_.op = entry_of(program, 0);
    if (options_.stepping) ++cpu_.op; // past the stop
    memory_.set_last_frame(0);
    for (Timer &timer : timers_) {
        timer.due = 0; // what the last run left behind comes first
        timer.fired = false;
    }
    timers_indexed_ = false;
    journal_.clear();
    return {};
}

const Op *Machine::entry_of(size_t program, size_t insn) const {
    return codes_[program].ops.data() + (options_.stepping ? 2 * insn : insn);
}

size_t Machine::pc() const {
    const Code &code = codes_[cpu_.frames[cpu_.depth].program];
    return insn_index(static_cast<size_t>(cpu_.op - code.ops.data()), options_.stepping);
}

size_t Machine::return_place(uint32_t n) const {
    const Code &code = codes_[cpu_.frames[n].program];
    const Op *back = cpu_.frames[n + 1].back;
    return back ? insn_index(static_cast<size_t>(back - code.ops.data()), options_.stepping) : 0;
}

const Op *Machine::function_at(uint64_t address) const {
    const uint32_t program = cpu_.frames[cpu_.depth].program;
    const uint64_t n = (address - kCodeAddress) / 8;
    if (address < kCodeAddress || address % 8 || n >= codes_[program].insns.size()) return nullptr;
    if (!codes_[program].ops[op_index(n, options_.stepping)].handler) return nullptr; // the second half of an instruction
    return entry_of(program, n);
}

// ---- running

Result<uint64_t> Machine::run() {
    if (cpu_.ended || !cpu_.op) return fail(Errc::invalid_argument, "the program has ended");
    for (;;) {
        const Event event = Interpreter::run(this, cpu_.executed);
        if (event == Event::stopped) { // only between steps
            ++cpu_.op;
            continue;
        }
        if (event == Event::finished) {
            if (next_timer()) {
                if (options_.limit && (cpu_.executed > options_.limit || overworked())) return Unexpected(explain(Event::limit));
                if (options_.stepping) ++cpu_.op;
                continue;
            }
            if (signal_ == Event::fault) return Unexpected(explain(std::exchange(signal_, Event::none)));
            if (Result<void> clean = finish(); !clean) return Unexpected(std::move(clean).error());
            return cpu_.r[0];
        }
        return Unexpected(explain(event));
    }
}

/// The end of a program: what it holds it would hold for ever.
Result<void> Machine::finish() {
    for (const auto &map : maps_)
        if (map->records_held())
            return fail(Errc::bad_input,
                        "{}: the program ended with {} reserved record{} of map {}, neither submitted nor discarded",
                        program().name, map->records_held(), map->records_held() == 1 ? "" : "s", map->name());
    cpu_.ended = true;
    return {};
}

Result<bool> Machine::step() {
    if (cpu_.ended) return false;
    const Insn insn = insns()[pc()];
    journal_.begin();
    cpu_.printed = printed_.size();
    cpu_.recorded = records_.size();
    journal_.note(&cpu_, offsetof(Cpu, frames));
    if (const uint8_t kind = insn.code & 0x07;
        (kind == BPF_JMP && (insn.code & 0xf0) >= BPF_CALL && (insn.code & 0xf0) <= BPF_EXIT) ||
        (kind == BPF_LD && (insn.code & 0xe0) != BPF_IMM)) // a packet's byte that isn't there ends the function
        for (uint32_t n = cpu_.depth; n < kFrames && n <= cpu_.depth + 1; ++n) journal_.note(&cpu_.frames[n], sizeof(Frame));
    note_store(insn);

    uint64_t ignored = 0;
    const Event event = Interpreter::run(this, ignored);
    if (event == Event::finished && next_timer()) {
        ++cpu_.op; // past the stop
        ++cpu_.executed;
        return true;
    }
    if (event == Event::finished && signal_ == Event::fault) {
        Error error = explain(std::exchange(signal_, Event::none));
        back();
        return Unexpected(std::move(error));
    }
    if (event == Event::finished) {
        Result<void> clean = finish();
        ++cpu_.executed;
        if (clean) return true;
        back();
        return Unexpected(std::move(clean).error());
    }
    if (event == Event::fault || event == Event::limit) {
        Error error = explain(event);
        back();
        return Unexpected(std::move(error));
    }
    ++cpu_.op; // past the stop
    ++cpu_.executed;
    if (options_.limit && cpu_.executed > options_.limit) return Unexpected(explain(Event::limit));
    return true;
}

bool Machine::back() {
    if (!journal_.undo()) return false;
    memory_.set_last_frame(cpu_.depth);
    printed_.resize(cpu_.printed);
    records_.resize(cpu_.recorded);
    timers_indexed_ = false;
    return true;
}

/// Before a store: the bytes that it will change.
void Machine::note_store(const Insn &insn) {
    const Form *form = find_form(insn);
    if (!form || !stores(form->shape)) return;
    const uint64_t address = cpu_.r[insn.dst] + static_cast<uint64_t>(int64_t{insn.off});
    if (uint8_t *at = memory_.find(address, form->bits / 8, true)) journal_.note(at, form->bits / 8);
}

// ---- what went wrong

std::string Machine::access_fault(const Insn &insn) const {
    const Form *form = find_form(insn);
    if (!form) return "an access";
    const bool load = form->shape == Shape::load || form->shape == Shape::load_acquire;
    const bool atomic =
        !load && form->shape != Shape::store_imm && form->shape != Shape::store_reg && form->shape != Shape::store_release;
    const int reg = load ? insn.src : insn.dst;
    const uint64_t address = cpu_.r[reg] + static_cast<uint64_t>(int64_t{insn.off}), size = form->bits / 8;
    return format("can't {} {} byte{} at r{} {} {} = {:#x}: {}",
                  load     ? "read"
                  : atomic ? "change"
                           : "write",
                  size, size == 1 ? "" : "s", reg, insn.off < 0 ? "-" : "+", insn.off < 0 ? -int{insn.off} : int{insn.off},
                  address, memory_.miss(address, size, !load));
}

Error Machine::explain(Event event) const {
    const size_t n = pc();
    const std::span<const Insn> code = insns();
    if (event == Event::limit && overworked() && cpu_.executed <= options_.limit)
        return make_error(Errc::busy,
                          format("{}: stopped at instruction {}: what its helpers copied, searched and printed counts as "
                                 "{} instructions, the limit",
                                 program().name, n, options_.limit));
    if (event == Event::limit)
        return make_error(Errc::busy,
                          format("{}: stopped after {} instructions, at instruction {}", program().name, options_.limit, n));
    std::string what = why_;
    for (const ProgramSpec::Poison &poison : program().poisoned)
        if (poison.insn == n) what = format("CO-RE: {}", poison.why);
    for (const Fixup &fixup : program().fixups)
        if (fixup.insn == n && fixup.kind == Fixup::Kind::kfunc && !find_emulated_kfunc(fixup.symbol))
            what = format("{} is a kernel function, which the emulator doesn't have", fixup.symbol);
    if (what.empty()) what = access_fault(code[n]);
    std::string text = format("{}: instruction {} ({})", function_of(program(), n), n, rawbpf::print(code.subspan(n)));
    if (const Source source = source_of(*spec_, program(), n); source.line) append(text, ", {}:{}", source.file, source.line);
    return make_error(Errc::bad_input, format("{}: {}", text, what));
}

uint64_t Machine::fault(std::string why) {
    signal_ = Event::fault;
    why_ = std::move(why);
    return 0;
}

void Machine::fault_target(int reg, bool call) {
    fault(format("r{} is {:#x}, which is {}", reg, cpu_.r[reg],
                 call ? "neither a function of the program nor a helper that the emulator has"
                      : "not the address of an instruction"));
}

// ---- for helpers

uint8_t *Machine::buffer(int reg, uint64_t size, bool write, std::string_view what) {
    uint8_t *at = memory_.find(cpu_.r[reg], size, write);
    if (!at) {
        fault(format("can't {} {}, {} bytes at r{} = {:#x}: {}", write ? "write" : "read", what, size, reg, cpu_.r[reg],
                     memory_.miss(cpu_.r[reg], size, write)));
        return nullptr;
    }
    if (write) journal_.note(at, size);
    add_work(size / kBytesPerWork);
    return at;
}

void Machine::print(std::string_view text) {
    add_work(text.size());
    if (printed_.size() + text.size() > kMostPrinted)
        cpu_.unprinted += text.size();
    else
        printed_ += text;
}

bool Machine::record(std::string_view bytes) {
    if (cpu_.recorded_bytes + bytes.size() + kRecordCost > kMostRecorded) return false;
    cpu_.recorded_bytes += bytes.size() + kRecordCost;
    records_.emplace_back(bytes);
    return true;
}

// Who runs it stays the same, and asking takes a microsecond or twenty.

const std::string &Machine::comm() {
    if (!comm_.empty()) return comm_;
    comm_ = sys::read_file("/proc/self/comm").value_or(std::string());
    if (comm_.ends_with('\n')) comm_.pop_back();
    return comm_;
}

uint64_t Machine::uid_gid() { // the real ones, which /proc lists first
    if (const int pid = sys::own_pid(); uid_gid_ == UINT64_MAX)
        uid_gid_ = sys::status_number(pid, "Gid").value_or(0) << 32 | sys::status_number(pid, "Uid").value_or(0);
    return uid_gid_;
}

EmulatedMap *Machine::map_with_address(uint64_t address) {
    const uint64_t n = (address - kHandleAddress) / kHandleBytes;
    return address >= kHandleAddress && address % kHandleBytes == 0 && n < maps_.size() ? maps_[n].get() : nullptr;
}

uint64_t Machine::map_address(uint32_t map) { return kHandleAddress + kHandleBytes * map; }

EmulatedMap *Machine::map_in(int reg) {
    EmulatedMap *map = map_with_address(cpu_.r[reg]);
    if (!map) fault(format("r{} = {:#x} isn't the address of a map", reg, cpu_.r[reg]));
    return map;
}

uint64_t Machine::next_random() { // xorshift64*, Vigna 2014
    cpu_.random ^= cpu_.random >> 12;
    cpu_.random ^= cpu_.random << 25;
    cpu_.random ^= cpu_.random >> 27;
    return (cpu_.random * 0x2545f4914f6cdd1d) >> 32;
}

} // namespace rawbpf::inline v0::emulator
