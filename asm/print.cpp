// Instructions as text.
//
//      07 01 00 00 08 00 00 00      r1 += 8
//      15 00 03 00 00 00 00 00      if r0 == 0 goto +3
//      63 6a fc ff 00 00 00 00      *(u32 *)(r10 - 4) = r6
//
// The dialect is the one llvm-objdump 19 prints and llvm-mc reads (llvm/lib/Target/BPF/MCTargetDesc/BPFInstPrinter.cpp and
// BPFInstrInfo.td tell it), so that what a student sees here can be looked up there. The table in opcodes.h has the words; this
// file only has the shapes. Memory below 64 bits is written with rN, as llvm-objdump does when no -mcpu is given.
#include "asm/print.h"

#include <algorithm>
#include <iterator>

#include "asm/encode.h"
#include "asm/helpers.h"

namespace rawbpf::inline v0 {

namespace {

std::string hex(uint64_t value) {
    std::string out;
    do {
        out.insert(out.begin(), "0123456789abcdef"[value & 15]);
        value >>= 4;
    } while (value);
    return "0x" + out;
}

std::string magnitude(uint64_t value, PrintStyle style) { return style.hex ? hex(value) : std::to_string(value); }

std::string number(int64_t value, PrintStyle style) {
    return value < 0 ? "-" + magnitude(0 - static_cast<uint64_t>(value), style) : magnitude(static_cast<uint64_t>(value), style);
}

/// With its sign always: "+3", "-0x8".
std::string distance(int64_t value, PrintStyle style) { return (value < 0 ? "" : "+") + number(value, style); }

std::string reg(int n, const Form &form) { return (form.register_bits == 32 ? "w" : "r") + std::to_string(n); }
std::string reg64(int n) { return "r" + std::to_string(n); }

/// "(r10 - 8)" without the brackets.
std::string address(int n, int off, PrintStyle style) {
    return reg64(n) + (off < 0 ? " - " : " + ") + magnitude(static_cast<uint64_t>(off < 0 ? -off : off), style);
}

std::string memory_type(const Form &form) { return (form.is_signed ? "s" : "u") + std::to_string(form.bits); }
std::string pointer(const Form &form) { return "(" + memory_type(form) + " *)"; }

uint64_t wide_value(std::span<const Insn> at) {
    return static_cast<uint32_t>(at[0].imm) | uint64_t{static_cast<uint32_t>(at[1].imm)} << 32;
}

/// What a reference replaces in the text; empty where the number stands.
struct Names {
    std::string wide, call, target, field;
};

std::string print_form(const Form &form, std::span<const Insn> at, PrintStyle style, const Names &names) {
    const Insn &insn = at[0];
    const std::string symbol(form.symbol);
    const std::string dst = reg(insn.dst, form), src = reg(insn.src, form);
    const std::string imm = number(insn.imm, style);
    const std::string target = names.target.empty() ? distance(insn.off, style) : names.target;
    const std::string dst_memory = "(" + address(insn.dst, insn.off, style) + ")";
    switch (form.shape) {
    case Shape::alu_imm: return dst + " " + symbol + " " + imm;
    case Shape::alu_reg: return dst + " " + symbol + " " + src;
    case Shape::negate: return dst + " = -" + dst;
    case Shape::sign_extend: return dst + " = (" + symbol + ")" + src;
    case Shape::byte_swap: return dst + " = " + symbol + " " + dst;
    case Shape::cast:
        return dst + " = addr_space_cast(" + src + ", " + number(static_cast<uint32_t>(insn.imm) >> 16, style) + ", " +
               number(insn.imm & 0xffff, style) + ")";
    case Shape::load: return dst + " = *" + pointer(form) + "(" + address(insn.src, insn.off, style) + ")";
    case Shape::store_imm: return "*" + pointer(form) + dst_memory + " = " + imm;
    case Shape::store_reg: return "*" + pointer(form) + dst_memory + " = " + src;
    case Shape::load_wide: {
        if (!names.wide.empty()) return dst + " = " + names.wide + " ll";
        if (symbol.empty()) return dst + " = " + number(static_cast<int64_t>(wide_value(at)), style) + " ll";
        return dst + " = " + symbol + " " + magnitude(wide_value(at), style) + " ll";
    }
    case Shape::packet_abs: return "r0 = *" + pointer(form) + "skb[" + imm + "]";
    case Shape::packet_ind: return "r0 = *" + pointer(form) + "skb[" + src + (insn.imm ? " + " + imm : "") + "]";
    case Shape::atomic: return "lock *" + pointer(form) + dst_memory + " " + symbol + " " + src;
    case Shape::atomic_fetch: return src + " = " + symbol + "(" + pointer(form) + dst_memory + ", " + src + ")";
    case Shape::exchange: return src + " = " + symbol + "(" + address(insn.dst, insn.off, style) + ", " + src + ")";
    case Shape::compare_swap: {
        const std::string r0 = reg(0, form);
        return r0 + " = " + symbol + "(" + address(insn.dst, insn.off, style) + ", " + r0 + ", " + src + ")";
    }
    case Shape::load_acquire: return dst + " = load_acquire(" + pointer(form) + "(" + address(insn.src, insn.off, style) + "))";
    case Shape::store_release: return "store_release(" + pointer(form) + dst_memory + ", " + src + ")";
    case Shape::jump:
    case Shape::may_jump: return symbol + " " + target;
    case Shape::jump_long: return "gotol " + (names.target.empty() ? distance(insn.imm, style) : names.target);
    case Shape::jump_reg:
    case Shape::call_reg: return symbol + " " + dst;
    case Shape::branch_imm: return "if " + dst + " " + symbol + " " + imm + " goto " + target;
    case Shape::branch_reg: return "if " + dst + " " + symbol + " " + src + " goto " + target;
    case Shape::call_helper: return "call " + (names.call.empty() ? imm : names.call);
    case Shape::call_local: return "call " + (names.call.empty() ? distance(insn.imm, style) : names.call);
    case Shape::call_kfunc:
        return "call " + (names.call.empty() ? "kfunc " + number(static_cast<uint32_t>(insn.imm), style) : names.call);
    case Shape::exit: return "exit";
    }
    return {};
}

std::string print_bytes(const Insn &insn) {
    uint64_t raw = insn.code | uint64_t{insn.dst} << 8 | uint64_t{insn.src} << 12 |
                   uint64_t{static_cast<uint16_t>(insn.off)} << 16 | uint64_t{static_cast<uint32_t>(insn.imm)} << 32;
    std::string digits = hex(raw).substr(2);
    return ".8byte 0x" + std::string(16 - digits.size(), '0') + digits;
}

std::string print_one(std::span<const Insn> at, PrintStyle style, const Names &names) {
    const Form *form = find_form(at[0]);
    const bool cut = form != nullptr && form->shape == Shape::load_wide &&
                     (at.size() < 2 || at[1].code != 0 || at[1].dst != 0 || at[1].src != 0 || at[1].off != 0);
    return form == nullptr || cut ? print_bytes(at[0]) : print_form(*form, at, style, names);
}

bool is_jump(const Form &form) {
    switch (form.shape) {
    case Shape::jump:
    case Shape::jump_long:
    case Shape::may_jump:
    case Shape::branch_imm:
    case Shape::branch_reg: return true;
    default: return false;
    }
}

/// Where a jump at `index` goes, or -1 when it isn't one.
int64_t jump_target(std::span<const Insn> insns, size_t index) {
    const Form *form = find_form(insns[index]);
    if (form == nullptr || !is_jump(*form)) return -1;
    return static_cast<int64_t>(index) + 1 + (form->shape == Shape::jump_long ? insns[index].imm : insns[index].off);
}

void pad_to(std::string &line, size_t column) {
    if (line.size() < column) line.append(column - line.size(), ' ');
}

/// A comment stays on its line, whatever it quotes.
std::string one_line(std::string_view text) {
    std::string out;
    for (char c : text) {
        if (c == '\n')
            out += "\\n";
        else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            out += "?";
        else
            out += c;
    }
    return out;
}

std::string plain_name(std::string_view path) {
    size_t slash = path.rfind('/');
    return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

} // namespace

std::string print(std::span<const Insn> at, PrintStyle style) {
    if (at.empty()) return {};
    return print_one(at, style, {});
}

std::string print(const Function &function, PrintStyle style) {
    const std::span<const Insn> insns(function.insns);
    constexpr size_t kCommentColumn = 48;

    std::vector<size_t> targets;
    for (size_t i = 0; i < insns.size(); i += is_wide(insns[i]) ? 2 : 1) {
        int64_t target = jump_target(insns, i);
        if (target >= 0 && static_cast<uint64_t>(target) < insns.size()) targets.push_back(static_cast<size_t>(target));
    }
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    auto label = [&](size_t index) {
        auto found = std::lower_bound(targets.begin(), targets.end(), index);
        return found == targets.end() || *found != index ? std::string() : "L" + std::to_string(found - targets.begin() + 1);
    };

    std::string out;
    if (!function.section.empty()) out += ".section \"" + function.section + "\"\n";
    out += function.name + ":\n";
    size_t ref = 0, line = 0;
    for (size_t i = 0; i < insns.size();) {
        const size_t slots = is_wide(insns[i]) && i + 1 < insns.size() ? 2 : 1;
        if (std::string name = label(i); !name.empty()) out += name + ":\n";
        for (; line < function.lines.size() && function.lines[line].insn <= i; ++line)
            if (style.locations) {
                const SourceLine &at = function.lines[line];
                out += "    # " + plain_name(at.file) + ":" + std::to_string(at.line);
                if (!at.text.empty()) out += ": " + one_line(at.text);
                out += "\n";
            }

        Names names;
        std::string comment = i < function.notes.size() ? function.notes[i] : std::string();
        if (int64_t target = jump_target(insns, i); target >= 0 && static_cast<uint64_t>(target) < insns.size())
            names.target = label(static_cast<size_t>(target));
        if (insns[i].code == 0x85 && insns[i].src == 0)
            if (const HelperInfo *helper = find_helper(int64_t{insns[i].imm})) names.call = "bpf_" + std::string(helper->name);
        for (; ref < function.refs.size() && function.refs[ref].insn < i + slots; ++ref) {
            const Ref &at = function.refs[ref];
            switch (at.kind) {
            case RefKind::call:
            case RefKind::kfunc: names.call = at.symbol; break;
            case RefKind::map:
            case RefKind::function:
            case RefKind::ksym: names.wide = at.symbol; break;
            case RefKind::map_value: names.wide = at.symbol + (at.addend ? " " + distance(at.addend, style) : " + 0"); break;
            case RefKind::field: comment += (comment.empty() ? "" : "; ") + std::string("offset of ") + at.symbol; break;
            }
        }

        std::string text;
        if (style.numbers) {
            std::string index = std::to_string(i);
            text += std::string(index.size() < 6 ? 6 - index.size() : 0, ' ') + index + ":  ";
        } else
            text += "    ";
        text += print_one(insns.subspan(i), style, names);
        if (!comment.empty()) {
            pad_to(text, kCommentColumn - 1);
            text += " # " + one_line(comment);
        }
        out += text + "\n";
        i += slots;
    }
    return out;
}

std::string map_kind_name(uint32_t type) {
    // enum bpf_map_type of the kernel's uapi/linux/bpf.h; the last one came with 6.19.
    static constexpr std::string_view kNames[] = {
        "unspec",
        "hash",
        "array",
        "prog_array",
        "perf_event_array",
        "percpu_hash",
        "percpu_array",
        "stack_trace",
        "cgroup_array",
        "lru_hash",
        "lru_percpu_hash",
        "lpm_trie",
        "array_of_maps",
        "hash_of_maps",
        "devmap",
        "sockmap",
        "cpumap",
        "xskmap",
        "sockhash",
        "cgroup_storage",
        "reuseport_sockarray",
        "percpu_cgroup_storage",
        "queue",
        "stack",
        "sk_storage",
        "devmap_hash",
        "struct_ops",
        "ringbuf",
        "inode_storage",
        "task_storage",
        "bloom_filter",
        "user_ringbuf",
        "cgrp_storage",
        "arena",
        "insn_array",
    };
    return type < std::size(kNames) ? std::string(kNames[type]) : "type " + std::to_string(type);
}

std::string print(const Unit &unit, PrintStyle style) {
    std::string out = "# " + unit.name + ", license \"" + unit.license + "\"\n";
    for (const MapDef &map : unit.maps) {
        out += "# map " + map.name + ": " + map_kind_name(map.type);
        if (map.key_size) out += ", key " + std::to_string(map.key_size);
        if (map.value_size) out += ", value " + std::to_string(map.value_size);
        out += ", " + std::to_string(map.max_entries) + (map.key_size || map.value_size ? " entries" : " bytes");
        if (map.flags) out += ", flags " + hex(map.flags);
        if (map.read_only) out += ", read-only";
        out += "\n";
    }
    for (const Function &function : unit.functions) out += "\n" + print(function, style);
    return out;
}

std::string to_string(const Diagnostic &diagnostic) {
    std::string out;
    if (!diagnostic.file.empty()) out += diagnostic.file + ":";
    if (diagnostic.line > 0) out += std::to_string(diagnostic.line) + ":";
    if (diagnostic.line > 0 && diagnostic.column > 0) out += std::to_string(diagnostic.column) + ":";
    return out.empty() ? diagnostic.message : out + " " + diagnostic.message;
}

} // namespace rawbpf::inline v0
