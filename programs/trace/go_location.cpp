// Parameters without a name (`_`) aren't in Go's DWARF, nor is the dictionary that generic functions get: a reader that counts
// registers from the parameters that are there counts wrongly. Where each is at the function's entry DWARF does say:
//
//      .debug_loc   begin  end | size | DW_OP_reg0 DW_OP_piece 8 DW_OP_reg3 DW_OP_piece 8       a string in rax, rbx
//                   ffffffffffffffff base                                                       addresses count from it
//                   0  0                                                                        the end
//
// Sources: DWARF 4, 2.6; DWARF 5, 7.7.3; System V ABI of x86_64 (figure 3.36), of arm64 (AADWARF64) for the registers' numbers.
#include "programs/trace/go_location.h"

#include <algorithm>
#include <array>

#include <elf.h>

#include "programs/trace/dwarf_numbers.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::trace {
namespace {

// Go's integer registers in its order, by DWARF's numbers: rax rbx rcx rdi rsi r8 r9 r10 r11.
constexpr std::array<uint8_t, 9> kX86 = {0, 3, 2, 5, 4, 8, 9, 10, 11};
constexpr uint8_t kX86Float = 17, kArm64Float = 64, kFloats = 16;

class Cursor {
  public:
    Cursor(Bytes bytes, uint64_t at) : bytes_(bytes), at_(std::min<uint64_t>(at, bytes.size())) {}
    uint64_t fixed(size_t size) {
        uint64_t out = 0;
        return read_number(bytes_, at_, size, out) ? out : fail();
    }
    uint64_t leb(bool with_sign = false) {
        uint64_t out = 0;
        return read_leb(bytes_, at_, out, with_sign) ? out : fail();
    }
    Bytes take(uint64_t size) {
        if (bytes_.size() - at_ < size) return fail(), Bytes{};
        const Bytes out = bytes_.subspan(at_, size);
        at_ += size;
        return out;
    }
    [[nodiscard]] bool bad() const { return bad_; }
    [[nodiscard]] bool ended() const { return at_ == bytes_.size(); }

  private:
    uint64_t fail() {
        bad_ = true;
        return 0;
    }
    Bytes bytes_;
    uint64_t at_;
    bool bad_ = false;
};

Bytes in_debug_loc(Cursor list, uint64_t address, uint64_t base) {
    while (!list.bad()) {
        const uint64_t begin = list.fixed(8), end = list.fixed(8);
        if (begin == 0 && end == 0) break;
        if (begin == UINT64_MAX) {
            base = end;
            continue;
        }
        const Bytes expression = list.take(list.fixed(2));
        if (!list.bad() && address >= base + begin && address < base + end) return expression;
    }
    return {};
}

Bytes in_debug_loclists(Cursor list, uint64_t address, uint64_t base) {
    while (!list.bad()) {
        uint64_t begin = 0, end = 0;
        switch (list.fixed(1)) {                                           // DW_LLE_...
        case 4: begin = base + list.leb(), end = base + list.leb(); break; // offset_pair
        case 5: begin = 0, end = UINT64_MAX; break;                        // default_location
        case 6: base = list.fixed(8); continue;                            // base_address
        case 7: begin = list.fixed(8), end = list.fixed(8); break;         // start_end
        case 8: begin = list.fixed(8), end = begin + list.leb(); break;    // start_length
        case 1: (void)list.leb(), base = UINT64_MAX; continue;             // base_addressx
        case 2:
        case 3: (void)list.leb(), (void)list.leb(); break; // by index: no function's entry is sought so
        default: return {};
        }
        const Bytes expression = list.take(list.leb());
        if (!list.bad() && base != UINT64_MAX && address >= begin && address < end) return expression;
    }
    return {};
}

std::optional<GoWord> in_register(uint64_t number, uint16_t machine) {
    const uint8_t floats = machine == EM_X86_64 ? kX86Float : kArm64Float;
    if (number >= floats && number < floats + uint64_t{kFloats})
        return GoWord{GoWord::In::float_register, 8, static_cast<uint32_t>(number - floats)};
    if (machine == EM_AARCH64)
        return number < 16 ? std::optional(GoWord{GoWord::In::integer_register, 8, static_cast<uint32_t>(number)}) : std::nullopt;
    const auto at = std::find(kX86.begin(), kX86.end(), number);
    if (at == kX86.end()) return std::nullopt;
    return GoWord{GoWord::In::integer_register, 8, static_cast<uint32_t>(at - kX86.begin())};
}

} // namespace

Bytes location_at(Bytes lists, uint64_t offset, uint64_t address, uint64_t base, bool version5) {
    const Cursor list(lists, offset);
    return version5 ? in_debug_loclists(list, address, base) : in_debug_loc(list, address, base);
}

// The frame's base is where the stack pointer was before the call; on arm64 the return address is kept behind it
// (cmd/compile/internal/ssagen, StackOffset()).
std::optional<uint32_t> place_on_stack(Bytes expression, uint16_t machine) {
    constexpr int64_t kFarthest = 1 << 20;
    const int64_t from = machine == EM_AARCH64 ? 8 : 0;
    Cursor at(expression, 0);
    const uint64_t op = at.fixed(1);
    int64_t offset = 0;
    if (op == 0x91) // DW_OP_fbreg
        offset = static_cast<int64_t>(at.leb(true));
    else if (op != 0x9c) // DW_OP_call_frame_cfa
        return std::nullopt;
    if (at.bad() || !at.ended() || offset < from || offset > kFarthest) return std::nullopt;
    return static_cast<uint32_t>(offset - from);
}

// On the stack Go's compiler describes a part as if it were the whole, so in a list of places only registers are believed to be
// where a value begins.
std::optional<GoVariable::Known> first_register(Bytes expression, uint16_t machine) {
    Cursor at(expression, 0);
    std::optional<GoWord> found;
    for (uint64_t offset = 0; !at.bad();) {
        const uint64_t op = at.fixed(1);
        if (at.bad()) break;
        if (op >= 0x50 && op <= 0x6f) { // DW_OP_reg0 to reg31
            found = in_register(op - 0x50, machine);
            if (!found) return std::nullopt;
        } else if (op == 0x90) { // DW_OP_regx
            found = in_register(at.leb(), machine);
            if (!found) return std::nullopt;
        } else if (op == 0x93) { // DW_OP_piece
            if (found) return GoVariable::Known{*found, offset, false};
            offset += at.leb();
        } else if (op == 0x91) { // DW_OP_fbreg
            (void)at.leb(true);
        } else if (op != 0x9c) { // DW_OP_call_frame_cfa
            return std::nullopt;
        }
    }
    if (!found) return std::nullopt;
    return GoVariable::Known{*found, 0, true};
}

} // namespace rawbpf::inline v0::trace
