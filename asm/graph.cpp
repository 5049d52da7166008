// A function as a graph of basic blocks, in the language of Graphviz: `rawbpf disasm --cfg dot prog.o | dot -Tsvg`.
//
// A block begins at the target of a jump and after every jump and exit. The edge for a true condition is green, the one for a
// false condition red. gotox, whose targets are in a map, ends a block without edges.
#include <algorithm>

#include "asm/encode.h"
#include "asm/print.h"

namespace rawbpf::inline v0 {

namespace {

std::string escaped(std::string_view text) {
    std::string out;
    for (char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out;
}

} // namespace

std::string print_graph(const Unit &unit, PrintStyle style) {
    std::string out = "digraph \"" + escaped(unit.name) + "\" {\n    node [shape=box, fontname=monospace];\n";
    size_t number = 0;
    for (const Function &function : unit.functions) {
        const std::span<const Insn> insns(function.insns);
        struct Step {
            size_t next, target; ///< SIZE_MAX: none
        };
        std::vector<Step> steps(insns.size(), {SIZE_MAX, SIZE_MAX});
        std::vector<bool> leads(insns.size() + 1), starts(insns.size());
        leads[0] = true;
        for (size_t i = 0; i < insns.size();) {
            const size_t after = i + (is_wide(insns[i]) && i + 1 < insns.size() ? 2 : 1);
            starts[i] = true;
            const Form *form = find_form(insns[i]);
            int64_t away = INT64_MIN;
            bool falls = true;
            switch (form == nullptr ? Shape::alu_imm : form->shape) {
            case Shape::jump:
                away = insns[i].off;
                falls = false;
                break;
            case Shape::jump_long:
                away = insns[i].imm;
                falls = false;
                break;
            case Shape::may_jump:
            case Shape::branch_imm:
            case Shape::branch_reg: away = insns[i].off; break;
            case Shape::jump_reg:
            case Shape::exit: falls = false; break;
            default: break;
            }
            if (falls && after < insns.size()) steps[i].next = after;
            if (away != INT64_MIN) {
                const int64_t to = static_cast<int64_t>(i) + 1 + away;
                if (to >= 0 && static_cast<uint64_t>(to) < insns.size()) {
                    steps[i].target = static_cast<size_t>(to);
                    leads[static_cast<size_t>(to)] = true;
                }
            }
            if (!falls || away != INT64_MIN) leads[after] = true;
            i = after;
        }
        const std::string id = "f" + std::to_string(number++);
        out += "    subgraph cluster_" + id + " {\n        label=\"" + escaped(function.name) + "\";\n";
        std::string edges;
        size_t ref_at = 0; // references ascend, and so do blocks
        for (size_t i = 0; i < insns.size();) {
            if (!starts[i]) {
                ++i;
                continue;
            }
            const std::string block = id + "_" + std::to_string(i);
            out += "        " + block + " [label=\"";
            size_t last = i;
            for (bool first = true; i < insns.size() && (first || !leads[i]); first = false) {
                PrintNames names;
                std::string_view wide, call;
                for (; ref_at < function.refs.size() && function.refs[ref_at].insn <= i; ++ref_at) {
                    const Ref &ref = function.refs[ref_at];
                    if (ref.insn == i) (ref.kind == RefKind::call || ref.kind == RefKind::kfunc ? call : wide) = ref.symbol;
                }
                names.wide = wide;
                names.call = call;
                std::string text;
                append_insn(text, insns.subspan(i), style, names);
                out += std::to_string(i) + ": " + escaped(text) + "\\l";
                last = i;
                for (++i; i < insns.size() && !starts[i];) ++i;
            }
            out += "\"];\n";
            const Step &step = steps[last];
            const bool both = step.next != SIZE_MAX && step.target != SIZE_MAX;
            auto edge = [&](size_t to, const char *color) {
                if (to == SIZE_MAX) return;
                edges += "        " + block + " -> " + id + "_" + std::to_string(to) + (both ? color : "") + ";\n";
            };
            edge(step.target, " [color=green]");
            edge(step.next, " [color=red]");
        }
        out += edges + "    }\n";
    }
    return out + "}\n";
}

} // namespace rawbpf::inline v0
