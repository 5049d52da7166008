// Calls: helpers, functions of the unit, kernel functions.
//
//      r0 = result        r1 .. r5 = arguments, gone afterwards        r6 .. r9 kept
//
// Arguments may be in any registers, or be numbers, addresses, maps; the code here moves them to r1 to r5. The calling
// convention is the kernel's Documentation/bpf/standardization/abi.rst; its checks of arguments are check_func_arg() in
// kernel/bpf/verifier.c.
#include "asm/builder.h"

#include <algorithm>

namespace rawbpf::inline v0 {

// --- Calls ------------------------------------------------------------------------------------------------------------------

void Code::after_call(std::string_view what, bool returns, Where where) {
    for (int n = 1; n <= 5; ++n) {
        live_ = static_cast<uint16_t>(live_ & ~bit(n));
        lost_[n] = {std::string(what), static_cast<uint32_t>(where.line())};
    }
    if (returns) {
        set(0);
    } else {
        live_ = static_cast<uint16_t>(live_ & ~bit(0));
        lost_[0] = {std::string(what), static_cast<uint32_t>(where.line())};
    }
}

void Code::set_argument(int to, const Arg &arg, int base, Where where) {
    const WritableReg dst(static_cast<uint8_t>(to));
    switch (arg.kind_) {
    case Arg::Kind::reg:
        if (base != to) mov(dst, Reg(static_cast<uint8_t>(base)), where);
        return;
    case Arg::Kind::number:
        if (detail::fits(arg.number_, INT32_MIN, INT32_MAX)) return mov(dst, runtime(arg.number_), where);
        return load_imm64(dst, static_cast<uint64_t>(arg.number_), where);
    case Arg::Kind::address: {
        Mem mem = arg.mem_;
        mem.base = static_cast<uint8_t>(base);
        return address(dst, mem, where);
    }
    case Arg::Kind::map: return load_map(dst, MapRef(arg.owner_, arg.index_), where);
    case Arg::Kind::global: {
        GlobalRef global(arg.owner_, arg.index_);
        global.off_ = static_cast<uint32_t>(arg.number_);
        return load_global(dst, global, where);
    }
    case Arg::Kind::function: return load_function(dst, *arg.function_, where);
    }
}

// A parallel move: arguments may be built from r0 to r5 themselves. A move waits while another one still needs the old value of
// its target. Where all wait, they wait in a circle: then one value steps aside into r0, which is free by then, because nothing
// is moved *to* r0, so that what comes from r0 is never part of a circle.
void Code::set_arguments(const Arg *args, int count, Where where) {
    struct Move {
        const Arg *arg;
        int to;
        int base; // the register it is made from, or -1
    };
    std::vector<Move> moves;
    for (int i = 0; i < count; ++i) {
        const bool from_register = args[i].kind_ == Arg::Kind::reg || args[i].kind_ == Arg::Kind::address;
        moves.push_back({&args[i], i + 1, from_register ? args[i].mem_.base : -1});
    }
    for (const Move &move : moves)
        if (move.base >= 0) use(move.base, where, "argument " + std::to_string(move.to));
    while (!moves.empty()) {
        auto ready = std::find_if(moves.begin(), moves.end(), [&](const Move &move) {
            return std::none_of(moves.begin(), moves.end(),
                                [&](const Move &other) { return &other != &move && other.base == move.to; });
        });
        if (ready != moves.end()) {
            set_argument(ready->to, *ready->arg, ready->base, where);
            moves.erase(ready);
            continue;
        }
        const int aside = moves.front().base;
        mov(r0, Reg(static_cast<uint8_t>(aside)), where);
        for (Move &move : moves)
            if (move.base == aside) move.base = 0;
    }
}

void Code::call_helper(uint16_t id, const Arg *args, int count, Where where) {
    const HelperInfo &helper = *find_helper(int64_t{id});
    const std::string name = "bpf_" + std::string(helper.name);
    std::string note;
    note.swap(note_); // it belongs to the call, not to the moves before it
    if (args != nullptr) {
        set_arguments(args, count, where);
    } else {
        const int needed = detail::count_arguments(helper.arguments);
        for (int n = 1; n <= needed; ++n)
            if (reachable_ && !(live_ & bit(n)))
                use(n, where, name + std::string(helper.arguments) + " takes " + std::to_string(needed) + " arguments and");
    }
    note_.swap(note);
    Operands operands;
    operands.imm = id;
    append(*find_form("call"), operands, where);
    after_call(name, helper.returns != "void", where);
}

void Code::call(const Code &function, std::initializer_list<Arg> arguments, Where where) {
    if (&function.builder_ != &builder_) return complain(where, "this function belongs to another builder");
    if (!function.function_.section.empty())
        return complain(where, "`" + function.name() + "` is a program; only what Builder::function makes can be called");
    if (static_cast<int>(arguments.size()) != function.arguments_)
        complain(where, "`" + function.name() + "` takes " + std::to_string(function.arguments_) + " arguments, not " +
                            std::to_string(arguments.size()));
    set_arguments(arguments.begin(), static_cast<int>(std::min<size_t>(arguments.size(), 5)), where);
    refer(RefKind::call, function.name());
    Operands operands;
    operands.imm = -1;
    append(*find_form("call_local"), operands, where);
    after_call(function.name(), true, where);
}

void Code::call_kfunc(const std::string &name, std::initializer_list<Arg> arguments, Where where) {
    if (arguments.size() > 5)
        complain(where, name + ": a call takes five arguments at most, not " + std::to_string(arguments.size()));
    set_arguments(arguments.begin(), static_cast<int>(std::min<size_t>(arguments.size(), 5)), where);
    refer(RefKind::kfunc, name);
    append(*find_form("call_kfunc"), {}, where);
    after_call(name, true, where);
}

} // namespace rawbpf::inline v0
