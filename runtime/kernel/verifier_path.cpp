// From the verifier's log to the cause.
//
// The verifier follows one path to its end, then the other side of the last branch that it left open, and so on. In the log:
//
//      5: (15) if r0 == 0x0 goto pc+7     ; ...        it goes straight on: 6, 7, ... to an exit
//      6: ...
//      from 5 to 13: R0=0 ...                          the other side of the branch at 5
//      13: ...
//
// So the path to the last instruction is a stack: "from 5" goes back to the last 5 whose other side is still open. Along the
// path, backwards, a register's value is followed through copies, additions and stack slots to the instruction that made it.
//
// A callee doesn't change what its caller keeps (r6 to r9, its stack). Going backwards, an exit in the middle of the path is
// the end of a callee, and everything up to its call is skipped, unless r0 is searched.
#include "runtime/kernel/verifier_path.h"

#include <algorithm>
#include <linux/bpf.h>
#include <map>

#include "runtime/kernel/verifier_lines.h"

namespace rawbpf::inline v0 {
namespace {

using verifier_log::take_number;
using verifier_log::trimmed;

constexpr size_t kMostSteps = 1 << 21;

bool is_call(const Insn &i) { return i.code == (BPF_JMP | BPF_CALL); }
bool is_exit(const Insn &i) { return i.code == (BPF_JMP | BPF_EXIT); }
bool is_function_call(const Insn &i) { return is_call(i) && i.src == BPF_PSEUDO_CALL; }

} // namespace

std::vector<PathStep> verifier_path(std::string_view log) {
    std::vector<PathStep> path;
    verifier_log::Lines lines{log};
    std::string_view line;
    while (lines.next(line)) {
        if (line.starts_with("processed ") || line.starts_with("Verification failed")) break;
        std::string_view rest = line;
        if (rest.starts_with("from ")) {
            rest.remove_prefix(5);
            const int from = take_number(rest);
            if (from < 0) continue;
            size_t at = path.size();
            while (at > 0 && (path[at - 1].insn != static_cast<uint32_t>(from) || path[at - 1].tried)) --at;
            if (at == 0) continue; // before the log starts
            path.resize(at);
            path.back().tried = true;
            continue;
        }
        const int number = take_number(rest);
        if (number < 0 || !rest.starts_with(": (") || path.size() >= kMostSteps) continue;
        rest.remove_prefix(std::min(rest.find(')') + 1, rest.size()));
        size_t end = std::min(rest.find("; "), rest.size());
        if (size_t jump = rest.find("goto pc"); jump < end) { // a jump's line isn't ended
            size_t digits = jump + sizeof "goto pc" - 1;
            if (digits < rest.size() && (rest[digits] == '+' || rest[digits] == '-')) ++digits;
            while (digits < rest.size() && verifier_log::digit(rest[digits])) ++digits;
            end = digits;
        }
        const size_t after = std::min(rest.find("; ", end), rest.size());
        path.push_back({static_cast<uint32_t>(number), trimmed(rest.substr(0, end)), false, rest.substr(after)});
    }
    return path;
}

Origin origin_of(std::span<const PathStep> path, size_t end, std::span<const Insn> insns, int reg) {
    constexpr int kOnStack = -1;
    int16_t slot = 0;
    size_t callee = 0; // how many ends of callees we are inside of
    for (size_t i = std::min(end, path.size()); i-- > 0;) {
        if (path[i].insn >= insns.size()) return {};
        const Insn &insn = insns[path[i].insn];
        if (is_exit(insn) && (reg != BPF_REG_0 || callee > 0)) {
            ++callee;
            continue;
        }
        if (is_function_call(insn) && callee > 0) {
            --callee;
            if (callee == 0 && reg >= BPF_REG_1 && reg <= BPF_REG_5) return {Origin::Kind::cleared, i};
            continue;
        }
        if (callee > 0) continue;
        const uint8_t kind = BPF_CLASS(insn.code);
        if (reg == kOnStack) {
            if (is_function_call(insn)) return {}; // another function's stack
            if (kind != BPF_STX && kind != BPF_ST) continue;
            if (insn.dst != BPF_REG_10 || insn.off != slot) continue;
            if (kind == BPF_ST) return {Origin::Kind::constant, i};
            if (BPF_MODE(insn.code) != BPF_MEM) return {};
            reg = insn.src;
            continue;
        }
        if (is_call(insn)) {
            if (is_function_call(insn)) { // we are in the callee: arguments come from the caller
                if (reg >= BPF_REG_1 && reg <= BPF_REG_5) continue;
                return {};
            }
            if (reg == BPF_REG_0) return {Origin::Kind::call, i};
            if (reg >= BPF_REG_1 && reg <= BPF_REG_5) return {Origin::Kind::cleared, i};
            continue;
        }
        const bool writes = kind == BPF_ALU || kind == BPF_ALU64 || kind == BPF_LDX || kind == BPF_LD;
        if (!writes) {
            if (kind == BPF_STX && BPF_MODE(insn.code) == BPF_ATOMIC && (insn.imm & BPF_FETCH) && insn.src == reg)
                return {Origin::Kind::load, i};
            continue;
        }
        if (kind == BPF_LD && !is_wide(insn)) { // a packet's byte, into r0
            if (reg == BPF_REG_0) return {Origin::Kind::load, i};
            continue;
        }
        if (insn.dst != reg) continue;
        if (kind == BPF_LD) return {Origin::Kind::constant, i};
        if (kind == BPF_LDX) {
            if (insn.src != BPF_REG_10 || BPF_MODE(insn.code) != BPF_MEM) return {Origin::Kind::load, i};
            reg = kOnStack;
            slot = insn.off;
            continue;
        }
        const uint8_t operation = BPF_OP(insn.code);
        if (operation == BPF_MOV) {
            if (BPF_SRC(insn.code) == BPF_K) return {Origin::Kind::constant, i};
            reg = insn.src;
            if (reg == BPF_REG_10) return {Origin::Kind::constant, i};
        } else if (operation != BPF_ADD && operation != BPF_SUB) {
            return {Origin::Kind::computed, i};
        }
    }
    return {reg == kOnStack ? Origin::Kind::unknown : Origin::Kind::entry, 0};
}

PathLoop busiest_loop(std::span<const PathStep> path, size_t least_rounds) {
    struct Edge {
        size_t times = 0, last = 0;
    };
    std::map<std::pair<uint32_t, uint32_t>, Edge> edges; // (back, head)
    for (size_t i = 1; i < path.size(); ++i) {
        const uint32_t from = path[i - 1].insn, to = path[i].insn;
        if (to > from || path[i - 1].text.starts_with("exit") || path[i - 1].text.starts_with("call")) continue;
        Edge &edge = edges[{from, to}];
        ++edge.times;
        edge.last = i;
    }
    PathLoop out;
    for (const auto &[jump, edge] : edges)
        if (edge.times >= least_rounds && edge.times > out.rounds) out = {edge.times, 0, edge.last, jump.second, jump.first};
    for (out.begin = out.end; out.begin > 0;)
        if (path[--out.begin].insn == out.head) break;
    return out;
}

} // namespace rawbpf::inline v0
