// A frame is what is known before an instruction: how far sp (and x29, once it points into the frame) are below the CFA, whether
// x29 and x30 still have what the caller left in them, and where on the stack that was put. An instruction makes another frame of
// it for the next one and for the one that it branches to; where a frame comes to an instruction that has one, they meet: what
// isn't the same in both is lost. As a meeting only ever loses, it comes to an end.
//
// What isn't recognised loses: a load of an unknown kind is taken to write every register that it names.
#include "runtime/unwind/arm64_code.h"

#include <algorithm>
#include <bit>

namespace rawbpf::inline v0::unwind {
namespace {

constexpr uint32_t kFp = 29, kLr = 30, kSp = 31;                            // register numbers; 31 is zero elsewhere
constexpr uint32_t kBranch = 0xfc000000, kB = 0x14000000, kBl = 0x94000000; // mask, and what it leaves of b and bl
constexpr int32_t kLost = INT32_MAX;
constexpr int64_t kReaches = 1 << 17; // bytes: larger frames aren't followed

// An instruction and its fields.
struct Instruction {
    uint32_t word;
    [[nodiscard]] uint32_t field(int low, int bits) const { return word >> low & ((1u << bits) - 1); }
    [[nodiscard]] bool bit(int n) const { return field(n, 1) != 0; }
    [[nodiscard]] int64_t signed_field(int low, int bits) const {
        return static_cast<int64_t>(uint64_t{field(low, bits)} << (64 - bits)) >> (64 - bits);
    }
    [[nodiscard]] bool is(uint32_t mask, uint32_t value) const { return (word & mask) == value; }
    [[nodiscard]] uint32_t rd() const { return field(0, 5); } // or rt
    [[nodiscard]] uint32_t rn() const { return field(5, 5); }
};

// Distances are bytes below the CFA. What lies above it belongs to the caller.
struct Frame {
    int32_t sp = 0, fp = kLost;          // kLost: not known; of x29: or it doesn't point into this frame
    int32_t fp_at = 0, lr_at = 0;        // where the caller's are; 0: nowhere
    bool fp_kept = true, lr_kept = true; // the registers have them
    bool operator==(const Frame &) const = default;
};

int32_t distance(int64_t bytes) { return bytes < 0 || bytes > kReaches ? kLost : static_cast<int32_t>(bytes); }

Frame meet(const Frame &a, const Frame &b) {
    Frame out;
    out.sp = a.sp == b.sp ? a.sp : kLost;
    out.fp = a.fp == b.fp ? a.fp : kLost;
    out.fp_at = a.fp_at == b.fp_at ? a.fp_at : 0;
    out.lr_at = a.lr_at == b.lr_at ? a.lr_at : 0;
    out.fp_kept = a.fp_kept && b.fp_kept;
    out.lr_kept = a.lr_kept && b.lr_kept;
    return out;
}

class Step {
  public:
    explicit Step(const Frame &frame) : f_(frame) {}

    Frame after(Instruction i) {
        switch (i.field(25, 4)) {
        case 0b1000:
        case 0b1001: immediate(i); break;
        case 0b1010:
        case 0b1011: system(i); break;
        case 0b0101:
        case 0b1101: registers(i); break;
        case 0b0111:
        case 0b1111: vectors(i); break;
        default: memory(i); break; // x1x0
        }
        return f_;
    }

  private:
    void write(uint32_t reg) {
        if (reg == kFp) f_.fp_kept = false, f_.fp = kLost;
        if (reg == kLr) f_.lr_kept = false;
    }
    // What sp leaves below itself isn't the frame's any more.
    void move_sp(int32_t to) {
        f_.sp = to;
        if (f_.fp_at > to) f_.fp_at = 0; // kLost is above all others
        if (f_.lr_at > to) f_.lr_at = 0;
    }
    [[nodiscard]] int32_t distance_of(uint32_t reg) const { return reg == kSp ? f_.sp : reg == kFp ? f_.fp : kLost; }

    void immediate(Instruction i) {
        const bool add_sub = i.field(23, 6) == 0b100010, logical = i.field(23, 6) == 0b100100;
        const bool tags = i.field(23, 6) == 0b100011, flags = i.bit(29); // addg, subg
        const bool sets_sp = i.rd() == kSp && (tags || (add_sub && !flags) || (logical && i.field(29, 2) != 3));
        int32_t result = kLost;
        if (add_sub && i.bit(31) && !flags && distance_of(i.rn()) != kLost) {
            const int64_t amount = int64_t{i.field(10, 12)} << (i.bit(22) ? 12 : 0);
            result = distance(distance_of(i.rn()) + (i.bit(30) ? amount : -amount));
        }
        if (sets_sp) return move_sp(result);
        write(i.rd());
        if (i.rd() == kFp) f_.fp = result;
    }

