// One function under construction.
//
// Beside the instructions it keeps what the verifier will check, as far as one pass from top to bottom can know it:
//
//      live_         the registers that may have been set on some way to here. A call takes r1 to r5. At a label the ways that
//                    jump to it are joined. A register outside the set is unset on every way, so a complaint about it is never
//                    wrong.
//      reachable_    whether any way leads here at all
//      reservation_  which ring buffer record is held; a jump may not leave the block that holds it
//
// Calls, and the patterns made of them, are in code_call.cpp.
// Jumps are written with distance 0; finish() fills in the distances when all labels have their positions.
#include "asm/builder.h"

namespace rawbpf::inline v0 {

namespace {

constexpr uint16_t kAllRegisters = 0x7ff;

std::string line_of(Where where) { return "line " + std::to_string(where.line()); }

} // namespace

Code::Code(Builder &builder, std::string section, std::string name, int arguments, Where where)
    : builder_(builder), made_(where), arguments_(arguments), live_(bit(10)) {
    function_.section = std::move(section);
    function_.name = std::move(name);
    for (int n = 1; n <= arguments; ++n) set(n);
}

void Code::complain(Where where, std::string message) { builder_.complain(where, function_.name + ": " + std::move(message)); }

// --- Emitting ---------------------------------------------------------------------------------------------------------------

void Code::push(Insn insn, Where where) {
    if (else_pending_) {
        complain(where,
                 "the block before hasn't ended: use what if_, lookup and reserve return at once, for .else_, and don't keep it");
        else_pending_ = false;
    }
    if (!reachable_ && !unreachable_told_) {
        complain(where, "this code can't be reached: the code before it ends in an exit or a jump, and no label is bound here");
        unreachable_told_ = true;
    }
    const uint32_t at = static_cast<uint32_t>(function_.insns.size());
    if (!note_.empty()) {
        function_.notes.resize(at);
        function_.notes.push_back(std::move(note_));
        note_.clear();
    }
    const auto &lines = function_.lines;
    if (lines.empty() || lines.back().line != where.line() || lines.back().file != where.file_name()) {
        SourceLine line;
        line.insn = at;
        line.file = where.file_name();
        line.line = static_cast<uint32_t>(where.line());
        function_.lines.push_back(std::move(line));
    }
    function_.insns.push_back(insn);
}

void Code::use(int reg, Where where, std::string_view what) {
    if (!reachable_ || (live_ & bit(reg))) return;
    std::string text = std::string(what) + " reads r" + std::to_string(reg);
    if (reg >= 1 && reg <= 5 && !lost_[reg].by.empty())
        text += ", but " + lost_[reg].by + " on line " + std::to_string(lost_[reg].line) +
                " has cleared it: r1 to r5 don't survive a call (r6 to r9 do)";
    else if (reg == 0 && !lost_[0].by.empty())
        text += ", but " + lost_[0].by + " on line " + std::to_string(lost_[0].line) + " returns nothing";
    else
        text += ", which nothing has set";
    complain(where, std::move(text));
    set(reg); // once is enough
}

void Code::append(const Form &form, const Operands &operands, Where where) {
    Encoded encoded = encode(form, operands);
    if (!encoded) {
        complain(where, describe(encoded.problem, form, operands));
    } else {
        const std::string_view name = form.name;
        if (reads_dst(form)) use(operands.dst, where, name);
        if (form.fields() & kSrc) use(operands.src, where, name);
        if (form.shape == Shape::compare_swap) use(0, where, name);
        if (form.shape == Shape::packet_abs || form.shape == Shape::packet_ind) use(6, where, name);
        push(encoded.insn, where);
        if (form.shape == Shape::load_wide) function_.insns.push_back(encoded.second);
    }
    if (writes_dst(form.shape) && operands.dst >= 0 && operands.dst < 10) set(operands.dst);
    if (form.shape == Shape::packet_abs || form.shape == Shape::packet_ind) after_call("the packet load", true, where);
}

void Code::emit(std::string_view name, const Operands &operands, Where where) {
    const Form *form = find_form(name);
    if (form == nullptr) return complain(where, "there is no instruction `" + std::string(name) + "`");
    append(*form, operands, where);
    if (form->shape == Shape::jump || form->shape == Shape::jump_long || form->shape == Shape::jump_reg ||
        form->shape == Shape::exit)
        end_path();
    if (form->shape == Shape::call_helper || form->shape == Shape::call_local || form->shape == Shape::call_kfunc ||
        form->shape == Shape::call_reg)
        after_call(name, true, where);
}

void Code::note(std::string_view text) {
    if (!note_.empty()) note_ += "; ";
    note_ += text;
}

void Code::operate(std::string_view symbol, int bits, int dst, Source source, Where where) {
    append(*find_form(source.is_register ? Shape::alu_reg : Shape::alu_imm, symbol, bits), operands_of(dst, source), where);
}

// --- Two-slot loads: numbers, and things that only the loader knows the address of --------------------------------------------

void Code::refer(RefKind kind, std::string symbol, int64_t addend) {
    Ref ref;
    ref.insn = static_cast<uint32_t>(function_.insns.size());
    ref.kind = kind;
    ref.symbol = std::move(symbol);
    ref.addend = addend;
    function_.refs.push_back(std::move(ref));
}

void Code::wide(int dst, Wide kind, Where where) {
    constexpr std::string_view kNames[] = {"lddw", "lddw_map", "lddw_value", "lddw_btf", "lddw_function"};
    Operands operands;
    operands.dst = dst;
    append(*find_form(kNames[static_cast<int>(kind)]), operands, where);
}

void Code::load_map(WritableReg dst, MapRef map, Where where) {
    if (map.owner_ != &builder_) return complain(where, "this map belongs to another builder");
    refer(RefKind::map, builder_.unit_.maps[map.index_].name);
    wide(dst.number(), Wide::map_fd, where);
}

void Code::load_global(WritableReg dst, GlobalRef global, Where where) {
    if (global.owner_ != &builder_) return complain(where, "this variable belongs to another builder");
    const MapDef &def = builder_.unit_.maps[global.index_];
    if (global.off_ >= def.value_size)
        complain(where, "variable `" + def.name + "` has " + std::to_string(def.value_size) + " bytes; there is nothing at " +
                            std::to_string(global.off_));
    refer(RefKind::map_value, def.name, global.off_);
    wide(dst.number(), Wide::map_value, where);
}

void Code::load_function(WritableReg dst, const Code &function, Where where) {
    if (&function.builder_ != &builder_) return complain(where, "this function belongs to another builder");
    refer(RefKind::function, function.name());
    wide(dst.number(), Wide::function, where);
}

void Code::load_ksym(WritableReg dst, std::string name, Where where) {
    refer(RefKind::ksym, std::move(name));
    wide(dst.number(), Wide::btf_id, where);
}

// --- Memory -----------------------------------------------------------------------------------------------------------------

bool Code::within(const Mem &mem, int64_t size, Where where) {
    if (mem.owner != nullptr && mem.owner != this) {
        complain(where, "this stack slot belongs to another function");
        return false;
    }
    if (mem.off >= mem.low && (mem.limit == INT64_MAX || mem.off + size <= mem.limit)) return true;
    std::string name = "the stack slot";
    for (const Named &slot : slots_)
        if (slot.off == mem.low && !slot.name.empty()) name = "stack slot `" + slot.name + "`";
    complain(where, "bytes " + std::to_string(mem.off - mem.low) + " to " + std::to_string(mem.off - mem.low + size - 1) +
                        " of " + name + ", which has " + std::to_string(mem.limit - mem.low));
    return false;
}

void Code::address(WritableReg dst, Mem mem, Where where) {
    if (!within(mem, 1, where)) return set(dst.number());
    if (note_.empty() && mem.base == 10)
        for (const Named &slot : slots_)
            if (slot.off <= mem.off && mem.off < slot.off + static_cast<int64_t>(slot.size) && !slot.name.empty())
                note("&" + slot.name);
    if (mem.base != dst.number()) mov(dst, Reg(mem.base), where);
    if (mem.off != 0) add(dst, runtime(mem.off), where);
}

void Code::load_form(Shape shape, std::string_view symbol, int bits, int dst, const Mem &from, Where where) {
    if (!within(from, bits / 8, where)) return set(dst);
    append(*find_form(shape, symbol, bits), operands_of_load(dst, from), where);
}

void Code::load_field_size(int bits, WritableReg dst, Reg base, std::string field, Where where) {
    refer(RefKind::field, std::move(field));
    load_form(Shape::load, unsigned_type(bits), bits, dst.number(), base, where);
}

void Code::add_field(WritableReg dst, std::string field, Where where) {
    refer(RefKind::field, std::move(field));
    add(dst, 0, where);
}

void Code::memory(Shape shape, std::string_view symbol, int bits, const Mem &to, int src, Where where) {
    if (!within(to, bits / 8, where)) return;
    append(*find_form(shape, symbol, bits), operands_of_store(to, src), where);
}

void Code::store_number(int bits, const Mem &to, int64_t number, Where where) {
    if (!within(to, bits / 8, where)) return;
    append(*find_form(Shape::store_imm, unsigned_type(bits), bits), operands_of_store(to, 0, number), where);
}

// --- The stack --------------------------------------------------------------------------------------------------------------

Slot Code::stack(uint32_t size, uint32_t align, std::string name, Where where) {
    constexpr uint32_t kStack = 512; // MAX_BPF_STACK, include/linux/filter.h
    if (align == 0 || (align & (align - 1)) != 0 || align > 8) {
        complain(where, "a stack slot is aligned to 1, 2, 4 or 8 bytes, not " + std::to_string(align));
        align = 8;
    }
    if (size == 0) {
        complain(where, "a stack slot of no bytes");
        size = 1;
    }
    const uint64_t used = (uint64_t{stack_used_} + size + align - 1) / align * align;
    if (used > kStack) {
        if (!stack_told_) {
            std::string text = "the stack has 512 bytes: " + std::to_string(stack_used_) + " are taken";
            if (!slots_.empty()) {
                text += " (";
                for (const Named &slot : slots_)
                    text += (&slot == slots_.data() ? "" : ", ") + (slot.name.empty() ? "slot" : slot.name) + " " +
                            std::to_string(slot.size);
                text += ")";
            }
            complain(where, text + ", " + std::to_string(size) + " more don't fit; larger things live in a per-CPU array");
            stack_told_ = true;
        }
        return {this, -static_cast<int32_t>(kStack), size};
    }
    stack_used_ = static_cast<uint32_t>(used);
    const int32_t off = -static_cast<int32_t>(used);
    slots_.push_back({off, size, std::move(name)});
    return {this, off, size};
}

void Code::zero(Slot slot, Where where) {
    for (uint32_t at = 0; at < slot.size_;) {
        uint32_t step = 8;
        while (at + step > slot.size_ || (slot.off_ + static_cast<int64_t>(at)) % step != 0) step /= 2;
        store_number(static_cast<int>(step) * 8, slot + runtime(at), 0, where);
        at += step;
    }
}

// --- Jumps ------------------------------------------------------------------------------------------------------------------

Label Code::label(std::string name, Where where) {
    LabelState state;
    state.name = std::move(name);
    state.made = where;
    state.used_where = where;
    labels_.push_back(std::move(state));
    return {this, static_cast<uint32_t>(labels_.size() - 1)};
}

bool Code::check_label(Label label, Where where) {
    if (label.owner_ == this) return true;
    complain(where, "this label belongs to another function");
    return false;
}

void Code::place(uint32_t index, bool only_forward) {
    LabelState &state = labels_[index];
    state.at = static_cast<int64_t>(function_.insns.size());
    state.reservation = reservation_;
    if (!reachable_ && !state.used && !only_forward) { // jumps from further down may come here; what they set isn't known yet
        live_ = kAllRegisters;
        reachable_ = true;
    } else {
        live_ = static_cast<uint16_t>((reachable_ ? live_ : bit(10)) | state.live);
        reachable_ = reachable_ || state.reached;
    }
    unreachable_told_ = false;
}

void Code::bind(Label label, Where where) {
    if (!check_label(label, where)) return;
    LabelState &state = labels_[label.index_];
    if (state.at >= 0) return complain(where, "label `" + state.name + "` is bound a second time");
    place(label.index_, false);
}

void Code::jump_form(const Form &form, Operands operands, uint32_t label, Where where) {
    const size_t before = function_.insns.size();
    append(form, operands, where);
    LabelState &state = labels_[label];
    if (!state.used) state.used_where = where;
    state.used = true;
    if (reachable_) {
        state.live |= live_;
        state.reached = true;
    }
    if (function_.insns.size() != before) jumps_.push_back({static_cast<uint32_t>(before), label, reservation_, where});
}

void Code::jump(Label to, Where where) {
    if (!check_label(to, where)) return;
    jump_form(*find_form("ja"), {}, to.index_, where);
    end_path();
}

void Code::jump_long(Label to, Where where) {
    if (!check_label(to, where)) return;
    jump_form(*find_form("ja32"), {}, to.index_, where);
    end_path();
}

void Code::may_goto(Label to, Where where) {
    if (!check_label(to, where)) return;
    jump_form(*find_form("may_goto"), {}, to.index_, where);
}

void Code::jump_if(Condition condition, Label to, Where where) {
    if (!check_label(to, where)) return;
    const Form &form = form_of(condition);
    Operands operands = operands_of(condition.left, condition.right);
    if (!condition.inverted) return jump_form(form, operands, to.index_, where);
    operands.off = 1;
    append(form, operands, where);
    jump_form(*find_form("ja"), {}, to.index_, where);
}

void Code::exit(Where where) {
    if (!function_.section.empty() || function_.global) use(0, where, "exit");
    if (reservation_ != 0 && reachable_)
        complain(where, "exit would leak the ring buffer record that is held here; leave the block first, which submits it");
    push(encode("exit", {}).insn, where);
    end_path();
}

void Code::ret(Value64 value, Where where) {
    mov(r0, value, where);
    exit(where);
}

uint32_t Code::begin_if(Condition condition, Where where) {
    Label end = label("end of if", where);
    jump_if(!condition, end, where);
    return end.index_;
}

uint32_t Code::begin_else(uint32_t otherwise, Where where) {
    Label end = label("end of else", where);
    if (reachable_) jump(end, where);
    place(otherwise, true);
    return end.index_;
}

// --- The end ----------------------------------------------------------------------------------------------------------------

void Code::finish() {
    if (function_.insns.empty())
        complain(made_, "has no instructions");
    else if (reachable_)
        complain(made_, "the code runs past its end; it must end with exit or ret");

    for (const LabelState &state : labels_)
        if (state.used && state.at < 0)
            complain(state.used_where,
                     "the jump goes to label `" + state.name + "` (made on " + line_of(state.made) + "), which is never bound");
    for (const LabelState &state : labels_)
        if (state.at == static_cast<int64_t>(function_.insns.size()) && state.used && !reachable_)
            complain(state.used_where, "the jump goes to label `" + state.name + "`, which is bound behind the last instruction");

    for (const Jump &jump : jumps_) {
        const LabelState &state = labels_[jump.label];
        if (state.at < 0) continue;
        if (state.reservation != jump.reservation)
            complain(jump.where,
                     jump.reservation != 0
                         ? "the jump to `" + state.name + "` leaves the block that holds a ring buffer record, which would leak"
                         : "the jump to `" + state.name + "` enters a block that holds a ring buffer record");
        Insn &insn = function_.insns[jump.insn];
        const Form &form = *find_form(insn);
        Operands operands;
        const int64_t distance = state.at - static_cast<int64_t>(jump.insn) - 1;
        operands.off = distance;
        if (form.shape == Shape::jump_long) {
            insn.imm = static_cast<int32_t>(distance); // a function has fewer instructions than that by far
        } else if (!detail::fits(distance, INT16_MIN, INT16_MAX)) {
            complain(jump.where, describe(Problem::offset_range, form, operands) + " (label `" + state.name + "`)");
        } else {
            insn.off = static_cast<int16_t>(distance);
        }
    }
    if (!function_.notes.empty()) function_.notes.resize(function_.insns.size());
}

} // namespace rawbpf::inline v0
