// Functions, labels and names: what can be resolved only at the end of a function, or of the text.
//
//      goto out          a label: looked for at the function's end, its distance checked by the encoder
//      call walk         a label of this function, a function, a helper, a kernel function: in this order
//      r1 = counts ll    a variable, a map, a function
//
// A label that is called is a function without a directive, and so is the target of `call +5`: at the end the text is split
// there, because the kernel needs to know each function of a program.
#include <algorithm>
#include <set>

#include "asm/assembling.h"
#include "asm/helpers.h"
#include "asm/lookup.h"
#include "asm/nearest.h"

namespace rawbpf::inline v0 {

namespace assembling {

void Assembler::begin_function(std::string_view name, std::string section) {
    end_function();
    Function function;
    function.name = name;
    function.section = std::move(section);
    functions_.emplace(function.name, static_cast<uint32_t>(out_.unit.functions.size()));
    out_.unit.functions.push_back(std::move(function));
    insns_ = &out_.unit.functions.back().insns;
    in_function_ = true;
}

Function &Assembler::function() {
    if (!in_function_) {
        begin_function("main", "socket");
        implicit_ = true;
        names_.emplace("main", DefinitionPlace{p_, source_});
    }
    return out_.unit.functions.back();
}

uint32_t Assembler::label(std::string_view name) {
    if (label_slots_.size() < (labels_.size() + 1) * 2) {
        label_slots_.assign(std::max<size_t>(64, label_slots_.size() * 2), 0);
        for (uint32_t i = 0; i < labels_.size(); ++i) {
            size_t slot = std::hash<std::string_view>()(labels_[i].name) & (label_slots_.size() - 1);
            while (label_slots_[slot] != 0) slot = (slot + 1) & (label_slots_.size() - 1);
            label_slots_[slot] = i + 1;
        }
    }
    size_t slot = std::hash<std::string_view>()(name) & (label_slots_.size() - 1);
    for (; label_slots_[slot] != 0; slot = (slot + 1) & (label_slots_.size() - 1))
        if (labels_[label_slots_[slot] - 1].name == name) return label_slots_[slot] - 1;
    labels_.push_back({name});
    label_slots_[slot] = static_cast<uint32_t>(labels_.size());
    return static_cast<uint32_t>(labels_.size() - 1);
}

bool Assembler::bind(std::string_view name, const char *at) {
    const int64_t here = static_cast<int64_t>(function().insns.size());
    Label &bound = labels_[label(name)];
    if (bound.insn >= 0) return fail(at, "the label `" + std::string(name) + "` stands twice in this function");
    bound.insn = here;
    bound.first_use = at;
    bound.source = source_;
    return true;
}

void Assembler::check_jumps() {
    Source *const current = source_;
    for (const Jump &jump : jumps_) {
        const Label &to = labels_[jump.label];
        source_ = jump.source;
        if (to.insn < 0) {
            Nearest near(to.name);
            for (const Label &other : labels_)
                if (other.insn >= 0) near.offer(other.name);
            fail(jump.at, "there is no label `" + std::string(to.name) + "` in this function",
                 near.hint().empty() ? "a line `" + std::string(to.name) + ":` says where the program goes on" : near.hint());
            continue;
        }
        Insn &insn = (*insns_)[jump.insn];
        const Form &form = *find_form(insn);
        Operands operands{form.fields() & kDst ? insn.dst : 0, form.fields() & kSrc ? insn.src : 0, 0,
                          form.fields() & kImm ? insn.imm : 0};
        const int64_t away = to.insn + jump.away - static_cast<int64_t>(jump.insn) - 1;
        if (form.shape == Shape::jump_long || form.shape == Shape::call_local)
            operands.imm = away;
        else
            operands.off = away;
        const Encoded encoded = encode(form, operands);
        if (encoded)
            insn = encoded.insn;
        else
            fail(jump.at, describe(encoded.problem, form, operands));
    }
    source_ = current;
}

void Assembler::end_function() {
    if (!in_function_) return;
    Function &function = out_.unit.functions.back();
    // Calls of labels: functions that were written without a .function of their own.
    const uint32_t index = static_cast<uint32_t>(out_.unit.functions.size() - 1);
    size_t kept = 0;
    for (const Symbol &symbol : symbols_) {
        const bool may =
            symbol.call && symbol.function == index && functions_.find(symbol.name) == functions_.end() && !labels_.empty();
        const uint32_t to = may ? label(symbol.name) : 0;
        if (may && labels_[to].insn >= 0) {
            function.insns[symbol.insn].src = 1;
            jumps_.push_back({symbol.insn, to, symbol.at, symbol.source, 0});
            called_.emplace(std::pair(index, labels_[to].insn), labels_[to].name);
        } else {
            symbols_[kept++] = symbol;
        }
    }
    symbols_.resize(kept);
    // As in the conformance suite's assembler, a jump to `exit` finds the first exit where no label has that name.
    const auto is_exit = [](const Insn &insn) { return insn.code == isa::find("exit")->code; };
    for (Label &wanted : labels_)
        if (wanted.name == "exit" && wanted.insn < 0)
            if (auto at = std::find_if(function.insns.begin(), function.insns.end(), is_exit); at != function.insns.end())
                wanted.insn = at - function.insns.begin();
    check_jumps();
    check_function();
    std::sort(refs_.begin(), refs_.end(), [](const Ref &a, const Ref &b) { return a.insn < b.insn; });
    function.refs = std::move(refs_);
    refs_.clear();
    places_.clear();
    for (const Label &label : labels_)
        if (label.insn >= 0) out_.labels.push_back({function.name, std::string(label.name), static_cast<uint32_t>(label.insn)});
    labels_.clear();
    label_slots_.clear();
    jumps_.clear();
    in_function_ = false;
    implicit_ = false;
    if (function.insns.empty() && out_.complaints.empty()) {
        auto at = names_.find(function.name);
        if (at == names_.end()) return;
        Source *const current = source_;
        source_ = at->second.source;
        fail(at->second.at, "`" + function.name + "` has no instructions");
        source_ = current;
    }
}

void Assembler::resolve_wide(const Symbol &symbol) {
    Function &function = out_.unit.functions[symbol.function];
    Insn &insn = function.insns[symbol.insn];
    const bool with_offset = symbol.addend != INT64_MIN;
    const int64_t addend = with_offset ? symbol.addend : 0;
    Ref ref;
    ref.insn = symbol.insn;
    ref.symbol = symbol.name;
    if (auto at = variables_.find(symbol.name); at != variables_.end()) {
        const Variable &variable = out_.unit.variables[at->second];
        if (addend < 0 || addend > variable.size) {
            fail(symbol.at, "`" + variable.name + "` has " + std::to_string(variable.size) + " bytes");
            return;
        }
        ref.kind = RefKind::map_value;
        ref.symbol = variable.map;
        ref.addend = variable.offset + addend;
    } else if (auto map = maps_.find(symbol.name); map != maps_.end()) {
        ref.kind = with_offset ? RefKind::map_value : RefKind::map;
        ref.addend = addend;
        if (addend < 0 || addend > UINT32_MAX) {
            fail(symbol.at, "an offset into a map's value is 0 to 4294967295");
            return;
        }
    } else if (functions_.find(symbol.name) != functions_.end() && !with_offset) {
        ref.kind = RefKind::function;
    } else {
        Nearest near(symbol.name);
        for (auto &[known, place] : names_)
            if (known != symbol.name) near.offer(known); // its line has a mistake, which is told there
        for (auto &[known, number] : constants_) near.offer(known);
        fail(symbol.at, "there is no map, variable, function or constant `" + std::string(symbol.name) + "`",
             near.hint_or_register());
        return;
    }
    insn.src = static_cast<uint8_t>(ref.kind == RefKind::map         ? Wide::map_fd
                                    : ref.kind == RefKind::map_value ? Wide::map_value
                                                                     : Wide::function) &
               15;
    function.refs.push_back(std::move(ref));
}

void Assembler::resolve_call(const Symbol &symbol) {
    Function &function = out_.unit.functions[symbol.function];
    Insn &insn = function.insns[symbol.insn];
    Ref ref;
    ref.insn = symbol.insn;
    ref.symbol = symbol.name;
    if (functions_.find(symbol.name) != functions_.end()) {
        ref.kind = RefKind::call;
        insn.src = 1;
        insn.imm = -1;
    } else if (const HelperInfo *helper = find_helper(symbol.name)) {
        insn.imm = helper->id;
        return;
    } else if (std::find(kernel_functions_.begin(), kernel_functions_.end(), symbol.name) != kernel_functions_.end()) {
        ref.kind = RefKind::kfunc;
        insn.src = 2;
    } else {
        Nearest near(symbol.name);
        for (auto &[known, number] : functions_) near.offer(known);
        for (const std::string &known : kernel_functions_) near.offer(known);
        std::string full;
        const bool prefixed = symbol.name.starts_with("bpf_");
        for (const HelperInfo &known : all_helpers())
            near.offer(prefixed ? full = "bpf_" + std::string(known.name) : full = known.name);
        fail(symbol.at, "there is no helper, function or label `" + std::string(symbol.name) + "`",
             near.hint().empty() ? "a kernel function is called by `call kfunc NAME`" : near.hint());
        return;
    }
    function.refs.push_back(std::move(ref));
}

void Assembler::resolve() {
    Source *const current = source_;
    std::vector<bool> touched(out_.unit.functions.size());
    for (const Symbol &symbol : symbols_) {
        source_ = symbol.source;
        touched[symbol.function] = true;
        if (symbol.call)
            resolve_call(symbol);
        else
            resolve_wide(symbol);
    }
    source_ = current;
    for (size_t i = 0; i < touched.size(); ++i)
        if (touched[i])
            std::sort(out_.unit.functions[i].refs.begin(), out_.unit.functions[i].refs.end(),
                      [](const Ref &a, const Ref &b) { return a.insn < b.insn; });
}

/// What a part of a function is called: by the label that is called, where no other thing has that name and C could use it, else
/// by the function and the instruction.
std::string Assembler::part_name(uint32_t function, size_t insn, const std::set<std::string, std::less<>> &taken) const {
    constexpr size_t kLongest = 127; // KSYM_NAME_LEN of older kernels, with its zero
    const auto at = called_.find({function, static_cast<int64_t>(insn)});
    const auto in_c = [](char c) {
        return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    if (at != called_.end() && at->second.size() <= kLongest && is_name_start(at->second[0]) &&
        std::all_of(at->second.begin(), at->second.end(), in_c) && names_.find(at->second) == names_.end() &&
        taken.find(at->second) == taken.end())
        return std::string(at->second);
    return out_.unit.functions[function].name + "_" + std::to_string(insn);
}

/// The kernel wants each function of a program to be known as one. Where a call without a name goes into the same text, that text
/// is cut: what is called becomes a function of its own, in the same order. Where jumps cross the cuts everything stays as it is.
void Assembler::split_called() {
    std::vector<Function> out;
    std::set<std::string, std::less<>> taken; // by parts
    for (uint32_t index = 0; index < out_.unit.functions.size(); ++index) {
        Function &whole = out_.unit.functions[index];
        const auto is_call = [](const Insn &insn) { return insn.code == 0x85 && insn.src == 1; };
        if (std::none_of(whole.insns.begin(), whole.insns.end(), is_call)) { // mostly
            out.push_back(std::move(whole));
            continue;
        }
        std::vector<bool> named(whole.insns.size()), starts(whole.insns.size(), true);
        for (const Ref &ref : whole.refs) named[ref.insn] = true;
        for (size_t i = 0; i + 1 < starts.size(); ++i)
            if (starts[i] && is_wide(whole.insns[i])) starts[i + 1] = false;
        std::vector<size_t> cuts = {0};
        bool fine = true, any = false;
        for (size_t i = 0; i < whole.insns.size(); ++i) {
            const Insn &insn = whole.insns[i];
            if (!starts[i] || !is_call(insn) || named[i]) continue;
            const int64_t to = static_cast<int64_t>(i) + 1 + insn.imm;
            any = true;
            if (to < 0 || static_cast<uint64_t>(to) >= whole.insns.size() || !starts[static_cast<size_t>(to)])
                fine = false;
            else
                cuts.push_back(static_cast<size_t>(to));
        }
        if (!any || !fine) {
            out.push_back(std::move(whole));
            continue;
        }
        std::sort(cuts.begin(), cuts.end());
        cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
        auto part_of = [&](int64_t insn) {
            return std::upper_bound(cuts.begin(), cuts.end(), static_cast<size_t>(insn)) - cuts.begin() - 1;
        };
        for (size_t i = 0; i < whole.insns.size(); ++i) {
            const Form *form = starts[i] ? find_form(whole.insns[i]) : nullptr;
            if (form == nullptr) continue;
            int64_t to = static_cast<int64_t>(i) + 1;
            switch (form->shape) {
            case Shape::jump:
            case Shape::may_jump:
            case Shape::branch_imm:
            case Shape::branch_reg: to += whole.insns[i].off; break;
            case Shape::jump_long: to += whole.insns[i].imm; break;
            default: continue;
            }
            fine = fine && to >= 0 && static_cast<uint64_t>(to) < whole.insns.size() &&
                   part_of(to) == part_of(static_cast<int64_t>(i));
        }
        std::vector<std::string> part_names = {whole.name};
        for (size_t n = 1; n < cuts.size(); ++n) {
            part_names.push_back(part_name(index, cuts[n], taken));
            fine = fine && functions_.find(part_names.back()) == functions_.end() && taken.insert(part_names.back()).second;
        }
        if (!fine) {
            out.push_back(std::move(whole));
            continue;
        }
        for (size_t n = 0; n < cuts.size(); ++n) {
            const size_t from = cuts[n], to = n + 1 < cuts.size() ? cuts[n + 1] : whole.insns.size();
            Function part;
            part.name = part_names[n];
            if (n == 0) part.section = whole.section;
            part.insns.assign(whole.insns.begin() + static_cast<ptrdiff_t>(from),
                              whole.insns.begin() + static_cast<ptrdiff_t>(to));
            for (const Ref &ref : whole.refs)
                if (ref.insn >= from && ref.insn < to) {
                    part.refs.push_back(ref);
                    part.refs.back().insn -= static_cast<uint32_t>(from);
                }
            for (const SourceLine &line : whole.lines)
                if (line.insn >= from && line.insn < to) {
                    part.lines.push_back(line);
                    part.lines.back().insn -= static_cast<uint32_t>(from);
                }
            for (size_t i = from; i < to; ++i)
                if (starts[i] && whole.insns[i].code == 0x85 && whole.insns[i].src == 1 && !named[i]) {
                    Ref ref;
                    ref.insn = static_cast<uint32_t>(i - from);
                    ref.kind = RefKind::call;
                    ref.symbol = part_names[static_cast<size_t>(part_of(static_cast<int64_t>(i) + 1 + whole.insns[i].imm))];
                    part.refs.push_back(std::move(ref));
                    part.insns[i - from].imm = -1;
                }
            std::sort(part.refs.begin(), part.refs.end(), [](const Ref &a, const Ref &b) { return a.insn < b.insn; });
            out.push_back(std::move(part));
        }
    }
    out_.unit.functions = std::move(out);
}

} // namespace assembling

bool flatten(const Unit &unit, std::vector<Insn> &insns, std::string &why) {
    std::map<std::string_view, size_t> starts;
    size_t total = 0;
    for (const Function &function : unit.functions) {
        starts.emplace(function.name, total);
        total += function.insns.size();
    }
    insns.clear();
    for (const Function &function : unit.functions) {
        const size_t base = insns.size();
        insns.insert(insns.end(), function.insns.begin(), function.insns.end());
        for (const Ref &ref : function.refs) {
            auto at = starts.find(ref.symbol);
            if ((ref.kind != RefKind::call && ref.kind != RefKind::function) || at == starts.end()) {
                why = function.name + ": instruction " + std::to_string(ref.insn) + " refers to " + ref.symbol +
                      ", which has an address only after it is loaded";
                return false;
            }
            insns[base + ref.insn].imm =
                static_cast<int32_t>(static_cast<int64_t>(at->second) - static_cast<int64_t>(base + ref.insn) - 1);
        }
    }
    return true;
}

} // namespace rawbpf::inline v0