    void registers(Instruction i) {
        const bool sets_sp = i.is(0x3f200000, 0x0b200000) || i.is(0xffe0fc00, 0x9ac01000) || // add or sub, extended; irg
                             i.is(0xbfe0e000, 0x9a002000);                                   // addpt, subpt
        if (sets_sp && i.rd() == kSp) return move_sp(kLost);
        write(i.rd());
    }

    void vectors(Instruction i) {
        // Between both kinds of registers: fcvt and fmov, the same of fixed-point numbers, umov, smov.
        if (i.is(0x5f20fc00, 0x1e200000) || i.is(0x5f200000, 0x1e000000) || i.is(0xbfe0fc00, 0x0e003c00) ||
            i.is(0xbfe0fc00, 0x0e002c00))
            write(i.rd());
    }

    void system(Instruction i) {
        if (i.is(kBranch, kBl) || i.is(0xfee00000, 0xd6200000)) f_.lr_kept = false; // blr
        if (i.is(0xffe00000, 0xd5200000)) write(i.rd());                            // mrs, sysl
        if (i.is(0xfff00000, 0xd5700000)) write(i.rd()), write(i.rd() | 1);         // mrrs
    }

    // --- Loads and stores

    void memory(Instruction i) {
        if (i.field(27, 3) == 0b101) return pair(i);
        if (i.field(27, 3) == 0b111) return single(i);
        if (i.is(0x3b000000, 0x18000000)) { // a literal
            if (!i.bit(26)) write(i.rd());
            return;
        }
        if (i.is(0xbf000000, 0x0c000000) || i.is(0xbf000000, 0x0d000000)) { // structures of vectors
            if (i.bit(23)) move_base(i, kLost);
            return;
        }
        for (int low : {0, 10, 16}) write(i.field(low, 5)); // exclusive, and others
        write(i.field(16, 5) | 1);                          // casp: a pair
        if (i.field(27, 3) != 0b001) move_base(i, kLost);
    }

    void pair(Instruction i) {
        const uint32_t opc = i.field(30, 2), mode = i.field(23, 2);
        const int64_t size = i.bit(26) ? int64_t{4} << opc : opc == 2 ? 8 : opc == 1 && !i.bit(22) ? 16 : 4;
        access(i, size, i.signed_field(15, 7) * size, mode == 1, mode == 3, 2);
    }

    void single(Instruction i) {
        const int64_t size = int64_t{1} << (i.field(30, 2) + (i.bit(26) && i.bit(23) ? 4 : 0));
        const uint32_t mode = i.field(10, 2);
        if (i.bit(24)) return access(i, size, i.field(10, 12) * size, false, false, 1);
        if (!i.bit(21)) return access(i, size, i.signed_field(12, 9), mode == 1, mode == 3, 1);
        const bool stores = mode == 2 && i.field(22, 2) == 0; // at an index, so not in a frame that is known
        if (!i.bit(26) && !stores) write(i.rd());
        if (mode == 0) write(i.field(16, 5));                                               // atomics
        for (uint32_t n = 0; n < 8 && i.is(0xfffffc00, 0xf83fd000); ++n) write(i.rd() + n); // ld64b
        if (mode & 1 && i.bit(11)) move_base(i, kLost);                                     // signed pointers
    }

    void access(Instruction i, int64_t size, int64_t offset, bool after, bool before, int registers) {
        const bool loads = registers == 2 ? i.bit(22) : i.field(22, 2) != 0 && !(i.bit(26) && i.field(22, 2) == 2);
        const int32_t base = distance_of(i.rn()), moved = base == kLost ? kLost : distance(base - offset);
        if (before) move_base(i, moved);
        for (int n = 0; n < registers; ++n) {
            const uint32_t reg = i.bit(26) ? kSp : n == 0 ? i.rd() : i.field(10, 5);
            const int32_t first = after ? base : moved, at = first == kLost ? kLost : distance(first - n * size);
            if (loads)
                load(reg, at, size);
            else
                store(reg, at, size);
        }
        if (after) move_base(i, moved);
    }

    void move_base(Instruction i, int32_t to) {
        if (i.rn() == kSp) return move_sp(to);
        write(i.rn());
        if (i.rn() == kFp) f_.fp = to;
    }

