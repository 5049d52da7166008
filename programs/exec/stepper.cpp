// Steps in both directions, on the machine's journal.
//
// What a step changed is read from the journal, which holds the old bytes. Only bytes that a program can address are shown,
// not the insides of maps. Going back, the same list is made before the step is undone, with the two sides exchanged.
#include "programs/exec/stepper.h"

#include <algorithm>

#include "asm/helpers.h"
#include "asm/opcodes.h"
#include "asm/print.h"
#include "runtime/base/fail.h"
#include "runtime/base/hex.h"
#include "runtime/emulator/source.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::exec {

Result<void> enter_again(emulator::Machine &machine, const ObjectSpec &spec, size_t program, std::span<std::byte> memory,
                         bool packet) {
    if (packet)
        TRY(machine.set_packet(memory, spec.programs[program].type == BPF_PROG_TYPE_XDP));
    else
        TRY(machine.set_memory(memory));
    return machine.enter(program);
}

Result<std::unique_ptr<emulator::Machine>> enter(const ObjectSpec &spec, size_t program, std::span<std::byte> memory,
                                                 bool packet) {
    std::unique_ptr<emulator::Machine> machine = TRY(emulator::Machine::create(spec, {.limit = 0, .stepping = true}));
    TRY(enter_again(*machine, spec, program, memory, packet));
    return machine;
}

Stepper::Stepper(emulator::Machine &machine, const ObjectSpec &spec, std::vector<LabelPlace> labels)
    : machine_(&machine), spec_(&spec), labels_(std::move(labels)) {}

std::string_view Stepper::label(size_t insn) const {
    const ProgramSpec &program = machine_->program();
    size_t begin = 0; // of the function that the instruction belongs to
    for (const ProgramSpec::Subprogram &sub : program.subprograms)
        if (sub.insn <= insn && sub.insn >= begin) begin = sub.insn;
    const std::string_view function = emulator::function_of(program, insn);
    for (const LabelPlace &label : labels_)
        if (label.function == function && label.insn == insn - begin) return label.name;
    return {};
}

void Stepper::compare(const uint64_t (&before)[11]) {
    changes_.clear();
    auto bytes = [](const void *at, size_t size) { return std::string(static_cast<const char *>(at), size); };
    for (int n = 0; n < 11; ++n) {
        const uint64_t now = machine_->cpu().r[n];
        if (now != before[n]) changes_.push_back({n, 0, bytes(&before[n], 8), bytes(&now, 8)});
    }
    if (const auto *noted = machine_->journal().last())
        for (const emulator::Journal::Change &change : *noted)
            if (const uint64_t address = machine_->memory().address_of(change.at, change.before.size()))
                changes_.push_back(
                    {-1, address, bytes(change.before.data(), change.before.size()), bytes(change.at, change.before.size())});
}

bool Stepper::forward() {
    if (machine_->ended() || !fault_.empty()) return false;
    uint64_t before[11];
    std::copy(std::begin(machine_->cpu().r), std::end(machine_->cpu().r), before);
    const size_t insn = machine_->pc();
    printed_before_ = machine_->printed().size();
    Result<bool> stepped = machine_->step();
    if (!stepped) {
        fault_ = stepped.error().message();
        changes_.clear();
        return false;
    }
    compare(before);
    note_watched(insn);
    if (knowledge_) knowledge_->advance(*machine_);
    return true;
}

// Going back, a watched register's last change is no longer known unless it was this one, undone.
void Stepper::note_watched(size_t insn) {
    for (Watched &watched : watched_)
        for (const StepChange &change : changes_)
            if (change.reg == static_cast<int>(watched.reg))
                watched = {watched.reg, machine_->executed(), load<uint64_t>(bytes_of(change.before).data()), insn, true};
}

bool Stepper::watched_changed() const {
    return std::any_of(watched_.begin(), watched_.end(), [this](const Watched &watched) {
        return std::any_of(changes_.begin(), changes_.end(),
                           [&](const StepChange &change) { return change.reg == static_cast<int>(watched.reg); });
    });
}

