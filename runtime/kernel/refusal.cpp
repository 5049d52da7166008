// Prints a refusal in lines, like a compiler's message:
//
//      hello.bpf.c:8:8: R0 invalid mem access 'map_value_or_null'
//        8 |     *n += 1;
//          |        ^
//        R0 = map_value_or_null(id=1,map=counts,ks=4,vs=8): a pointer to a value of map counts, or NULL
//        note: hello.bpf.c:7:16: the pointer comes from this call of bpf_map_lookup_elem()
//        7 |     __u64 *n = bpf_map_lookup_elem(&counts, &key);
//          |                ^
//
// The verifier's names of what registers hold are those of kernel/bpf/log.c, reg_type_str(), 5.10 to 7.x ("inv" became "scalar"
// in 5.18).
#include "runtime/kernel/refusal.h"

#include <algorithm>
#include <utility>

#include "runtime/base/format.h"
#include "runtime/kernel/verifier_lines.h"

namespace rawbpf::inline v0 {
namespace {

std::string place_text(const ProgramPlace &at) {
    if (at.file.empty() || at.line == 0) return at.insn >= 0 ? format("instruction {}: ", at.insn) : std::string();
    return at.column ? format("{}:{}:{}: ", at.file, at.line, at.column) : format("{}:{}: ", at.file, at.line);
}

void append_source(std::string &out, const ProgramPlace &at) {
    if (at.line == 0 || at.source.empty()) {
        if (at.insn >= 0 && !at.instruction.empty()) append(out, "  {} | {}\n", at.insn, at.instruction);
        return;
    }
    const std::string number = std::to_string(at.line);
    append(out, "  {} | {}\n", number, at.source);
    if (at.column == 0 || at.column > at.source.size()) return;
    append(out, "  {} | ", std::string(number.size(), ' '));
    for (size_t i = 0; i + 1 < at.column; ++i) out += at.source[i] == '\t' ? '\t' : ' ';
    out += "^\n";
}

struct RegisterWords {
    std::string_view start, words;
};

constexpr RegisterWords kRegisters[] = {
    {"ctx", "the context"},
    {"map_ptr", "map"},
    {"map_value", "a pointer to a value of map"},
    {"map_key", "a pointer to a key of map"},
    {"fp", "a pointer to the stack"},
    {"pkt_meta", "a pointer to the packet's metadata"},
    {"pkt_end", "the end of the packet (data_end)"},
    {"pkt", "a pointer into the packet"},
    {"flow_keys", "a pointer to the flow keys"},
    {"ringbuf_mem", "a record of a ring buffer"},
    {"alloc_mem", "a record of a ring buffer"},
    {"mem", "a pointer to memory"},
    {"rdonly_mem", "a pointer to memory that can only be read"},
    {"rdonly_buf", "a pointer to a buffer that can only be read"},
    {"rdwr_buf", "a pointer to a buffer"},
    {"buf", "a pointer to a buffer"},
    {"sock_common", "a pointer to a socket"},
    {"sock", "a pointer to a socket"},
    {"tcp_sock", "a pointer to a TCP socket"},
    {"xdp_sock", "a pointer to an XDP socket"},
    {"scalar", "a number"},
    {"invP", "a number"},
    {"inv", "a number"},
    {"arena", "a pointer into an arena"},
    {"func", "a function"},
    {"dynptr", "a dynptr"},
};

// "map=counts," in "map_value(id=1,map=counts,ks=4,vs=8)".
std::string_view named(std::string_view value, std::string_view name) {
    const size_t at = value.find(name);
    if (at == std::string_view::npos || at == 0 || (value[at - 1] != ',' && value[at - 1] != '(')) return {};
    std::string_view rest = value.substr(at + name.size());
    return rest.substr(0, rest.find_first_of(",)"));
}

thread_local Refusal *wanted = nullptr;

} // namespace

KeepRefusal::KeepRefusal(Refusal &into) : before_(std::exchange(wanted, &into)) {}
KeepRefusal::~KeepRefusal() { wanted = before_; }
void KeepRefusal::put(Refusal &&refusal) {
    if (wanted) *wanted = std::move(refusal);
}

std::string describe_register(std::string_view value) {
    if (value.empty()) return {};
    const std::string_view type = value.substr(0, value.find('('));
    if (verifier_log::digit(type[0]) || (type[0] == '-' && type.size() > 1)) return "a number";
    const bool maybe = type.ends_with("_or_null");
    std::string out;
    for (const RegisterWords &row : kRegisters)
        if (type.starts_with(row.start) &&
            (type.size() == row.start.size() || type[row.start.size()] == '_' || row.start == "fp" || row.start == "inv")) {
            out = row.words;
            break;
        }
    for (const std::string_view kind : {"ptr_", "rcu_ptr_", "trusted_ptr_", "untrusted_ptr_"})
        if (out.empty() && type.starts_with(kind)) {
            std::string_view name = type.substr(kind.size());
            if (maybe) name.remove_suffix(sizeof "_or_null" - 1);
            if (name.starts_with("or_null_")) name.remove_prefix(sizeof "or_null_" - 1); // 5.10
            out = format("a pointer to the kernel's struct {}", name);
        }
    if (out.empty()) return {};
    if (out == "map" || out.ends_with(" map")) {
        const std::string_view map = named(value, "map=");
        if (map.empty())
            out += out == "map" ? "" : "";
        else
            append(out, " {}", map);
        if (map.empty() && out == "map") out = "a map";
        if (map.empty() && out.ends_with("of map")) out.replace(out.size() - 3, 3, "a map");
    }
    if (maybe) out += ", or NULL";
    return out;
}

std::string print_refusal(const Refusal &refusal) {
    std::string out = place_text(refusal.at) + refusal.reason + "\n";
    append_source(out, refusal.at);
    std::string_view rest = refusal.registers;
    while (!rest.empty()) { // "R1=ctx() R10=fp0", blanks only within parentheses
        size_t end = 0, depth = 0;
        while (end < rest.size() && (depth > 0 || rest[end] != ' ')) {
            if (rest[end] == '(') ++depth;
            if (rest[end] == ')' && depth > 0) --depth;
            ++end;
        }
        const std::string_view one = rest.substr(0, end);
        const size_t equals = std::min(one.find('='), one.size());
        const std::string_view value = one.substr(std::min(equals + 1, one.size()));
        const std::string words = describe_register(value);
        append(out, "  {} = {}{}{}\n", one.substr(0, equals), value, words.empty() ? "" : ": ", words);
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    for (const RefusalNote &note : refusal.notes) {
        const ProgramPlace &at = note.at;
        const bool same = at.line != 0 && at.line == refusal.at.line && at.file == refusal.at.file;
        append(out, "  note: {}{}\n", same && at.column == refusal.at.column ? std::string() : place_text(at), note.text);
        if (!same) append_source(out, at);
    }
    return out;
}

} // namespace rawbpf::inline v0