    void load(uint32_t reg, int32_t at, int64_t size) {
        write(reg);
        if (size != 8 || at == 0) return;
        if (reg == kFp && at == f_.fp_at) f_.fp_kept = true;
        if (reg == kLr && at == f_.lr_at) f_.lr_kept = true;
    }

    void store(uint32_t reg, int32_t at, int64_t size) {
        if (at == kLost) return;
        const auto touches = [&](int32_t slot) { return slot != 0 && at - size < slot && slot - 8 < at; };
        const bool inside = size == 8 && at >= 8 && at <= f_.sp;
        const bool keeps_fp = reg == kFp && f_.fp_kept && inside, keeps_lr = reg == kLr && f_.lr_kept && inside;
        if (touches(f_.fp_at) && !(keeps_fp && at == f_.fp_at)) f_.fp_at = 0;
        if (touches(f_.lr_at) && !(keeps_lr && at == f_.lr_at)) f_.lr_at = 0;
        if (keeps_fp && f_.fp_at == 0) f_.fp_at = at;
        if (keeps_lr && f_.lr_at == 0) f_.lr_at = at;
    }

    Frame f_;
};

uint64_t branch_target(Instruction i, uint64_t address) { return address + static_cast<uint64_t>(i.signed_field(0, 26) * 4); }

// Where it goes on.
struct Ways {
    bool next = true;
    bool branches = false, calls = false;
    uint64_t target = 0;
};

Ways ways_of(Instruction i, uint64_t address) {
    const auto to = [&](int low, int bits) { return address + static_cast<uint64_t>(i.signed_field(low, bits) * 4); };
    if (i.field(25, 4) < 0b0100) return {false}; // reserved, SVE, SME: not followed
    if (i.is(kBranch, kB)) return {false, true, false, branch_target(i, address)};
    if (i.is(kBranch, kBl)) return {true, false, true, branch_target(i, address)};
    if (i.is(0xff000000, 0x54000000)) return {true, true, false, to(5, 19)};           // b.cond
    if (i.is(0x7e000000, 0x34000000)) return {true, true, false, to(5, 19)};           // cbz, cbnz
    if (i.is(0x7e000000, 0x36000000)) return {true, true, false, to(5, 14)};           // tbz, tbnz
    if (i.is(0xfe000000, 0xd6000000)) return {i.is(0xfee00000, 0xd6200000)};           // blr goes on; br, ret and others don't
    if (i.is(0xff000000, 0xd4000000)) return {i.is(0xffe0001f, 0xd4000001)};           // svc goes on; brk and others don't
    if (i.is(0x1c000000, 0x14000000) && !i.is(0xff000000, 0xd5000000)) return {false}; // a newer branch: not followed
    return {};
}

bool rule_of(const Frame &frame, UnwindRule &rule) {
    const bool by_fp = frame.fp != kLost;
    const int32_t cfa = by_fp ? frame.fp : frame.sp;
    if (cfa == kLost) return false;
    if (cfa % 8 != 0 || frame.fp_at % 8 != 0 || frame.lr_at % 8 != 0) return false;
    if ((frame.fp_at == 0 && !frame.fp_kept) || (frame.lr_at == 0 && !frame.lr_kept)) return false;
    const auto words = [](int32_t bytes) { return static_cast<int16_t>(bytes / 8); };
    rule.kind = by_fp ? UNWIND_FP : UNWIND_SP;
    rule.flags = static_cast<uint8_t>(UNWIND_ADDED | (frame.lr_at == 0 ? UNWIND_RA_IN_LR : 0));
    rule.cfa = words(cfa);
    rule.fp = words(-frame.fp_at);
    rule.ra = words(-frame.lr_at);
    return true;
}

bool same(const UnwindRule &a, const UnwindRule &b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

class Follow {
  public:
    explicit Follow(std::span<const Arm64Code> code) : code_(code) {
        for (const Arm64Code &range : code) {
            first_.push_back(points_.size());
            for (uint64_t at = range.address; at < range.end(); at += 4)
                points_.push_back({at, {load<uint32_t>(range.bytes.data() + (at - range.address))}});
        }
    }

    void begin(uint64_t address) {
        if (ProgramPoint *point = find(address)) begin(*point);
    }

    // Along all ways from where it began, and from what is called there.
    void run() {
        while (!waiting_.empty()) {
            ProgramPoint &point = *waiting_.back();
            waiting_.pop_back();
            const Frame after = Step(point.frame).after(point.instruction);
            const Ways ways = ways_of(point.instruction, point.address);
            if (ways.calls) begin(ways.target);
            if (ways.branches) arrive(find(ways.target), after);
            // Nobody falls into a function's beginning: there, a call before it doesn't return.
            if (ProgramPoint *next = ways.next ? following(point) : nullptr; next && !next->begins) arrive(next, after);
        }
    }

    // stp x29, x30, [sp, #-N]!, and before it, back to the end of another function, nothing that changes the frame.
    void find_entries() {
        for (ProgramPoint &point : points_)
            if (point.instruction.is(0xffe07fff, 0xa9a07bfd) && !point.reached && may_begin(point)) {
                begin(point);
                run();
            }
    }

    [[nodiscard]] std::vector<Change> changes() const {
        std::vector<Change> out;
        for (size_t i = 0; i < points_.size(); ++i) {
            const ProgramPoint &point = points_[i];
            UnwindRule rule{};
            if (!point.reached || !rule_of(point.frame, rule)) rule = {};
            const bool first = i == 0 || points_[i - 1].address + 4 != point.address;
            if (first || !same(out.back().rule, rule)) out.push_back({point.address, rule});
        }
        return out;
    }

  private:
    struct ProgramPoint {
        uint64_t address;
        Instruction instruction;
        bool reached = false, begins = false; // begins: a function
        Frame frame{};                        // before the instruction
    };

    [[nodiscard]] ProgramPoint *find(uint64_t address) {
        const auto after = std::upper_bound(code_.begin(), code_.end(), address,
                                            [](uint64_t at, const Arm64Code &range) { return at < range.address; });
        if (after == code_.begin() || address >= (after - 1)->end() || address % 4 != 0) return nullptr;
        const auto range = static_cast<size_t>(after - 1 - code_.begin());
        return &points_[first_[range] + (address - code_[range].address) / 4];
    }
    [[nodiscard]] ProgramPoint *following(ProgramPoint &point) {
        ProgramPoint *next = &point + 1;
        return next != points_.data() + points_.size() && next->address == point.address + 4 ? next : nullptr;
    }

    void begin(ProgramPoint &point) {
        point.begins = true;
        arrive(&point, Frame{});
    }

    void arrive(ProgramPoint *point, const Frame &frame) {
        if (!point) return;
        const Frame met = point->reached ? meet(point->frame, frame) : frame;
        if (point->reached && met == point->frame) return;
        point->frame = met;
        point->reached = true;
        waiting_.push_back(point);
    }

    [[nodiscard]] bool may_begin(const ProgramPoint &point) const {
        for (const ProgramPoint *before = &point; before != points_.data() && before[-1].address + 4 == before->address;) {
            --before;
            if (!ways_of(before->instruction, before->address).next || is_arm64_padding(before->instruction.word)) return true;
            if (!(Step(Frame{}).after(before->instruction) == Frame{})) return false;
        }
        return true;
    }

    std::span<const Arm64Code> code_;
    std::vector<size_t> first_;        // of each range, among the points
    std::vector<ProgramPoint> points_; // all instructions
    std::vector<ProgramPoint *> waiting_;
};

} // namespace

void find_arm64_calls(const Arm64Code &code, std::vector<uint64_t> &out) {
    for (uint64_t at = code.address; at < code.end(); at += 4) {
        const Instruction instruction{load<uint32_t>(code.bytes.data() + (at - code.address))};
        if (instruction.is(kBranch, kBl)) out.push_back(branch_target(instruction, at));
    }
}

std::vector<Change> arm64_rules(std::span<const Arm64Code> code, std::span<const uint64_t> entries) {
    Follow follow(code);
    for (uint64_t entry : entries) follow.begin(entry);
    follow.run();
    follow.find_entries();
    return follow.changes();
}

std::vector<Change> arm64_function_rules(const Arm64Code &function) {
    Follow follow(std::span(&function, 1));
    follow.begin(function.address);
    follow.run();
    return follow.changes();
}

bool same_cfa(const UnwindRule &a, const UnwindRule &b) {
    if (a.kind == b.kind) return a.cfa == b.cfa;
    const UnwindRule &by_fp = a.kind == UNWIND_FP ? a : b, &by_sp = a.kind == UNWIND_FP ? b : a;
    return by_fp.kind == UNWIND_FP && by_sp.kind == UNWIND_SP && by_fp.cfa == -by_fp.fp && by_sp.fp == by_fp.fp;
}

} // namespace rawbpf::inline v0::unwind
