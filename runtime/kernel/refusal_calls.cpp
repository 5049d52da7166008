// Advice on calls: which arguments the helper takes, what has to be released, which programs may call it.
#include <algorithm>

#include <linux/bpf.h>

#include "asm/helpers.h"
#include "asm/program_types.h"
#include "runtime/base/format.h"
#include "runtime/kernel/refusal_parts.h"
#include "runtime/sys/names.h"

namespace rawbpf::inline v0::refusal {
namespace {

const HelperInfo *called_helper(const Case &c) {
    const Insn *insn = c.insn();
    return insn && insn->code == (BPF_JMP | BPF_CALL) && insn->src == 0 ? find_helper(insn->imm) : nullptr;
}

struct Word {
    std::string_view name, words;
};
constexpr Word kExpected[] = {
    {"fp", "the stack"},
    {"pkt", "the packet"},
    {"pkt_meta", "the packet's metadata"},
    {"map_key", "a map's key"},
    {"map_value", "a map's value"},
    {"mem", "memory of a known size"},
    {"ringbuf_mem", "a ring buffer's record"},
    {"alloc_mem", "a ring buffer's record"},
    {"buf", "a buffer"},
    {"trusted_ptr_", "a struct of the kernel's"},
    {"ptr_", "a struct of the kernel's"},
    {"map_ptr", "a map"},
    {"ctx", "the context"},
    {"scalar", "a number"},
    {"inv", "a number"},
    {"sock", "a socket"},
    {"sock_common", "a socket"},
    {"tcp_sock", "a socket"},
    {"percpu_ptr_", "a per-CPU variable of the kernel's"},
    {"func", "a function of the program"},
    {"dynptr_ptr", "a dynptr"},
};

// "fp, pkt, map_value" -> "the stack, the packet, a map's value"; each once.
std::string expected_words(std::string_view list) {
    std::string out;
    while (!list.empty()) {
        std::string_view one = list.substr(0, list.find(','));
        list.remove_prefix(std::min(one.size() + 1, list.size()));
        while (one.starts_with(' ')) one.remove_prefix(1);
        std::string_view words = one;
        for (const Word &row : kExpected)
            if (row.name == one) words = row.words;
        if (!words.empty() && out.find(words) == std::string::npos) append(out, "{}{}", out.empty() ? "" : ", ", words);
    }
    return out;
}

bool lists(std::string_view list, std::string_view word) {
    for (size_t at = list.find(word); at != std::string_view::npos; at = list.find(word, at + 1)) {
        const size_t end = at + word.size();
        if ((at == 0 || list[at - 1] == ' ' || list[at - 1] == '=') &&
            (end == list.size() || list[end] == ',' || list[end] == ';'))
            return true;
    }
    return false;
}

struct Pair {
    std::string_view acquire, release;
};
// By what the acquiring function's name begins with.
constexpr Pair kPairs[] = {
    {"bpf_ringbuf_reserve_dynptr", "bpf_ringbuf_submit_dynptr() or bpf_ringbuf_discard_dynptr()"},
    {"bpf_ringbuf_reserve", "bpf_ringbuf_submit() or bpf_ringbuf_discard()"},
    {"bpf_sk_lookup", "bpf_sk_release()"},
    {"bpf_skc_lookup", "bpf_sk_release()"},
    {"bpf_map_lookup_elem", "bpf_sk_release()"}, // of a sockmap
    {"bpf_task_", "bpf_task_release()"},
    {"bpf_cgroup_", "bpf_cgroup_release()"},
    {"bpf_cpumask_", "bpf_cpumask_release()"},
    {"bpf_get_task_exe_file", "bpf_put_file()"},
    {"bpf_skb_ct_", "bpf_ct_release()"},
    {"bpf_xdp_ct_", "bpf_ct_release()"},
    {"bpf_ct_", "bpf_ct_release()"},
    {"bpf_obj_new", "bpf_obj_drop()"},
    {"bpf_percpu_obj_new", "bpf_percpu_obj_drop()"},
    {"bpf_refcount_acquire", "bpf_obj_drop()"},
    {"bpf_kptr_xchg", "bpf_kptr_xchg() back into a map, or the type's release function"},
    {"bpf_iter_", "the iterator's _destroy()"},
};

} // namespace

bool argument_kind(Case &c) {
    const std::string_view reason = c.refusal.reason;
    const size_t type = reason.find("type="), want = reason.find(" expected=");
    const int reg = register_named(reason);
    if (type == std::string_view::npos || want == std::string_view::npos || want < type || reg < 1 || reg > 5) return false;
    const std::string_view got = reason.substr(type + 5, want - type - 5);
    std::string_view list = reason.substr(want + sizeof " expected=" - 1);
    list = list.substr(0, list.find(';'));
    const std::string have = describe_register(got);
    std::string name, own;
    if (const HelperInfo *helper = called_helper(c)) {
        c.note(helper->prototype());
        own = format(", `{}`,", helper->argument(reg));
    }
    const bool memory = lists(list, "fp") || lists(list, "map_value");
    c.note(format("argument {}{} must {}{}; R{} is {}", reg, own, memory ? "point to one of: " : "be: ", expected_words(list),
                  reg, have.empty() ? std::string(got) : have));
    if (got.find("_or_null") != std::string_view::npos) return may_be_null(c) || true;
    if (memory && have == "a number")
        c.refusal.hint = "pass an address, not the value: keep the value in a variable on the stack and pass `&variable` "
                         "(in assembly: *(u32 *)(r10 - 4) = r0; r2 = r10; r2 += -4)";
    else if (lists(list, "map_ptr"))
        c.refusal.hint = "pass the map itself: `&map` (in assembly: r1 = map ll)";
    else if (lists(list, "ctx"))
        c.refusal.hint = "pass the context that the program was given, unchanged: keep it from the start (r6 = r1)";
    else if (lists(list, "scalar") || lists(list, "inv"))
        c.refusal.hint = "pass a number here, not a pointer";
    else
        c.refusal.hint = "pass a pointer of the kind that the prototype asks for";
    return true;
}

bool argument_of_call(Case &c) {
    const HelperInfo *helper = called_helper(c);
    const int reg = register_named(c.refusal.reason);
    if (!helper || reg < 1 || reg > 5) return false;
    const std::string_view own = helper->argument(reg);
    if (own.empty()) return false;
    c.note(format("R{} is argument {}, `{}`, of {}", reg, reg, own, helper->prototype()));
    return false; // the general hint stays
}

void note_last_branch(Case &c, size_t after) {
    for (size_t i = c.path.size(); i-- > after + 1;) {
        const Insn *insn = c.insn_at(c.path[i].insn);
        const bool branch = insn && (BPF_CLASS(insn->code) == BPF_JMP || BPF_CLASS(insn->code) == BPF_JMP32) &&
                            BPF_OP(insn->code) != BPF_JA && BPF_OP(insn->code) != BPF_CALL && BPF_OP(insn->code) != BPF_EXIT;
        if (!branch || i + 1 >= c.path.size()) continue;
        const ProgramPlace place = c.places.at(c.path[i].insn);
        if (place.line == 0 || place.line != c.refusal.at.line || place.file != c.refusal.at.file)
            c.note_at(c.path[i].insn, c.path[i + 1].insn == c.path[i].insn + 1 ? "the path goes on here without the jump"
                                                                               : "the path takes this jump");
        return;
    }
}

bool leak(Case &c) {
    const std::optional<int64_t> made = number_after(c.refusal.reason, "alloc_insn="),
                                 id = number_after(c.refusal.reason, " id=");
    if (!made || *made < 0) return false;
    const auto at = static_cast<uint32_t>(*made);
    const std::string name = c.called(at);
    c.note_at(at, format("{} here, and this path doesn't release it", name.empty() ? "it is acquired" : name + "() acquires it"));
    // The last decision before it ends is where the path leaves the ones that do give it back.
    for (size_t i = c.path.size(); i-- > 0;)
        if (c.path[i].insn == at) {
            note_last_branch(c, i);
            break;
        }
    std::string kept; // only registers that hold it
    for (int reg = 0; id && reg < 10; ++reg) {
        const std::string_view value = value_in(c.all_registers, reg);
        if (value.find(format("ref_obj_id={}", *id)) != std::string_view::npos)
            append(kept, "{}R{}={}", kept.empty() ? "" : " ", reg, value);
    }
    c.refusal.registers = kept;
    for (const Pair &pair : kPairs)
        if (name.starts_with(pair.acquire)) {
            c.refusal.hint =
                format("release what {}() returned on every path, by {}: also before this return", name, pair.release);
            break;
        }
    return true;
}

bool may_sleep(Case &c) {
    if (c.refusal.at.insn < 0) return false;
    const std::string name = c.called(static_cast<uint32_t>(c.refusal.at.insn));
    if (name.empty()) return false;
    c.refusal.registers.clear();
    c.note(format("{}() may have to wait, for example until a page is read from disk; a program of section \"{}\" may not wait",
                  name, c.refusal.section));
    const std::string_view instead =
        name == "bpf_copy_from_user"       ? "bpf_probe_read_user(), which fails where the page isn't in memory"
        : name == "bpf_copy_from_user_str" ? "bpf_probe_read_user_str(), which fails where the page isn't in memory"
                                           : "";
    c.refusal.hint = format(
        "{}attach it where programs may sleep: fentry.s/, fexit.s/, fmod_ret.s/, lsm.s/, iter.s/, uprobe.s/, uretprobe.s/, "
        "struct_ops.s/, syscall",
        instead.empty() ? "" : format("use {}; or ", instead));
    return true;
}

// The kernel says "inside bpf_spin_lock-ed region" (6.13), "bpf_spin_unlock is missing", "while holding a lock".
bool held(Case &c) {
    struct Region {
        std::string_view word, enter, leave; ///< of the reason; of the calls
    };
    constexpr Region kRegions[] = {
        {"rcu", "bpf_rcu_read_lock", "bpf_rcu_read_unlock"},
        {"preempt", "bpf_preempt_disable", "bpf_preempt_enable"},
        {"irq_save", "bpf_local_irq_save", "bpf_local_irq_restore"},
        {"", "bpf_spin_lock", "bpf_spin_unlock"},
        {"", "bpf_res_spin_lock_irqsave", "bpf_res_spin_unlock_irqrestore"},
        {"", "bpf_res_spin_lock", "bpf_res_spin_unlock"},
    };
    if (!c.ends_here()) return false;
    for (const Region &region : kRegions) {
        if (c.refusal.reason.find(region.word) == std::string::npos) continue;
        std::vector<size_t> open;
        for (size_t i = 0; i + 1 < c.path.size(); ++i) {
            const std::string name = c.called(c.path[i].insn);
            if (name == region.enter) open.push_back(i);
            if (name == region.leave && !open.empty()) open.pop_back();
        }
        if (open.empty()) continue;
        const size_t from = open.back();
        const Insn *insn = c.insn();
        const bool exit = insn && insn->code == (BPF_JMP | BPF_EXIT);
        const std::string name = c.called(c.path.back().insn);
        c.refusal.registers.clear();
        c.note_at(c.path[from].insn,
                  format("{}() here, and this path reaches the refused instruction without {}()", region.enter, region.leave));
        if (exit) note_last_branch(c, from);
        c.refusal.hint = exit ? format("call {}() on every path, also before this return", region.leave)
                         : name == region.enter
                             ? format("call {}() before the next {}()", region.leave, region.enter)
                             : format("do this {}before {}() or after {}()", name.empty() ? "" : format("call of {}() ", name),
                                      region.enter, region.leave);
        return true;
    }
    return false;
}

bool license(Case &c) {
    c.refusal.registers.clear();
    const std::string name = c.refusal.at.insn < 0 ? std::string() : c.called(static_cast<uint32_t>(c.refusal.at.insn));
    c.note(c.context.license.empty() ? std::string("the object declares no license")
                                     : format("the object's license is \"{}\"", c.context.license));
    c.refusal.hint = format("{} only for programs under the GPL: if this is the license of yours, declare it: char LICENSE[] "
                            "SEC(\"license\") = \"GPL\"; or \"Dual MIT/GPL\" (in assembly: .license \"GPL\")",
                            name.empty() ? "this function is" : name + "() is");
    return true;
}

bool helper_refused(Case &c) {
    const HelperInfo *helper = called_helper(c);
    if (!helper) return false;
    const std::string_view name = helper->name;
    const bool tracing = program_type_row(c.program.type).family == ProgramFamily::probe;
    const bool writes = name == "probe_write_user";
    const bool reads =
        name == "probe_read" || name == "probe_read_str" || name == "probe_read_kernel" || name == "probe_read_kernel_str";
    if (!tracing || (!writes && !reads)) return false;
    const std::string_view lockdown = c.context.lockdown;
    const bool locked = writes ? !lockdown.empty() && lockdown != "none" : lockdown == "confidentiality";
    if (!locked && !lockdown.empty() && !writes) return false; // not by lockdown, and nothing else is known to forbid it
    c.refusal.kind = "policy";
    c.refusal.registers.clear();
    const std::string_view level = writes ? "lockdown (integrity or confidentiality)" : "lockdown (confidentiality)";
    if (locked) {
        c.note(format("this kernel is locked down (/sys/kernel/security/lockdown: {}), and so no program may call bpf_{}()",
                      lockdown, name));
        c.refusal.hint = format("programs of this type may call it if the kernel isn't locked down. To get rid of {}, boot "
                                "without it (kernel parameter lockdown=, Secure Boot)",
                                level);
    } else if (lockdown.empty()) {
        c.note(format("programs of this type may call bpf_{}(), but a policy of this kernel refuses it: {}{}", name, level,
                      writes ? ", or CAP_SYS_ADMIN is missing" : ""));
        c.refusal.hint = "rawbpf can't read /sys/kernel/security/lockdown, which shows this policy: mount -t securityfs "
                         "securityfs /sys/kernel/security";
    } else {
        c.note(format("this kernel isn't locked down, and programs of this type may call bpf_{}(), with CAP_SYS_ADMIN", name));
        c.refusal.hint = "load it with CAP_SYS_ADMIN";
    }
    return true;
}

} // namespace rawbpf::inline v0::refusal
