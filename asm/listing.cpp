// Functions and units as listings: the names that references give, labels where jumps go, comments from the notes.
//
//      .license "GPL"
//      .map counts hash key 4 value 8 entries 1024
//
//      .program on_tick "perf_event"
//          r1 = counts ll                              # a reference to a map
//          if r0 == 0 goto L1
//      L1:
//
// In the llvm dialect this is source: assemble() makes the same unit of it. What the assembler wouldn't take (assembles()) is
// written as bytes, with what they say as a comment.
#include "asm/print.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "asm/encode.h"
#include "asm/helpers.h"
#include "asm/map_types.h"

namespace rawbpf::inline v0 {

namespace {

// The names of map_types.h in small letters.
struct MapWord {
    char text[24] = {};
    uint8_t size = 0;
};
constexpr auto kMapWords = [] {
    std::array<MapWord, kMapTypeCount> out{};
    for (uint32_t type = 0; type < kMapTypeCount; ++type)
        for (char c : kMapTypes[type].name) out[type].text[out[type].size++] = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
    return out;
}();
constexpr auto kMapKinds = [] {
    std::array<std::string_view, kMapTypeCount> out;
    for (uint32_t type = 0; type < kMapTypeCount; ++type) out[type] = {kMapWords[type].text, kMapWords[type].size};
    return out;
}();

std::string hex(uint64_t value) {
    std::string out;
    do {
        out.insert(out.begin(), "0123456789abcdef"[value & 15]);
        value >>= 4;
    } while (value);
    return "0x" + out;
}

/// 2 for a whole ld_imm64, else 1.
size_t slots_at(std::span<const Insn> insns, size_t i) {
    if (!is_wide(insns[i]) || i + 1 >= insns.size()) return 1;
    const Insn &second = insns[i + 1];
    return second.code == 0 && second.dst == 0 && second.src == 0 && second.off == 0 ? 2 : 1;
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

/// Instructions, with the names that their references give.
class Lister {
  public:
    Lister(const Function &function, PrintStyle style) : function_(function), style_(style) {}

    /// References come in the order of the instructions: call this for each, in order.
    ListedInsn take(size_t i, std::string_view target) {
        const std::span<const Insn> at = std::span<const Insn>(function_.insns).subspan(i);
        const size_t slots = slots_at(at, 0);
        ListedInsn listed{
            .insn = static_cast<uint32_t>(i), .slots = static_cast<uint32_t>(slots), .label = {}, .text = {}, .comment = {}};
        std::string &out = listed.text, &comment = listed.comment, symbol;
        if (i < function_.notes.size()) comment = function_.notes[i];
        PrintNames names;
        names.target = target;
        if (at[0].code == 0x85 && at[0].src == 0)
            if (const HelperInfo *helper = find_helper(int64_t{at[0].imm}))
                names.call = symbol = "bpf_" + std::string(helper->name);
        for (; ref_ < function_.refs.size() && function_.refs[ref_].insn < i + slots; ++ref_) {
            const Ref &ref = function_.refs[ref_];
            switch (ref.kind) {
            case RefKind::call:
            case RefKind::kfunc: names.call = symbol = plain_symbol(ref.symbol); break;
            case RefKind::map:
            case RefKind::function: names.wide = symbol = plain_symbol(ref.symbol); break;
            case RefKind::ksym: names.wide = symbol = "ksym " + plain_symbol(ref.symbol); break;
            case RefKind::map_value: names.wide = symbol = plain_symbol(ref.symbol) + " + " + std::to_string(ref.addend); break;
            case RefKind::field:
                names.field = symbol =
                    "@" + plain_symbol(ref.symbol) + (ref.addend ? " + " + std::to_string(ref.addend) : std::string());
                break;
            }
        }
        if (style_.dialect != Dialect::llvm || !symbol.empty() || assembles(at)) {
            append_insn(out, at, style_, names);
        } else {
            const Insn &insn = at[0];
            out += ".8byte " + hex(insn.code | uint64_t{insn.dst} << 8 | uint64_t{insn.src} << 12 |
                                   uint64_t{static_cast<uint16_t>(insn.off)} << 16 |
                                   uint64_t{static_cast<uint32_t>(insn.imm)} << 32);
            if (slots == 2) out += ", " + hex(uint64_t{static_cast<uint32_t>(at[1].imm)} << 32);
            comment += (comment.empty() ? "" : "; ") + (find_form(insn) ? rawbpf::print(at, style_) : "no instruction");
        }
        return listed;
    }

  private:
    const Function &function_;
    PrintStyle style_;
    size_t ref_ = 0;
};

/// A section's name, or a file's, between quotes.
std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\')
            out += std::string("\\") + c;
        else if (c == '\n')
            out += "\\n";
        else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f)
            out += std::string("\\x") + "0123456789abcdef"[static_cast<unsigned char>(c) >> 4] + "0123456789abcdef"[c & 15];
        else
            out += c;
    }
    return out + "\"";
}

} // namespace

