// Instructions as text.
//
//      07 01 00 00 08 00 00 00      r1 += 8
//      15 00 03 00 00 00 00 00      if r0 == 0 goto +3
//      63 6a fc ff 00 00 00 00      *(u32 *)(r10 - 4) = r6
//
// There is one pattern per shape and dialect. Capital letters in it stand for parts of the instruction and of its row in
// opcodes.h:
//
//      D S    its registers, wN where the operation has 32 bits      A B    the same as rN        R    r0 or w0
//      I U X  imm: signed, unsigned, as the kernel's %x              Y Z    the row's symbol; without "atomic" in front
//      P Q    off: "+ 4" with its blank; "+4"                        E F    "[%r1+4]" around A or B
//      J K    where off or imm jumps to                              T      the memory's type, "u32"
//      C L N  what is called: helper, function, kernel function      W      the number of ld_imm64, or what it stands for
//      H G    imm >> 16 and imm & 0xffff                             V      " + 4", or nothing, of packet loads
//      M      the conformance dialect's mnemonic                     @      "64" where the operation has 64 bits
//
// The main dialect is what llvm-objdump 19 prints and llvm-mc reads (llvm/lib/Target/BPF/BPFInstrInfo.td defines it), so that
// a student can look up there what he sees here. The kernel's is that of kernel/bpf/disasm.c (6.18), the third that of the
// bpf_conformance project. Memory below 64 bits is written with rN, as llvm-objdump does when no -mcpu is given.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2") // -Os, as releases are built, takes three times as long
#endif

#include "asm/print.h"

#include "asm/encode.h"
#include "asm/helpers.h"

namespace rawbpf::inline v0 {

namespace {

struct Pattern {
    const char *llvm, *kernel, *conformance;
};

constexpr Pattern kPatterns[] = {
    {"D Y I", "D Y I", "M A, I"},                                                                   // alu_imm
    {"D Y S", "D Y S", "M A, B"},                                                                   // alu_reg
    {"D = -D", "D = -D", "M A"},                                                                    // negate
    {"D = (Y)S", "D = (Y)S", "M A, B"},                                                             // sign_extend
    {"D = Y D", "D = Y D", "M A"},                                                                  // byte_swap
    {"D = addr_space_cast(S, H, G)", "D = addr_space_cast(S, H, G)", "addr_space_cast A, B, H, G"}, // cast
    {"D = *(T *)(S P)", "D = *(T *)(S Q)", "M A, F"},                                               // load
    {"*(T *)(D P) = I", "*(T *)(D Q) = I", "M E, I"},                                               // store_imm
    {"*(T *)(D P) = S", "*(T *)(D Q) = S", "M E, B"},                                               // store_reg
    {"D = W ll", "D = W", "M A, W"},                                                                // load_wide
    {"r0 = *(T *)skb[I]", "r0 = *(T *)skb[I]", "M I"},                                              // packet_abs
    {"r0 = *(T *)skb[BV]", "r0 = *(T *)skb[B + I]", "M B, I"},                                      // packet_ind
    {"lock *(T *)(A P) Y S", "lock *(T *)(A Q) Y B", "lock M E, B"},                                // atomic
    {"S = Y((T *)(A P), S)", "B = atomic@Z((T *)(A Q), B)", "lock fetch M E, B"},                   // atomic_fetch
    {"S = Y(A P, S)", "B = atomic@_xchg((T *)(A Q), B)", "lock M E, B"},                            // exchange
    {"R = Y(A P, R, S)", "r0 = atomic@_cmpxchg((T *)(A Q), r0, B)", "lock M E, B"},                 // compare_swap
    {"O = load_acquire((T *)(B P))", "A = load_acquire((T *)(B Q))", "M A, F"},                     // load_acquire
    {"store_release((T *)(A P), O)", "store_release((T *)(A Q), B)", "M E, B"},                     // store_release
    {"Y J", "Y J", "M J"},                                                                          // jump
    {"Y K", "Y K", "M K"},                                                                          // jump_long
    {"Y D", "Y D", "Y A"},                                                                          // jump_reg
    {"Y J", "Y J", "Y J"},                                                                          // may_jump
    {"if D Y I goto J", "if D Y X goto J", "M A, I, J"},                                            // branch_imm
    {"if D Y S goto J", "if D Y S goto J", "M A, B, J"},                                            // branch_reg
    {"call C", "call C", "call helper U"},                                                          // call_helper
    {"call L", "call L", "call local L"},                                                           // call_local
    {"call N", "call N", "call runtime U"},                                                         // call_kfunc
    {"callx D", "callx D", "callx A"},                                                              // call_reg
    {"exit", "exit", "exit"},                                                                       // exit
};
static_assert(std::size(kPatterns) == static_cast<size_t>(Shape::exit) + 1);

/// Text on its way to a string: a few bytes of room, emptied when a name is longer.
class Writer {
  public:
    explicit Writer(std::string &out) : out_(out) {}
    Writer(const Writer &) = delete;
    Writer &operator=(const Writer &) = delete;
    ~Writer() { out_.append(room_, at_); }