Result<void> Stepper::watch(std::string_view what) {
    const std::string_view digits = what.starts_with('r') ? what.substr(1) : what;
    if (digits.empty() || digits.size() > 2 || !is_number(digits) || std::stoul(std::string(digits)) > 10)
        return fail(Errc::invalid_argument, "{} isn't a register, such as r3", what);
    const auto reg = static_cast<unsigned>(std::stoul(std::string(digits)));
    const auto found = std::find_if(watched_.begin(), watched_.end(), [reg](const Watched &w) { return w.reg == reg; });
    if (found != watched_.end())
        watched_.erase(found);
    else
        watched_.push_back({reg, 0, 0, 0, false});
    return {};
}

bool Stepper::back() {
    if (!fault_.empty()) { // the machine already stands before the instruction that failed
        fault_.clear();
        changes_.clear();
        return true;
    }
    uint64_t before[11];
    std::copy(std::begin(machine_->cpu().r), std::end(machine_->cpu().r), before);
    std::vector<StepChange> memory;
    compare(before);
    memory.swap(changes_);
    if (!machine_->back()) return false;
    if (knowledge_) knowledge_->back();
    for (Watched &watched : watched_)
        if (watched.step > machine_->executed()) watched.changed = false;
    changes_.clear();
    auto bytes = [](const uint64_t &value) { return std::string(reinterpret_cast<const char *>(&value), 8); };
    for (int n = 0; n < 11; ++n)
        if (machine_->cpu().r[n] != before[n]) changes_.push_back({n, 0, bytes(before[n]), bytes(machine_->cpu().r[n])});
    for (StepChange &change : memory) {
        std::swap(change.before, change.after);
        changes_.push_back(std::move(change));
    }
    printed_before_ = machine_->printed().size();
    return true;
}

uint64_t Stepper::run_on(uint64_t most) {
    uint64_t steps = 0;
    while (steps < most && forward()) {
        ++steps;
        if (machine_->ended() || breaks(machine_->pc()) || watched_changed()) break;
    }
    return steps;
}

uint64_t Stepper::run_back() {
    uint64_t steps = 0;
    while (back()) {
        ++steps;
        if (breaks(machine_->pc()) || watched_changed()) break;
    }
    return steps;
}

bool Stepper::go_to(uint64_t step) {
    while (machine_->executed() > step)
        if (!back()) return false;
    while (machine_->executed() < step)
        if (!forward()) return false;
    return true;
}

void Stepper::over() {
    const uint32_t depth = machine_->cpu().depth;
    do {
        if (!forward()) return;
    } while (!machine_->ended() && machine_->cpu().depth > depth && !breaks(machine_->pc()));
}

emulator::Source Stepper::line() const { return emulator::source_of(*spec_, machine_->program(), machine_->pc()); }

void Stepper::next_line() {
    const emulator::Source from = line();
    for (uint64_t steps = 0; steps < kMost && forward() && !machine_->ended(); ++steps) {
        const emulator::Source here = line();
        if (here.line != from.line || here.file != from.file || breaks(machine_->pc())) return;
        if (from.line == 0) return; // without lines an instruction is one
    }
}

Result<void> Stepper::break_at(std::string_view where) {
    const ProgramSpec &program = machine_->program();
    const size_t colon = where.rfind(':');
    const bool number = is_number(where) && where.size() < 8;
    if (number) {
        const size_t insn = std::stoul(std::string(where));
        if (insn >= program.insns.size())
            return fail(Errc::not_found, "{} has instructions 0 to {}", program.name, program.insns.size() - 1);
        breaks_.push_back(insn);
        return {};
    }
    if (colon != std::string_view::npos) {
        for (const LineInfo &info : program.line_info) {
            const emulator::Source source = emulator::source_of(*spec_, program, info.insn);
            const bool file = colon == 0 || source.file.ends_with(where.substr(0, colon));
            if (!file || std::to_string(source.line) != where.substr(colon + 1)) continue;
            breaks_.push_back(info.insn);
            return {};
        }
        return fail(Errc::not_found, "{}: no instruction comes from line {}", program.name, where);
    }
    for (const ProgramSpec::Subprogram &sub : program.subprograms)
        if (sub.name == where) {
            breaks_.push_back(sub.insn);
            return {};
        }
    return fail(Errc::not_found, "{}: there is no instruction, line or function {}", program.name, where);
}