std::vector<ListedInsn> list(const Function &function, PrintStyle style) {
    const std::span<const Insn> insns(function.insns);

    std::vector<size_t> targets;
    for (size_t i = 0; i < insns.size(); i += slots_at(insns, i)) {
        int64_t target = jump_target(insns, i);
        if (target >= 0 && static_cast<uint64_t>(target) < insns.size()) targets.push_back(static_cast<size_t>(target));
    }
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    // Into the middle of an ld_imm64, or what looks like one: a number, not a label that is never written.
    for (size_t i = 0; i < insns.size(); i += slots_at(insns, i))
        if (slots_at(insns, i) == 2)
            if (auto inside = std::lower_bound(targets.begin(), targets.end(), i + 1);
                inside != targets.end() && *inside == i + 1)
                targets.erase(inside);
    // A function may be called L1, too.
    std::string prefix = "L";
    for (const Ref &ref : function.refs)
        if ((ref.kind == RefKind::call || ref.kind == RefKind::kfunc) && ref.symbol.starts_with(prefix)) prefix += 'L';
    auto label = [&](size_t index) {
        auto found = std::lower_bound(targets.begin(), targets.end(), index);
        return found == targets.end() || *found != index ? std::string() : prefix + std::to_string(found - targets.begin() + 1);
    };

    std::vector<ListedInsn> out;
    Lister lister(function, style);
    for (size_t i = 0; i < insns.size(); i += out.back().slots) {
        std::string target;
        if (int64_t to = jump_target(insns, i); to >= 0 && static_cast<uint64_t>(to) < insns.size())
            target = label(static_cast<size_t>(to));
        out.push_back(lister.take(i, target));
        out.back().label = label(i);
    }
    return out;
}

std::string print(const Function &function, PrintStyle style) {
    std::string out = function.section.empty()
                          ? ".function " + plain_symbol(function.name) +
                                (function.global ? " global " + std::to_string(function.arguments) : "") +
                                (function.pointed != 0 ? " " + std::to_string(function.pointed) : "") + "\n"
                          : ".program " + plain_symbol(function.name) + " " + quoted(function.section) + "\n";
    size_t at_line = 0;
    for (const ListedInsn &listed : list(function, style)) {
        if (!listed.label.empty()) out += listed.label + ":\n";
        for (; at_line < function.lines.size() && function.lines[at_line].insn <= listed.insn; ++at_line)
            if (style.locations) {
                const SourceLine &at = function.lines[at_line];
                out += "    # " + plain_name(at.file) + ":" + std::to_string(at.line);
                if (!at.text.empty()) out += ": " + one_line(at.text);
                out += "\n";
            }
        const size_t start = out.size();
        out += "    ";
        if (style.numbers || style.bytes) {
            std::string index = std::to_string(listed.insn);
            out.insert(out.size() - 4, std::string(index.size() < 6 ? 6 - index.size() : 0, ' ') + index + ":");
            out.resize(out.size() - 2);
        }
        if (style.bytes) {
            uint8_t raw[16];
            const size_t length = listed.slots * 8;
            std::memcpy(raw, &function.insns[listed.insn], length);
            for (size_t b = 0; b < length; ++b) {
                out += "0123456789abcdef"[raw[b] >> 4];
                out += "0123456789abcdef"[raw[b] & 15];
                out += b + 1 < length ? ' ' : '\t';
            }
        }
        out += listed.text;
        if (!listed.comment.empty()) {
            constexpr size_t kCommentColumn = 48;
            if (out.size() - start < kCommentColumn - 1) out.append(kCommentColumn - 1 - (out.size() - start), ' ');
            out += " # " + one_line(listed.comment);
        }
        out += "\n";
    }
    return out;
}

std::span<const std::string_view> map_kind_names() { return kMapKinds; }

std::string map_kind_name(uint32_t type) {
    return type < std::size(kMapKinds) ? std::string(kMapKinds[type]) : "type " + std::to_string(type);
}

int find_map_kind(std::string_view name) {
    for (size_t i = 0; i < std::size(kMapKinds); ++i)
        if (kMapKinds[i] == name) return static_cast<int>(i);
    return -1;
}

std::string print(const Unit &unit, PrintStyle style) {
    std::string out = "# " + one_line(unit.name) + "\n.license " + quoted(unit.license) + "\n";
    for (const MapDef &map : unit.maps) {
        out += ".map " + plain_symbol(map.name) + " " +
               (map.type < std::size(kMapKinds) ? map_kind_name(map.type) : std::to_string(map.type));
        if (map.key_size) out += " key " + std::to_string(map.key_size);
        if (map.value_size) out += " value " + std::to_string(map.value_size);
        out += " entries " + std::to_string(map.max_entries);
        if (map.flags) out += " flags " + hex(map.flags);
        if (map.read_only) out += " read_only";
        if (!map.contents.empty() && map.contents.size() <= map.value_size) { // an arena's are no value
            out += " contents \"";
            for (uint8_t byte : map.contents) {
                out += "\\x";
                out += "0123456789abcdef"[byte >> 4];
                out += "0123456789abcdef"[byte & 15];
            }
            out += "\"";
        }
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