    void put(char c) {
        if (at_ == room_ + sizeof(room_)) flush();
        *at_++ = c;
    }
    void put(std::string_view text) {
        if (text.size() > static_cast<size_t>(room_ + sizeof(room_) - at_)) {
            flush();
            if (text.size() > sizeof(room_)) {
                out_.append(text);
                return;
            }
        }
        for (char c : text) *at_++ = c;
    }
    void digits(uint64_t value, unsigned base, int least = 1) {
        char text[20];
        char *at = text + sizeof(text);
        do {
            *--at = "0123456789abcdef"[value % base];
            value /= base;
            --least;
        } while (value != 0 || least > 0);
        put(std::string_view(at, static_cast<size_t>(text + sizeof(text) - at)));
    }
    void hex(uint64_t value, int least = 1) {
        char text[16];
        char *at = text + sizeof(text);
        do {
            *--at = "0123456789abcdef"[value & 15];
            value >>= 4;
            --least;
        } while (value != 0 || least > 0);
        put(std::string_view(at, static_cast<size_t>(text + sizeof(text) - at)));
    }

  private:
    void flush() {
        out_.append(room_, at_);
        at_ = room_;
    }
    std::string &out_;
    char room_[128];
    char *at_ = room_;
};

class InsnPrinter {
  public:
    InsnPrinter(Writer &to, const Form &form, std::span<const Insn> at, PrintStyle style, const PrintNames &names)
        : to_(to), form_(form), at_(at), insn_(at[0]), dialect_(style.dialect), hex_(style.hex && style.dialect == Dialect::llvm),
          names_(names) {}

    void print() {
        const Pattern &pattern = kPatterns[static_cast<size_t>(form_.shape)];
        const char *text = dialect_ == Dialect::llvm     ? pattern.llvm
                           : dialect_ == Dialect::kernel ? pattern.kernel
                                                         : pattern.conformance;
        for (; *text; ++text) {
            if (*text >= '@' && *text <= 'Z')
                part(*text);
            else
                to_.put(*text);
        }
    }

