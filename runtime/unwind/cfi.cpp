// The entries of .eh_frame and .debug_frame, and the machine that runs their programs.
//
//      length | id | CIE: version "zPLR" alignments return column ...... | program: DW_CFA_def_cfa rsp 8, offset rip CFA-8
//      length | id | FDE: start  length  ............................... | program: advance_loc 1, def_cfa_offset 16, ...
//               '-- how far back its CIE lies (.eh_frame), or where it lies (.debug_frame)
//
// A program is a table of unwind rules, compressed: it says what changes from one instruction of the function to the next. We run
// it once, follow three registers of it (frame pointer, return address, stack pointer), and write down a rule at each address
// where something has changed. Expressions are bytecode for another machine, which nobody needs: compilers and linkers emit four,
// and they are recognised by their bytes.
//
// The bytes are hostile. A Cursor that reads past its end turns bad and stays so, and its user checks once, at the end. There are
// no loops but over bytes that are consumed; what a CIE repeats for each of its FDEs is bounded.
//
// Source: LSB 5.0 chapter 10.6 (.eh_frame), DWARF 5 section 6.4 and 7.24, DWARF for the Arm 64-bit architecture.
#include "runtime/unwind/cfi.h"

#include <algorithm>
#include <array>
#include <elf.h>
#include <span>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::unwind {
namespace {

constexpr size_t kMaxInitial = 1024; // bytes of a CIE's program, which runs again whenever its FDEs alternate with others'
constexpr size_t kMaxRemembered = 64;

class Cursor {
  public:
    explicit Cursor(Bytes bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}
    [[nodiscard]] size_t left() const { return static_cast<size_t>(end_ - at_); }
    [[nodiscard]] bool bad() const { return bad_; }
    [[nodiscard]] const std::byte *at() const { return at_; }
    [[nodiscard]] Bytes rest() const { return {at_, left()}; }
    void fail() { bad_ = true, at_ = end_; }

    Bytes take(uint64_t size) {
        if (left() < size) return fail(), Bytes{};
        at_ += size;
        return {at_ - size, static_cast<size_t>(size)};
    }
    template <class T> T fixed() {
        if (left() < sizeof(T)) return fail(), T{};
        at_ += sizeof(T);
        return load<T>(at_ - sizeof(T));
    }
    uint64_t uleb() { return leb(false); }
    int64_t sleb() { return static_cast<int64_t>(leb(true)); }

  private:
    // Bits beyond the 64th are dropped, as everybody does.
    uint64_t leb(bool with_sign) {
        uint64_t value = 0;
        for (uint32_t shift = 0;; shift += 7) {
            const auto byte = fixed<uint8_t>();
            if (shift < 64) value |= uint64_t(byte & 0x7f) << shift;
            if (byte & 0x80) continue;
            if (with_sign && byte & 0x40 && shift + 7 < 64) value |= ~uint64_t{0} << (shift + 7);
            return value;
        }
    }

