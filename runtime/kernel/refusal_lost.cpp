// Advice on pointers that have become invalid: to something that was released, or to a packet that a call may have moved.
//
// From the call on, both are numbers to the verifier ("R6 invalid mem access 'scalar'"), but its log shows the register as it
// was last written, as a pointer. The path and the instructions tell which call it was: the one that got the same value, or
// one of those that the kernel's bpf_helper_changes_pkt_data() lists (6.18).
#include <algorithm>
#include <cstddef>
#include <linux/bpf.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "asm/program_types.h"
#include "runtime/base/format.h"
#include "runtime/kernel/refusal_parts.h"

namespace rawbpf::inline v0::refusal {
namespace {

bool any_of(std::span<const std::string_view> list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

// --- what is given back ---

// The argument that a function takes for good; 0: none.
int taken_argument(std::string_view name) {
    if (name.ends_with("_impl")) name.remove_suffix(sizeof "_impl" - 1); // a list's and a tree's are macros over these
    constexpr std::string_view kSecond[] = {"bpf_kptr_xchg", "bpf_rbtree_add", "bpf_list_push_front", "bpf_list_push_back"};
    constexpr std::string_view kFirst[] = {"bpf_ringbuf_submit", "bpf_ringbuf_discard", "bpf_put_file",
                                           "bpf_key_put",        "bpf_obj_drop",        "bpf_percpu_obj_drop"};
    if (any_of(kSecond, name)) return 2;
    return any_of(kFirst, name) || (name.starts_with("bpf_") && name.ends_with("_release")) ? 1 : 0;
}

// They return what they are given, as another type.
bool is_cast(std::string_view name) {
    return name == "bpf_sk_fullsock" || name == "bpf_tcp_sock" || name == "bpf_get_listener_sock" ||
           name.starts_with("bpf_skc_to_") || name == "bpf_rdonly_cast" || name == "bpf_cast_to_kern_ctx";
}

// The call that the value of a register comes from, before path[end]; through casts.
Origin first_made(const Case &c, size_t end, int reg) {
    Origin from = origin_of(c.path, end, c.program.insns, reg);
    for (int casts = 0; casts < 8 && from.kind == Origin::Kind::call && is_cast(c.called(c.path[from.step].insn)); ++casts) {
        const Origin before = origin_of(c.path, from.step, c.program.insns, BPF_REG_1);
        if (before.kind != Origin::Kind::call) break;
        from = before;
    }
    return from;
}

// Where on the stack the register points to, before path[end]: a dynptr.
std::optional<int64_t> stack_place(const Case &c, size_t end, int reg) {
    int64_t sum = 0;
    for (size_t i = end; i-- > 0;) {
        const Insn *insn = c.insn_at(c.path[i].insn);
        if (!insn || BPF_CLASS(insn->code) == BPF_JMP || BPF_CLASS(insn->code) == BPF_JMP32) {
            if (insn && BPF_OP(insn->code) == BPF_CALL && reg <= BPF_REG_5) return {};
            if (insn && BPF_OP(insn->code) == BPF_EXIT) return {};
            continue;
        }
        const uint8_t kind = BPF_CLASS(insn->code);
        if (insn->dst != reg || kind == BPF_STX || kind == BPF_ST) continue;
        if (insn->code == (BPF_ALU64 | BPF_MOV | BPF_X)) {
            if (insn->src == BPF_REG_10) return sum;
            reg = insn->src;
        } else if (insn->code == (BPF_ALU64 | BPF_ADD | BPF_K)) {
            sum += insn->imm;
        } else {
            return {};
        }
    }
    return {};
}

bool ends_dynptr(std::string_view name) { return name == "bpf_ringbuf_submit_dynptr" || name == "bpf_ringbuf_discard_dynptr"; }

// The last call that submitted the dynptr there, between two steps.
std::optional<size_t> dynptr_end(const Case &c, size_t begin, size_t end, int64_t place) {
    for (size_t i = end; i-- > begin;)
        if (ends_dynptr(c.called(c.path[i].insn)) && stack_place(c, i, BPF_REG_1) == place) return i;
    return {};
}

struct Loss {
    size_t made = 0, lost = 0; // steps
};

std::optional<Loss> given_back(const Case &c, int reg) {
    const size_t end = c.path.size() - 1;
    const Origin made = first_made(c, end, reg);
    if (made.kind != Origin::Kind::call) return {};
    int left = 1000; // a path may have a million steps, and each look goes back along it
    for (size_t i = made.step + 1; i < end && left > 0; ++i) {
        const int argument = taken_argument(c.called(c.path[i].insn));
        if (argument == 0) continue;
        --left;
        const Origin passed = first_made(c, i, argument);
        if (passed.kind == Origin::Kind::call && passed.step == made.step) return Loss{made.step, i};
    }
    const std::string name = c.called(c.path[made.step].insn);
    if (name != "bpf_dynptr_data" && !name.starts_with("bpf_dynptr_slice")) return {};
    if (const std::optional<int64_t> place = stack_place(c, made.step, BPF_REG_1))
        if (const std::optional<size_t> gone = dynptr_end(c, made.step + 1, end, *place)) return Loss{made.step, *gone};
    return {};
}

// A call that is passed a dynptr which a call before has submitted.
bool dynptr_submitted(Case &c) {
    const size_t end = c.path.size() - 1;
    const std::string name = c.called(c.path[end].insn);
    for (int reg = BPF_REG_1; !name.empty() && reg <= BPF_REG_5; ++reg) {
        const std::optional<int64_t> place = stack_place(c, end, reg);
        const std::optional<size_t> gone = place ? dynptr_end(c, 0, end, *place) : std::nullopt;
        if (!gone) continue;
        const std::string by = c.called(c.path[*gone].insn);
        c.refusal.kind = "released";
        c.refusal.registers.clear();
        c.note_at(c.path[*gone].insn, format("{}() released the dynptr here: from here on it is invalid", by));
        c.refusal.hint = ends_dynptr(name) ? format("release it only once on each path: {}() has already done so", by)
                                           : format("use the dynptr before {}()", by);
        return true;
    }
    return false;
}

// --- packets ---

constexpr std::string_view kChangePackets[] = {
    "bpf_clone_redirect",      "bpf_l3_csum_replace",      "bpf_l4_csum_replace",  "bpf_lwt_push_encap",  "bpf_lwt_seg6_action",
    "bpf_lwt_seg6_adjust_srh", "bpf_lwt_seg6_store_bytes", "bpf_msg_pop_data",     "bpf_msg_pull_data",   "bpf_msg_push_data",
    "bpf_skb_adjust_room",     "bpf_skb_change_head",      "bpf_skb_change_proto", "bpf_skb_change_tail", "bpf_skb_pull_data",
    "bpf_skb_store_bytes",     "bpf_skb_vlan_pop",         "bpf_skb_vlan_push",    "bpf_store_hdr_opt",   "bpf_xdp_adjust_head",
    "bpf_xdp_adjust_meta",     "bpf_xdp_adjust_tail",      "bpf_tail_call",        "bpf_xdp_pull_data",
};

// Whether a function of the program, or one that it calls, has a call that changes packets; its name.
std::string changes_inside(const Case &c, uint32_t start, int depth) {
    uint32_t end = static_cast<uint32_t>(c.program.insns.size());
    for (const ProgramSpec::Subprogram &sub : c.program.subprograms)
        if (sub.insn > start) end = std::min(end, sub.insn);
    for (uint32_t i = start; i < end; i += is_wide(c.program.insns[i]) ? 2 : 1) {
        const Insn &insn = c.program.insns[i];
        if (insn.code != (BPF_JMP | BPF_CALL)) continue;
        if (insn.src == BPF_PSEUDO_CALL) {
            const int64_t target = int64_t(i) + 1 + insn.imm;
            if (depth < 8 && c.insn_at(target))
                if (std::string name = changes_inside(c, static_cast<uint32_t>(target), depth + 1); !name.empty()) return name;
        } else if (std::string name = c.called(i); any_of(kChangePackets, name)) {
            return name;
        }
    }
    return {};
}

// The last step that wrote the register, other than on the way of a copy.
std::optional<size_t> last_write(const Case &c, int reg) {
    for (size_t i = c.path.size() - 1; i-- > 0;) {
        const Insn *insn = c.insn_at(c.path[i].insn);
        if (!insn) return {};
        const uint8_t kind = BPF_CLASS(insn->code);
        const bool writes = kind == BPF_ALU || kind == BPF_ALU64 || kind == BPF_LDX || kind == BPF_LD;
        if (writes && insn->dst == reg) return i;
    }
    return {};
}

std::optional<Loss> packet_gone(const Case &c, int reg, std::string &by) {
    const size_t end = c.path.size() - 1;
    const Origin from = origin_of(c.path, end, c.program.insns, reg);
    std::optional<size_t> made;
    if (from.kind == Origin::Kind::load && packet_register(c, end, reg) != PacketPlace::none) made = from.step;
    if (from.kind == Origin::Kind::call && c.called(c.path[from.step].insn).starts_with("bpf_dynptr_slice")) made = from.step;
    // A pointer that was added to a number: the log still has it as it was.
    if (!made && register_value(c, reg).starts_with("pkt")) made = last_write(c, reg);
    if (!made) return {};
    const auto change = packet_change(c, *made + 1);
    if (!change) return {};
    by = change->second;
    return Loss{*made, change->first};
}

} // namespace

std::optional<std::pair<size_t, std::string>> packet_change(const Case &c, size_t after) {
    std::optional<std::pair<size_t, std::string>> written;
    for (size_t i = after; i + 1 < c.path.size(); ++i) {
        const Insn *insn = c.insn_at(c.path[i].insn);
        if (!insn || insn->code != (BPF_JMP | BPF_CALL)) continue;
        if (insn->src == BPF_PSEUDO_CALL) {
            if (c.path[i + 1].insn != c.path[i].insn + 1) continue; // the path goes through it
            const int64_t target = int64_t(c.path[i].insn) + 1 + insn->imm;
            if (!c.insn_at(target)) continue;
            const std::string inside = changes_inside(c, static_cast<uint32_t>(target), 0);
            if (!inside.empty())
                return std::pair(i, format("{}(), which calls {}(),", c.places.function(static_cast<uint32_t>(target)), inside));
            continue;
        }
        const std::string name = c.called(c.path[i].insn);
        if (any_of(kChangePackets, name)) return std::pair(i, name + "()");
        if (name == "bpf_dynptr_write" && !written) written = std::pair(i, name + "()"); // if it is a packet's
    }
    return written;
}

PacketPlace packet_register(const Case &c, size_t end, int reg) {
    const Origin from = origin_of(c.path, end, c.program.insns, reg);
    if (from.kind != Origin::Kind::load) return PacketPlace::none;
    const Insn *load = c.insn_at(c.path[from.step].insn);
    if (!load || BPF_CLASS(load->code) != BPF_LDX) return PacketPlace::none;
    if (origin_of(c.path, from.step, c.program.insns, load->src).kind != Origin::Kind::entry) return PacketPlace::none;
    struct Row {
        std::string_view context;
        int16_t data, end, meta;
    };
    constexpr Row kRows[] = {
        {"__sk_buff", offsetof(__sk_buff, data), offsetof(__sk_buff, data_end), offsetof(__sk_buff, data_meta)},
        {"xdp_md", 0, 4, 8},
        {"sk_msg_md", 0, 8, -1},
        {"sk_reuseport_md", 0, 8, -1},
    };
    Row row = {};
    for (const Row &one : kRows)
        if (one.context == program_type_row(c.program.type).context) row = one;
    if (row.end == 0) return PacketPlace::none;
    return load->off == row.data   ? PacketPlace::data
           : load->off == row.end  ? PacketPlace::end
           : load->off == row.meta ? PacketPlace::meta
                                   : PacketPlace::none;
}

bool lost(Case &c) {
    if (!c.ends_here()) return false;
    int reg = register_named(c.refusal.reason);
    for (std::string_view word : {"arg#", "args#"})
        if (const std::optional<int64_t> argument = number_after(c.refusal.reason, word); argument && reg < 0)
            reg = static_cast<int>(*argument) + 1;
    if (c.refusal.reason.find("dynptr") != std::string::npos && dynptr_submitted(c)) return true;
    if (reg < 0 || reg > 9) return false;
    const bool call = c.insn() && c.insn()->code == (BPF_JMP | BPF_CALL);
    if (const std::optional<Loss> loss = given_back(c, reg)) {
        const std::string maker = c.called(c.path[loss->made].insn), by = c.called(c.path[loss->lost].insn);
        const bool again = call && taken_argument(c.called(c.path.back().insn)) == reg;
        const bool keeps = taken_argument(by) == 2 && by != "bpf_kptr_xchg"; // until the lock is given back
        c.refusal.kind = "released";
        forget_register(c, reg);
        c.note_at(c.path[loss->made].insn, format("R{} comes from what {}() returned here", reg, maker));
        c.note_at(c.path[loss->lost].insn, keeps ? format("{}() took it over here: after the unlock, the pointer is invalid", by)
                                                 : format("{}() released it here: from here on, the pointer is invalid", by));
        c.refusal.hint = again   ? format("release it only once on each path: {}() has already done so", by)
                         : keeps ? "use it before the unlock, or remove it from the list or tree again"
                                 : format("use it before {}(), or copy what is needed later into a variable before that", by);
        return true;
    }
    std::string by;
    if (const std::optional<Loss> loss = packet_gone(c, reg, by)) {
        c.refusal.kind = "packet";
        forget_register(c, reg);
        c.note_at(
            c.path[loss->lost].insn,
            format("{} may move or change the packet's data: every pointer into it from before is invalid from here on", by));
        const bool slice = !c.called(c.path[loss->made].insn).empty();
        c.refusal.hint = slice ? "get the slice again after this call"
                               : "after this call, load data and data_end from the context again, and compare again before the "
                                 "access";
        return true;
    }
    return false;
}

} // namespace rawbpf::inline v0::refusal