  private:
    void part(char letter) {
        switch (letter) {
        case 'D': return reg(insn_.dst, form_.register_bits);
        case 'S':
            // The plain add of 32 bits is older than wN, and llvm-objdump writes it so.
            return reg(insn_.src, form_.shape == Shape::atomic && form_.imm == 0 ? 64 : form_.register_bits);
        case 'O': // LLVM 20 and newer write wN for what has fewer than 64 bits
            return reg(form_.shape == Shape::load_acquire ? insn_.dst : insn_.src, form_.bits < 64 ? 32 : 64);
        case 'A': return reg(insn_.dst, 64);
        case 'B': return reg(insn_.src, 64);
        case 'R': return reg(0, form_.register_bits);
        case 'I':
            if (!names_.field.empty() && (form_.fields() & kOff) == 0) return to_.put(names_.field);
            return number(insn_.imm);
        case 'U': return magnitude(static_cast<uint32_t>(insn_.imm));
        case 'X': to_.put("0x"); return to_.hex(static_cast<uint32_t>(insn_.imm));
        case 'Y': return to_.put(form_.symbol);
        case 'Z': return to_.put(form_.symbol.substr(6));
        case 'P':
            if (!names_.field.empty()) {
                to_.put("+ ");
                return to_.put(names_.field);
            }
            to_.put(insn_.off < 0 ? "- " : "+ ");
            return magnitude(static_cast<uint64_t>(insn_.off < 0 ? -insn_.off : insn_.off));
        case 'Q': return distance(insn_.off);
        case 'E': return bracket(insn_.dst);
        case 'F': return bracket(insn_.src);
        case 'J': return target(insn_.off);
        case 'K': return target(insn_.imm);
        case 'T': to_.put(form_.is_signed ? 's' : 'u'); return to_.digits(form_.bits, 10);
        case 'C': return helper();
        case 'L': return names_.call.empty() ? target(insn_.imm) : to_.put(names_.call);
        case 'N': return kernel_function();
        case 'W': return wide();
        case 'H': return magnitude(static_cast<uint32_t>(insn_.imm) >> 16);
        case 'G': return magnitude(insn_.imm & 0xffff);
        case 'V':
            if (insn_.imm == 0) return;
            to_.put(" + ");
            return number(insn_.imm);
        case 'M': return mnemonic();
        case '@':
            if (form_.bits == 64) to_.put("64");
            return;
        default: return to_.put(letter);
        }
    }