    const std::byte *at_, *end_;
    bool bad_ = false;
};

enum : uint8_t { kOmit = 0xff, kFormat = 0x0f, kRelative = 0x70, kIndirect = 0x80 }; // DW_EH_PE_*

uint64_t pointer(const Frames &frames, uint8_t encoding, Cursor &cursor) {
    const auto offset = [&] { return static_cast<uint64_t>(cursor.at() - frames.bytes.data()); };
    uint64_t base = 0;
    switch (encoding & kRelative) {
    case 0x00: break;
    case 0x10: base = frames.address + offset(); break;
    case 0x20: base = frames.text; break;
    case 0x30: base = frames.data; break;
    case 0x50: cursor.take(-(frames.address + offset()) & 7); break; // aligned
    default: cursor.fail();
    }
    switch (encoding & kFormat) {
    case 0x0:
    case 0x4:
    case 0xc: return base + cursor.fixed<uint64_t>();
    case 0x1: return base + cursor.uleb();
    case 0x2: return base + cursor.fixed<uint16_t>();
    case 0x3: return base + cursor.fixed<uint32_t>();
    case 0x9: return base + static_cast<uint64_t>(cursor.sleb());
    case 0xa: return base + static_cast<uint64_t>(int64_t{cursor.fixed<int16_t>()});
    case 0xb: return base + static_cast<uint64_t>(int64_t{cursor.fixed<int32_t>()});
    default: return cursor.fail(), 0;
    }
}

// Products of what the file says: they wrap, and what doesn't fit a rule in the end is odd.
int64_t times(uint64_t a, int64_t b) { return static_cast<int64_t>(a * static_cast<uint64_t>(b)); }

bool fits(int64_t bytes, __s16 &out) {
    out = static_cast<__s16>(bytes / 8);
    return out * int64_t{8} == bytes;
}

UnwindRule rule_of(const Frames &frames, const Cie &cie, const State &state) {
    constexpr UnwindRule odd = {UNWIND_ODD, 0, 0, 0, 0};
    const Machine &machine = *frames.machine;
    const Saved &fp = state.saved[State::fp], &ra = state.saved[State::ra];
    if (cie.signal) return {UNWIND_SIGNAL, 0, 0, 0, 0};
    if (ra.how == Saved::undefined) return {UNWIND_END, 0, 0, 0, 0};
    UnwindRule rule = {state.cfa, 0, 0, 0, 0};
    if (state.cfa == UNWIND_ODD || cie.return_column != machine.ra) return odd;
    if (!fits(state.cfa_offset, rule.cfa) || state.saved[State::sp].how != Saved::same) return odd;

    if (ra.how == Saved::at_cfa) {
        if (!fits(ra.offset, rule.ra) || (!machine.link && rule.ra != -1)) return odd;
    } else if (ra.how == Saved::same && machine.link)
        rule.flags |= UNWIND_RA_IN_LR;
    else if (ra.how == Saved::in_di)
        rule.flags |= UNWIND_RA_IN_DI;
    else
        return odd;
    if (state.is_signed) rule.flags |= UNWIND_RA_SIGNED;

    if (fp.how == Saved::at_fp && (state.cfa == UNWIND_FP_DEREF || state.cfa == UNWIND_R10)) {
        rule.flags |= UNWIND_FP_BY_FP;
        return fits(fp.offset, rule.fp) ? rule : odd;
    }
    if (state.cfa == UNWIND_FP_DEREF) return odd;
    if (fp.how == Saved::same) return rule;
    return fp.how == Saved::at_cfa && fits(fp.offset, rule.fp) && rule.fp != 0 ? rule : odd;
}

// What a DW_OP_* program means, if it is one of those that compilers, binutils and OpenSSL write.
//
//      breg7 8  breg16 0  lit15 and  lit11 ge  lit3 shl  plus     the PLT: rsp + 8, and 8 more behind the stub's push
//      breg6 N  deref                                             a function that aligned its stack
//      breg7 N  deref  plus_uconst 8                              an rsp that was put away on the new stack
void set_cfa_expression(const Machine &machine, Bytes program, State &state) {
    constexpr uint8_t plt[] = {0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, deref[] = {0x06}, deref_8[] = {0x06, 0x23, 8};
    state.cfa = UNWIND_ODD, state.expression = true;
    Cursor cursor(program);
    const uint64_t base = cursor.fixed<uint8_t>() - uint64_t{0x70}; // DW_OP_breg0
    state.cfa_offset = cursor.sleb();
    const auto rest_is = [&](std::span<const uint8_t> bytes) {
        return cursor.left() == bytes.size() && std::memcmp(cursor.at(), bytes.data(), bytes.size()) == 0;
    };
    if (base == machine.sp && rest_is(deref_8))
        state.cfa = UNWIND_SP_DEREF;
    else if (base == machine.fp && rest_is(deref))
        state.cfa = UNWIND_FP_DEREF;
    else if (base == machine.sp && machine.described_plt && rest_is(plt))
        state.cfa = UNWIND_PLT;
}

// "breg6 N": where a function that aligned its stack put the caller's frame pointer.
Saved saved_by_expression(const Machine &machine, Bytes program) {
    Cursor cursor(program);
    const bool by_fp = cursor.fixed<uint8_t>() == 0x70 + machine.fp;
    const int64_t offset = cursor.sleb();
    return {by_fp && !cursor.bad() && cursor.left() == 0 ? Saved::at_fp : Saved::odd, offset};
}

// Runs a program from `address` on; without `out` a CIE's, which has no addresses. `state` is its state in the end.
const char *run(const Frames &frames, const Cie &cie, Bytes program, uint64_t address, uint64_t end, State &state,
                std::vector<Change> *out) {
    Cursor cursor(program);
    std::vector<State> remembered; // seldom more than one
    const Machine &machine = *frames.machine;
    const auto slot = [&](uint64_t reg) {
        return reg == machine.fp ? State::fp : reg == machine.ra ? State::ra : reg == machine.sp ? State::sp : State::other;
    };
    const auto save = [&](uint64_t reg, Saved::How how, int64_t offset = 0) { state.saved[slot(reg)] = {how, offset}; };
    const auto restore = [&](uint64_t reg) { state.saved[slot(reg)] = cie.initial.saved[slot(reg)]; };
    const auto cfa_register = [&](uint64_t reg) {
        state.cfa = state.expression                                   ? UNWIND_ODD
                    : reg == machine.sp                                ? UNWIND_SP
                    : reg == machine.fp                                ? UNWIND_FP
                    : reg == machine.r10 && machine.r10 != kNoRegister ? UNWIND_R10
                                                                       : UNWIND_ODD;
    };
    const auto cfa = [&](uint64_t reg, int64_t offset) {
        state.expression = false, state.cfa_offset = offset;
        cfa_register(reg);
    };
    const auto cfa_offset = [&](int64_t offset) {
        state.cfa_offset = offset;
        if (state.expression) state.cfa = UNWIND_ODD;
    };
    // Whether the CFA is the caller's stack pointer is all that is asked of it.
    const auto value = [&](uint64_t reg, int64_t offset) {
        save(reg, slot(reg) == State::sp && offset == 0 ? Saved::same : Saved::odd);
    };

    const auto in_register = [&](uint64_t reg) {
        if (reg == machine.fp && machine.root_in_fp) return Saved::undefined;
        return reg == machine.di && machine.di != kNoRegister ? Saved::in_di : Saved::odd;
    };

    while (cursor.left() > 0) {
        const auto op = cursor.fixed<uint8_t>();
        uint64_t to = address, reg = op & 0x3f;
        const auto advance = [&](uint64_t units) { to = address + units * cie.code_align; };
        const auto scaled = [&] { return times(cursor.uleb(), cie.data_align); };
        const auto scaled_signed = [&] { return times(static_cast<uint64_t>(cursor.sleb()), cie.data_align); };
        switch (op & 0xc0 ? op & 0xc0 : op) {
        case 0x40: advance(reg); break;
        case 0x80: save(reg, Saved::at_cfa, scaled()); break;
        case 0xc0: restore(reg); break;
        case 0x00: break; // nop
        case 0x01: to = pointer(frames, cie.encoding, cursor); break;
        case 0x02: advance(cursor.fixed<uint8_t>()); break;
        case 0x03: advance(cursor.fixed<uint16_t>()); break;
        case 0x04: advance(cursor.fixed<uint32_t>()); break;
        case 0x05: reg = cursor.uleb(), save(reg, Saved::at_cfa, scaled()); break;
        case 0x06: restore(cursor.uleb()); break;
        case 0x07: save(cursor.uleb(), Saved::undefined); break;
        case 0x08: reg = cursor.uleb(), save(reg, slot(reg) == State::sp ? Saved::odd : Saved::same); break;
        case 0x09: // in another register
            reg = cursor.uleb();
            save(reg, slot(reg) == State::ra ? in_register(cursor.uleb()) : (cursor.uleb(), Saved::odd));
            break;
        case 0x0a:
            if (remembered.size() == kMaxRemembered) return "its program saves too many states";
            remembered.push_back(state);
            break;
        case 0x0b:
            if (remembered.empty()) return "its program restores a state that it didn't save";
            state = remembered.back();
            remembered.pop_back();
            break;
        case 0x0c: reg = cursor.uleb(), cfa(reg, static_cast<int64_t>(cursor.uleb())); break;
        case 0x0d: cfa_register(cursor.uleb()); break;
        case 0x0e: cfa_offset(static_cast<int64_t>(cursor.uleb())); break;
        case 0x0f: set_cfa_expression(machine, cursor.take(cursor.uleb()), state); break;
        case 0x10: {
            reg = cursor.uleb();
            const Saved saved = saved_by_expression(machine, cursor.take(cursor.uleb()));
            save(reg, saved.how, saved.offset);
            break;
        }
        case 0x11: reg = cursor.uleb(), save(reg, Saved::at_cfa, scaled_signed()); break;
        case 0x12: reg = cursor.uleb(), cfa(reg, scaled_signed()); break;
        case 0x13: cfa_offset(scaled_signed()); break;
        case 0x14: reg = cursor.uleb(), value(reg, scaled()); break;
        case 0x15: reg = cursor.uleb(), value(reg, scaled_signed()); break;
        case 0x16: reg = cursor.uleb(), cursor.take(cursor.uleb()), save(reg, Saved::odd); break;
        case 0x1d: advance(cursor.fixed<uint64_t>()); break;  // MIPS_advance_loc8
        case 0x2c:                                            // AARCH64_negate_ra_state_with_pc
        case 0x2d: state.is_signed = !state.is_signed; break; // AARCH64_negate_ra_state
        case 0x2e: cursor.uleb(); break;                      // GNU_args_size
        case 0x2f:
            reg = cursor.uleb(), save(reg, Saved::at_cfa, times(static_cast<uint64_t>(scaled()), -1));
            break; // GNU_negative_offset_extended
        default: return "its program has an unknown instruction";
        }
        if (cursor.bad()) return "its program ends within an instruction";
        if (to == address) continue;
        if (!out || to < address) return "its program goes back to a lower address";
        out->push_back({address, rule_of(frames, cie, state)});
        address = to;
        if (address >= end) return nullptr;
    }
    if (out) out->push_back({address, rule_of(frames, cie, state)});
    return nullptr;
}

} // namespace

Frames frames_of(const elf::Elf &file, const elf::Section &section, bool eh) {
    const auto address = [&](std::string_view name) {
        const elf::Section *base = file.find_section(name);
        return base ? base->address : 0;
    };
    Frames frames{file.contents(section), section.address, address(".text"), address(".got"), eh};
    if (const Machine *machine = machine_of_elf(file.machine())) frames.machine = machine;
    return frames;
}

Entry read_entry(const Frames &frames, uint64_t at) {
    Entry entry;
    if (at >= frames.bytes.size()) return entry;
    Cursor cursor(frames.bytes.subspan(at));
    uint64_t length = cursor.fixed<uint32_t>();
    const bool wide = length == UINT32_MAX;
    if (wide) length = cursor.fixed<uint64_t>();
    Cursor body(cursor.take(length));
    entry.next = frames.bytes.size() - cursor.left();
    entry.kind = cursor.bad() ? Entry::bad : Entry::nothing;
    if (length == 0 || cursor.bad()) return entry;

    const uint64_t id_at = static_cast<uint64_t>(body.at() - frames.bytes.data());
    const uint64_t id = wide && !frames.eh ? body.fixed<uint64_t>() : body.fixed<uint32_t>();
    entry.cie_at = frames.eh ? id_at - id : id;
    entry.rest = body.rest();
    if (body.bad())
        entry.kind = Entry::bad;
    else if (id == (frames.eh ? 0 : wide ? UINT64_MAX : UINT32_MAX))
        entry.kind = Entry::cie;
    else
        entry.kind = Entry::fde;
    return entry;
}

const char *read_cie(const Frames &frames, uint64_t at, Cie &out) {
    const Entry entry = read_entry(frames, at);
    if (entry.kind != Entry::cie) return "it refers to a CIE that doesn't exist";
    Cie cie;
    Cursor cursor(entry.rest);
    const auto version = cursor.fixed<uint8_t>();
    if (version != 1 && version != 3 && version != 4) return "rawbpf doesn't know its CIE's version";
    std::array<char, 8> letters = {};
    for (size_t i = 0;; ++i) {
        const auto letter = cursor.fixed<char>();
        if (letter == 0) break;
        if (i + 1 == letters.size()) return "rawbpf doesn't know its CIE's augmentation";
        letters[i] = letter;
    }
    if (version == 4 && cursor.fixed<uint16_t>() != 8) return "its CIE's addresses don't have 8 bytes";
    cie.code_align = cursor.uleb();
    cie.data_align = cursor.sleb();
    cie.return_column = version == 1 ? cursor.fixed<uint8_t>() : cursor.uleb();
    if (letters[0] == 'z') {
        Cursor data(cursor.take(cursor.uleb()));
        cie.sized = true;
        for (size_t i = 1; letters[i]; ++i) switch (letters[i]) {
            case 'R': cie.encoding = data.fixed<uint8_t>(); break;
            case 'P': pointer(frames, data.fixed<uint8_t>(), data); break;
            case 'L': data.fixed<uint8_t>(); break;
            case 'S': cie.signal = true; break;
            case 'B': // arm64: signed with the B key
            case 'G': // arm64: tagged stack
                break;
            default: return "rawbpf doesn't know its CIE's augmentation";
            }
        if (data.bad()) return "its CIE's augmentation ends early";
    } else if (letters[0])
        return "rawbpf doesn't know its CIE's augmentation";
    if (cie.encoding & kIndirect) return "its addresses are indirect";
    if (cursor.bad()) return "its CIE ends early";
    if (cursor.left() > kMaxInitial) return "its CIE's program is too long";
    State state;
    if (const char *problem = run(frames, cie, cursor.rest(), 0, 0, state, nullptr)) return problem;
    cie.initial = state;
    cie.at = at;
    out = cie;
    return nullptr;
}

const char *read_fde(const Frames &frames, const Cie &cie, Bytes rest, Function &out) {
    Cursor cursor(rest);
    out.start = pointer(frames, cie.encoding, cursor);
    const uint64_t size = pointer(frames, cie.encoding & kFormat, cursor);
    if (cie.sized) cursor.take(cursor.uleb());
    if (cursor.bad()) return "it ends early";
    if (__builtin_add_overflow(out.start, size, &out.end)) return "its function goes past the last address";
    out.program = cursor.rest();
    return nullptr;
}

const char *run_program(const Frames &frames, const Cie &cie, const Function &function, std::vector<Change> &out) {
    State state = cie.initial;
    return run(frames, cie, function.program, function.start, function.end, state, &out);
}

} // namespace rawbpf::inline v0::unwind