void Stepper::toggle(size_t insn) {
    if (const auto found = std::find(breaks_.begin(), breaks_.end(), insn); found != breaks_.end())
        breaks_.erase(found);
    else
        breaks_.push_back(insn);
}

bool Stepper::breaks(size_t insn) const { return std::find(breaks_.begin(), breaks_.end(), insn) != breaks_.end(); }

std::string Stepper::printed() const {
    const std::string &all = machine_->printed();
    return all.substr(std::min(printed_before_, all.size()));
}

// ---- text

std::string pointee_name(const emulator::Machine &machine, uint64_t value) {
    std::string name = machine.memory().name(value);
    if (!name.empty()) return name;
    for (const auto &map : machine.maps())
        if (const_cast<emulator::Machine &>(machine).map_with_address(value) == map.get()) return format("map {}", map->name());
    return {};
}

std::string value_text(const emulator::Machine &machine, uint64_t value) {
    if (const std::string name = pointee_name(machine, value); !name.empty()) return format("{:#x} ({})", value, name);
    const auto number = static_cast<int64_t>(value);
    return number >= -4096 && number < 4096 ? format("{}", number) : format("{:#x}", value);
}

namespace {

std::string bytes_text(std::string_view bytes) {
    const std::string out = hex_text(bytes.substr(0, 16), " ");
    return bytes.size() > 16 ? out + " ..." : out;
}

} // namespace

std::string changes_text(const Stepper &stepper, bool known) {
    std::string out;
    for (const StepChange &change : stepper.changes()) {
        if (!out.empty()) out += ", ";
        if (change.reg >= 0)
            append(out, "r{} = {}", change.reg, value_text(stepper.machine(), load<uint64_t>(bytes_of(change.after).data())));
        if (change.reg >= 0) {
            if (!known || !stepper.knowledge()) continue;
            if (const std::string text = stepper.knowledge()->of_register(static_cast<unsigned>(change.reg)); !text.empty())
                append(out, " {{{}}}", text);
        } else {
            append(out, "[{}] = {}", stepper.machine().memory().name(change.address), bytes_text(change.after));
        }
    }
    return out;
}

std::string instruction_text(const Stepper &stepper, size_t n) {
    const emulator::Machine &machine = stepper.machine();
    const ObjectSpec &spec = stepper.spec();
    const std::span<const Insn> code = machine.insns();
    const ProgramSpec &program = machine.program();
    const Form *form = find_form(code[n]);
    PrintNames names;
    std::string target, wide;
    if (form && form->shape == Shape::call_helper)
        if (const HelperInfo *helper = find_helper(int64_t{code[n].imm})) {
            target = format("bpf_{}", helper->name);
            names.call = target;
        }
    if (form && form->shape == Shape::call_local) {
        const size_t callee = n + 1 + static_cast<size_t>(int64_t{code[n].imm});
        target = emulator::function_of(program, callee);
        if (target.empty() || target == program.name) target = format("{}", callee);
        names.call = target;
    }
    for (const Fixup &fixup : program.fixups)
        if (fixup.insn == n && (fixup.kind == Fixup::Kind::map_fd || fixup.kind == Fixup::Kind::map_value)) {
            wide = spec.maps[fixup.map].name;
            if (fixup.offset) append(wide, "+{}", fixup.offset);
            names.wide = wide;
        }
    const bool jump_long = form && form->shape == Shape::jump_long;
    if (form &&
        (jump_long || form->shape == Shape::jump || form->shape == Shape::branch_imm || form->shape == Shape::branch_reg)) {
        const int64_t to = static_cast<int64_t>(n) + 1 + (jump_long ? code[n].imm : code[n].off);
        target = to < 0 ? std::string_view() : stepper.label(static_cast<size_t>(to));
        if (target.empty()) target = format("{}", to);
        names.target = target;
    }
    std::string out(stepper.label(n));
    if (!out.empty()) out += ": ";
    append_insn(out, code.subspan(n), {}, names);
    return out;
}

} // namespace rawbpf::inline v0::exec