    void reg(unsigned n, int bits) {
        if (dialect_ == Dialect::conformance) to_.put('%');
        to_.put(bits == 32 && dialect_ != Dialect::conformance ? 'w' : 'r');
        if (n >= 10) to_.put('1');
        to_.put(static_cast<char>('0' + n % 10));
    }
    void magnitude(uint64_t value) {
        if (!hex_) return to_.digits(value, 10);
        to_.put("0x");
        to_.hex(value);
    }
    void number(int64_t value) {
        if (value < 0) to_.put('-');
        magnitude(value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
    }
    void distance(int64_t value) {
        if (value >= 0) to_.put('+');
        number(value);
    }
    void bracket(unsigned n) {
        to_.put('[');
        reg(n, 64);
        if (insn_.off != 0) distance(insn_.off);
        to_.put(']');
    }
    void target(int64_t away) {
        if (!names_.target.empty()) return to_.put(names_.target);
        if (dialect_ == Dialect::kernel) to_.put("pc");
        distance(away);
    }
    void helper() {
        if (dialect_ != Dialect::kernel)
            return names_.call.empty() ? magnitude(static_cast<uint32_t>(insn_.imm)) : to_.put(names_.call);
        if (const HelperInfo *info = find_helper(int64_t{insn_.imm})) {
            to_.put("bpf_");
            to_.put(info->name);
        } else
            to_.put("unknown");
        to_.put('#');
        number(insn_.imm);
    }
    void kernel_function() {
        if (dialect_ == Dialect::kernel) {
            to_.put(names_.call.empty() ? std::string_view("kernel-function") : names_.call);
            to_.put('#');
            return number(insn_.imm);
        }
        to_.put("kfunc ");
        if (!names_.call.empty()) return to_.put(names_.call);
        magnitude(static_cast<uint32_t>(insn_.imm));
        if (insn_.off != 0) {
            to_.put(" module ");
            number(insn_.off);
        }
    }
    void wide() {
        if (!names_.wide.empty()) return to_.put(names_.wide);
        const uint32_t low = static_cast<uint32_t>(at_[0].imm), high = static_cast<uint32_t>(at_[1].imm);
        const uint64_t value = low | uint64_t{high} << 32;
        if (dialect_ == Dialect::llvm) {
            if (form_.symbol.empty()) return number(static_cast<int64_t>(value));
            to_.put(form_.symbol);
            to_.put(' ');
            return magnitude(value);
        }
        switch (static_cast<Wide>(insn_.src)) {
        case Wide::map_fd:
        case Wide::map_value:
            if (dialect_ == Dialect::conformance) break;
            to_.put("map[fd:");
            to_.digits(low, 10);
            to_.put(']');
            if (insn_.src == 1) return;
            to_.put("[0]+");
            return to_.digits(high, 10);
        case Wide::function:
            if (dialect_ == Dialect::conformance) break;
            to_.put("subprog[");
            distance(insn_.imm);
            return to_.put(']');
        default: break;
        }
        to_.put("0x");
        to_.hex(value);
    }
    /// Ours say everything in one word, "atomic_fetch_add32", "movsx8_32", "add_reg"; theirs: "fetch add32", "movsx832", "add".
    void mnemonic() {
        std::string_view name = form_.name;
        switch (form_.shape) {
        case Shape::sign_extend:
            to_.put("movsx");
            to_.digits(form_.bits, 10);
            return to_.digits(form_.register_bits, 10);
        case Shape::byte_swap: return to_.put(name[0] == 'b' && name[1] == 's' ? name.substr(1) : name);
        case Shape::atomic: return to_.put(name.substr(7));
        case Shape::atomic_fetch: return to_.put(name.substr(13));
        default: break;
        }
        if (name.ends_with("_reg")) name.remove_suffix(4);
        to_.put(name);
    }

    Writer &to_;
    const Form &form_;
    std::span<const Insn> at_;
    const Insn &insn_;
    const Dialect dialect_;
    const bool hex_;
    const PrintNames &names_;
};

void put_bytes(Writer &to, const Insn &insn) {
    to.put(".8byte 0x");
    to.hex(insn.code | uint64_t{insn.dst} << 8 | uint64_t{insn.src} << 12 | uint64_t{static_cast<uint16_t>(insn.off)} << 16 |
               uint64_t{static_cast<uint32_t>(insn.imm)} << 32,
           16);
}

/// The row of a whole instruction: nullptr for ld_imm64 without its second half, too.
const Form *whole_form(std::span<const Insn> at) {
    const Form *form = find_form(at[0]);
    if (form != nullptr && form->shape == Shape::load_wide &&
        (at.size() < 2 || at[1].code != 0 || at[1].dst != 0 || at[1].src != 0 || at[1].off != 0))
        return nullptr;
    return form;
}

} // namespace

void append_insn(std::string &out, std::span<const Insn> at, PrintStyle style, const PrintNames &names) {
    if (at.empty()) return;
    Writer to(out);
    const Form *form = whole_form(at);
    if (form == nullptr) return put_bytes(to, at[0]);
    if (style.dialect == Dialect::kernel) {
        to.put('(');
        to.hex(at[0].code, 2);
        to.put(") ");
    }
    InsnPrinter(to, *form, at, style, names).print();
}

std::string print(std::span<const Insn> at, PrintStyle style) {
    std::string out;
    append_insn(out, at, style);
    return out;
}

bool assembles(std::span<const Insn> at) {
    if (at.empty()) return false;
    const Form *form = whole_form(at);
    if (form == nullptr) return false;
    const Insn &insn = at[0];
    Operands operands;
    const uint8_t fields = form->fields();
    if (fields & kDst) operands.dst = insn.dst;
    if (fields & kSrc) operands.src = insn.src;
    if (fields & kOff) operands.off = insn.off;
    if (fields & kImm) operands.imm = form->shape == Shape::load_wide ? 0 : insn.imm;
    if (form->shape == Shape::call_helper) operands.imm = static_cast<uint32_t>(insn.imm);
    return static_cast<bool>(encode(*form, operands));
}

// Names of object files may hold anything.
std::string plain_symbol(std::string_view name) {
    std::string out(name);
    for (char &c : out)
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '$'))
            c = '_';
    if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out.insert(out.begin(), '_');
    return out;
}

} // namespace rawbpf::inline v0
