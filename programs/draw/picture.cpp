// The position of each element follows from its index. So the layout needs no search, and nothing overlaps:
//
//      title
//      [program]~~~~~~~[map]          who uses which map: curves between two columns
//      [program]~~~~~~~[map]
//
//      program   section, type, verdict
//        ,-> | 0: r1 = ...      |     its stack, of each function:
//        |   | 1: if r0 == 0 ...|--,  | r10 - 8 | 4 bytes | key of counts: u32
//        |   +------------------+  |
//        `---| 2: goto -3       |  |
//            +------------------+<-'
//
// Blocks of instructions stand below each other in the program's order. A jump forwards runs on the right of them, one back (a
// loop, dashed) on the left, in lanes: short ones next to the code. The program goes from a block to the next where a short arrow
// leads.
#include "programs/draw/picture.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "asm/kinds.h"
#include "asm/map_types.h"
#include "asm/print.h"
#include "programs/draw/stack.h"
#include "programs/explain/summary.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"
#include "runtime/btf/btf.h"
#include "runtime/btf/print_c.h"
#include "runtime/verifier/flow.h"

namespace rawbpf::inline v0::draw {

namespace {

constexpr int kRow = 17, kGap = 16, kMargin = 24, kLane = 9, kBoxHeight = 46;
constexpr size_t kTextColumns = 72, kSlotColumns = 60, kLanes = 14, kInsnsNamed = 6, kMeaningsShown = 4;

constexpr std::string_view kStyle =
    R"css(
svg { --ink: #1d2430; --faint: #68707d; --page: #ffffff; --panel: #f5f6f8; --edge: #c3cad5; --map: #e6f2e6; --prog: #e8f0fe; --stack: #fff3d6; --yes: #1b7f3b; --no: #b3261e; --link: #1f6feb; background: var(--page); font: 12px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace; }
@media (prefers-color-scheme: dark) { svg { --ink: #e4e7ec; --faint: #98a1b0; --page: #14171c; --panel: #1c2027; --edge: #454c59; --map: #1d3324; --prog: #1b2a44; --stack: #3a2f12; --yes: #56d364; --no: #ff7b72; --link: #6ea8ff; } }
.page { fill: var(--page); } text { fill: var(--ink); white-space: pre; } .t { font: 600 18px system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; } .h { font: 600 14px system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; } .s, .n { fill: var(--faint); } .c { fill: var(--faint); font-style: italic; } .accepted { fill: var(--yes); } .refused, .bad { fill: var(--no); } .bad { font-weight: 600; } .never { opacity: .5; }
rect { stroke: var(--edge); fill: var(--panel); } rect.page { stroke: none; fill: var(--page); } rect.m { fill: var(--map); } rect.g { fill: var(--prog); } rect.k { fill: var(--stack); }
path { fill: none; stroke: var(--faint); stroke-width: 1.3; } path.u { stroke: var(--link); opacity: .7; } path.j { stroke: var(--yes); } path.b { stroke: var(--no); stroke-dasharray: 4 3; } marker path { stroke: none; fill: var(--faint); } marker.j path { fill: var(--yes); } marker.b path { fill: var(--no); }
)css";
constexpr std::string_view kMarkers =
    R"svg(<defs><marker id="a" class="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker><marker id="j" class="j" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker><marker id="b" class="b" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>
)svg";

struct Row {
    uint32_t insn = 0;
    bool source = false; ///< a line of C in front of the instruction
    bool leads = false;  ///< the first row of a block
    std::string text;
    int y = 0; ///< of its middle
};
struct Jump {
    size_t from, to; ///< rows
    size_t lane = 0;
};

struct Canvas {
    std::string body;
    int width = 0, height = 0;

    void reach(int x, int y) {
        width = std::max(width, x);
        height = std::max(height, y);
    }
    void text(int x, int y, std::string_view cls, std::string_view words) {
        render::append_svg_text(body, x, y, cls, words);
        reach(x + render::svg_width(render::columns(words)), y + 6);
    }
    void box(int x, int y, int w, int h, std::string_view cls) {
        append(body, "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"5\"{}{}{}/>\n", x, y, w, h,
               cls.empty() ? "" : " class=\"", cls, cls.empty() ? "" : "\"");
        reach(x + w, y + h);
    }
    void line(std::string_view d, std::string_view cls, std::string_view end) {
        append(body, "<path d=\"{}\"", d);
        if (!cls.empty()) append(body, " class=\"{}\"", cls);
        if (!end.empty()) append(body, " marker-end=\"url(#{})\"", end);
        body += "/>\n";
    }
};

struct Picture {
    const ObjectSpec &spec;
    Canvas canvas;
    std::optional<btf::Btf> types;
    int y = kMargin;

    static std::string_view unit_of(const MapSpec &map) {
        const auto is = [&](MapType type) { return map.type == uint32_t(type); };
        if (is(MapType::RINGBUF) || is(MapType::USER_RINGBUF)) return "bytes";
        if (is(MapType::ARENA)) return map.max_entries == 1 ? "page" : "pages";
        return map.max_entries == 1 ? "entry" : "entries";
    }
    std::string sizes(const MapSpec &map) const {
        const auto one = [&](std::string_view what, btf::TypeId type, uint32_t size) {
            return types && type ? format("{}: {}, {} bytes", what, btf::describe(*types, type), size)
                                 : format("{}: {} bytes", what, size);
        };
        std::string out;
        if (map.key_size) out += one("key", map.key_type, map.key_size);
        if (map.value_size) append(out, "{}{}", out.empty() ? "" : "; ", one("value", map.value_type, map.value_size));
        if (out.empty()) out = "no keys and values";
        return render::cut(out, kTextColumns);
    }

    void overview(std::span<const explain::Explanation> programs) {
        struct Box {
            std::string name, below;
        };
        std::vector<Box> left, right;
        for (const explain::Explanation &e : programs)
            left.push_back({render::cut(e.program.name, 40),
                            render::cut(format("{} instructions, {}", e.program.insns.size(), e.program.section), 48)});
        for (const MapSpec &map : spec.maps)
            right.push_back(
                {render::cut(format("{}: {}, {} {}", map.name, map_kind_name(map.type), map.max_entries, unit_of(map)),
                             kTextColumns),
                 sizes(map)});
        const auto widest = [](const std::vector<Box> &all) {
            size_t out = 10;
            for (const Box &box : all) out = std::max({out, render::columns(box.name), render::columns(box.below)});
            return render::svg_width(out) + 20;
        };
        const int step = kBoxHeight + 12, left_width = widest(left), right_x = kMargin + left_width + 120;
        for (size_t p = 0; p < programs.size(); ++p) {
            std::vector<uint32_t> used;
            for (const Fixup &fixup : programs[p].program.fixups)
                if ((fixup.kind == Fixup::Kind::map_fd || fixup.kind == Fixup::Kind::map_value) && fixup.map < spec.maps.size() &&
                    std::find(used.begin(), used.end(), fixup.map) == used.end())
                    used.push_back(fixup.map);
            const int x1 = kMargin + left_width, y1 = y + int(p) * step + kBoxHeight / 2;
            for (const uint32_t map : used) {
                const int y2 = y + int(map) * step + kBoxHeight / 2;
                canvas.line(format("M{} {}C{} {} {} {} {} {}", x1, y1, x1 + 60, y1, right_x - 60, y2, right_x, y2), "u", "");
            }
        }
        const auto column = [&](const std::vector<Box> &all, int x, std::string_view cls) {
            const int w = widest(all);
            for (size_t n = 0; n < all.size(); ++n) {
                const int top = y + int(n) * step;
                canvas.box(x, top, w, kBoxHeight, cls);
                canvas.text(x + 10, top + 19, "", all[n].name);
                canvas.text(x + 10, top + 36, "s", all[n].below);
            }
        };
        column(left, kMargin, "g");
        column(right, right_x, "m");
        y += int(std::max(left.size(), right.size())) * step + 14;
    }

    // As the assembler writes it; a function that is called by its name.
    static std::string text_of(const explain::Explanation &e, const std::vector<ProgramSpec::Subprogram> &functions, uint32_t i) {
        const verifier::Ways ways = verifier::ways_of(e.program.insns, i);
        for (const ProgramSpec::Subprogram &function : functions)
            if (ways.calls && ways.target == int64_t(function.insn)) return format("call {}", function.name);
        return explain::insn_text(e, i);
    }

    // Instructions, with the lines of C that they come from.
    static std::vector<Row> rows_of(const explain::Explanation &e, const std::vector<ProgramSpec::Subprogram> &functions) {
        const auto &insns = e.program.insns;
        std::vector<bool> leads(insns.size() + 1);
        for (const ProgramSpec::Subprogram &function : functions)
            if (function.insn < leads.size()) leads[function.insn] = true;
        for (uint32_t i = 0; i < insns.size(); i += is_wide(insns[i]) ? 2 : 1) {
            const verifier::Ways ways = verifier::ways_of(insns, i);
            const uint32_t after = i + (is_wide(insns[i]) ? 2 : 1);
            if ((ways.jumps || !ways.falls) && after < leads.size()) leads[after] = true;
            if (ways.jumps && !ways.calls && ways.target >= 0 && uint64_t(ways.target) < insns.size())
                leads[size_t(ways.target)] = true;
        }
        std::vector<Row> out;
        std::string file;
        uint32_t line = 0;
        for (uint32_t i = 0; i < insns.size(); i += is_wide(insns[i]) ? 2 : 1) {
            const ProgramPlace at = e.places.at(i);
            bool first = leads[i];
            const bool c = at.file.ends_with(".c") || at.file.ends_with(".h") || at.file.ends_with(".cpp");
            if (c && at.line && (at.line != line || at.file != file)) {
                size_t begin = at.source.find_first_not_of(" \t");
                out.push_back({i, true, first,
                               begin == std::string_view::npos ? "" : render::cut(at.source.substr(begin), kTextColumns), 0});
                first = false;
            }
            line = at.line;
            file = at.file;
            out.push_back({i, false, first, render::cut(format("{:>4}  {}", i, text_of(e, functions, i)), kTextColumns), 0});
        }
        return out;
    }

    // Which lane each jump runs in: short ones next to the code, none through another.
    static size_t give_lanes(std::vector<Jump> &jumps) {
        std::sort(jumps.begin(), jumps.end(), [](const Jump &a, const Jump &b) {
            const auto length = [](const Jump &j) { return j.to > j.from ? j.to - j.from : j.from - j.to; };
            return length(a) != length(b) ? length(a) < length(b) : a.from < b.from;
        });
        std::vector<std::vector<Jump>> lanes;
        for (Jump &jump : jumps) {
            const size_t low = std::min(jump.from, jump.to), high = std::max(jump.from, jump.to);
            size_t lane = 0;
            for (; lane < lanes.size() && lane + 1 < kLanes; ++lane)
                if (std::none_of(lanes[lane].begin(), lanes[lane].end(),
                                 [&](const Jump &j) { return std::min(j.from, j.to) <= high && low <= std::max(j.from, j.to); }))
                    break;
            if (lane >= lanes.size()) lanes.emplace_back();
            lanes[lane].push_back(jump);
            jump.lane = lane;
        }
        return lanes.size();
    }

    // "written by 3, 7, 9 ...".
    static std::string list(std::string_view what, const std::vector<uint32_t> &insns) {
        std::string out(what);
        for (size_t n = 0; n < insns.size() && n < kInsnsNamed; ++n) append(out, "{}{}", n ? ", " : " ", insns[n]);
        if (insns.size() > kInsnsNamed) append(out, " and {} more", insns.size() - kInsnsNamed);
        return out;
    }
    static std::vector<std::string> words_of(const Slot &slot) {
        std::vector<std::string> out;
        for (size_t n = 0; n < slot.meanings.size() && n < kMeaningsShown; ++n)
            out.push_back(render::cut(slot.meanings[n], kSlotColumns));
        if (slot.meanings.size() > kMeaningsShown) out.push_back(format("and {} more", slot.meanings.size() - kMeaningsShown));
        if (!slot.writers.empty()) out.push_back(list("written by", slot.writers));
        if (!slot.readers.empty()) out.push_back(list("read by", slot.readers));
        return out;
    }

    void stack(int x, int top, std::string_view function, const std::vector<Slot> &slots) {
        canvas.text(x, top + 12, "h", format("stack of {}", function));
        if (slots.empty()) {
            canvas.text(x, top + 32, "s", "not used");
            return;
        }
        int at = top + 24;
        int32_t lowest = 0;
        size_t longest = 0;
        for (const Slot &slot : slots)
            for (const std::string &line : words_of(slot)) longest = std::max(longest, render::columns(line));
        const int text_x = x + render::svg_width(25), w = text_x - x + render::svg_width(longest) + 14;
        for (const Slot &slot : slots) {
            const std::vector<std::string> words = words_of(slot);
            const int h = int(words.size()) * kRow + 8;
            canvas.box(x, at, w, h, "k");
            canvas.text(x + 8, at + 16, "",
                        slot.size ? format("r10 - {:<4} {:>3} {}", -slot.offset, slot.size, slot.size == 1 ? "byte" : "bytes")
                                  : format("r10 - {:<4}", -slot.offset));
            for (size_t n = 0; n < words.size(); ++n)
                canvas.text(text_x, at + 16 + int(n) * kRow, n < slot.meanings.size() ? "" : "s", words[n]);
            at += h;
            lowest = std::min(lowest, slot.offset);
        }
        canvas.text(x, at + 18, "s", format("{} of 512 bytes", -lowest));
    }

    void program(const explain::Explanation &e) {
        const std::string_view verdict = e.trace.outcome == verifier::Outcome::accepted  ? "accepted"
                                         : e.trace.outcome == verifier::Outcome::refused ? "refused"
                                                                                         : "undecided";
        canvas.text(kMargin, y + 16, "t", e.program.name);
        canvas.text(kMargin, y + 36, "s",
                    format("{}, a program of type {}", e.program.section, program_type_name(e.program.type)));
        canvas.text(kMargin, y + 54, verdict,
                    render::cut(verdict == "accepted"  ? "the model of the verifier accepts it"
                                : verdict == "refused" ? format("the model of the verifier refuses it: {}", e.trace.reason)
                                                       : format("the model of the verifier doesn't decide: {}", e.trace.reason),
                                kTextColumns + kSlotColumns));
        y += 74;
        const std::vector<ProgramSpec::Subprogram> functions = functions_of(e.program);
        std::vector<Row> rows = rows_of(e, functions);
        std::vector<size_t> row_of(e.program.insns.size(), 0);
        for (size_t n = 0; n < rows.size(); ++n)
            if (!rows[n].source) row_of[rows[n].insn] = n;
        std::vector<Jump> forwards, back;
        for (size_t n = 0; n < rows.size(); ++n) {
            if (rows[n].source) continue;
            const verifier::Ways ways = verifier::ways_of(e.program.insns, rows[n].insn);
            if (!ways.jumps || ways.calls || ways.target < 0 || uint64_t(ways.target) >= row_of.size()) continue;
            const size_t to = row_of[size_t(ways.target)];
            (to > n ? forwards : back).push_back({n, to});
        }
        const int left = kMargin + kLane * int(give_lanes(back)) + 16;
        const size_t right_lanes = give_lanes(forwards);
        size_t longest = 0;
        for (const Row &row : rows) longest = std::max(longest, render::columns(row.text) + (row.source ? 6 : 0));
        const int right = left + render::svg_width(longest) + 20, stack_x = right + kLane * int(right_lanes) + 60;
        const std::vector<std::vector<Slot>> slots = stack_of(e);
        const int begun = y;
        int stack_end = y;
        size_t function = 0;
        for (size_t n = 0; n < rows.size();) {
            if (function < functions.size() && functions[function].insn <= rows[n].insn) {
                if (function) y = std::max(y, stack_end) + 14;
                if (functions.size() > 1) {
                    canvas.text(left, y + 12, "h", functions[function].name);
                    y += 22;
                }
                const int before = canvas.height;
                canvas.height = 0;
                stack(stack_x, y, functions[function].name, slots[function]);
                stack_end = canvas.height + 10;
                canvas.height = std::max(canvas.height, before);
                ++function;
            }
            size_t end = n + 1;
            while (end < rows.size() && !rows[end].leads) ++end;
            canvas.box(left, y, right - left, int(end - n) * kRow + 8, "");
            for (size_t i = n; i < end; ++i) {
                rows[i].y = y + 4 + int(i - n) * kRow + kRow / 2;
                const bool bad = verdict != "accepted" && !rows[i].source && e.trace.insn == int64_t(rows[i].insn);
                const bool never = rows[i].insn < e.trace.visits.size() && !e.trace.visits[rows[i].insn];
                canvas.text(left + 10 + (rows[i].source ? render::svg_width(6) : 0), rows[i].y + 4,
                            rows[i].source ? "c"
                            : bad          ? "bad"
                            : never        ? "never"
                                           : "",
                            rows[i].text);
            }
            y += int(end - n) * kRow + 8;
            if (end < rows.size()) {
                const bool same = function >= functions.size() || functions[function].insn > rows[end].insn;
                if (same && verifier::ways_of(e.program.insns, rows[end - 1].insn).falls)
                    canvas.line(format("M{} {}V{}", left + 30, y, y + kGap), "", "a");
                y += kGap;
            }
            n = end;
        }
        for (const Jump &jump : forwards) {
            const int x = right + 10 + kLane * int(jump.lane), y1 = rows[jump.from].y, y2 = rows[jump.to].y - 3;
            canvas.line(format("M{} {}H{}Q{} {} {} {}V{}Q{} {} {} {}H{}", right, y1, x - 4, x, y1, x, y1 + 4, y2 - 4, x, y2,
                               x - 4, y2, right + 1),
                        "j", "j");
        }
        for (const Jump &jump : back) {
            const int x = left - 10 - kLane * int(jump.lane), y1 = rows[jump.from].y + 3, y2 = rows[jump.to].y;
            canvas.line(format("M{} {}H{}Q{} {} {} {}V{}Q{} {} {} {}H{}", left, y1, x + 4, x, y1, x, y1 - 4, y2 + 4, x, y2, x + 4,
                               y2, left - 1),
                        "b", "b");
        }
        canvas.reach(right + 10 + kLane * int(right_lanes), y);
        y = std::max({y, stack_end, begun}) + 40;
    }
};

} // namespace

std::string picture(const ObjectSpec &spec, std::span<const explain::Explanation> programs) {
    Picture all{spec, {}, {}};
    if (!spec.btf.empty())
        if (Result<btf::Btf> parsed = btf::Btf::parse(spec.btf, spec.name)) all.types = std::move(*parsed);
    all.canvas.text(kMargin, all.y + 12, "t", render::base_name(spec.name));
    all.y += 34;
    all.overview(programs);
    for (const explain::Explanation &e : programs) all.program(e);
    all.canvas.text(kMargin, all.y - 8, "s",
                    "green: a jump; red, dashed: a jump back; blue: who uses which map; pale: no path comes here");
    const int width = all.canvas.width + kMargin, height = all.canvas.height + kMargin;
    std::string out =
        format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\">\n<title>", width,
               height, width, height);
    render::append_xml(out, render::base_name(spec.name));
    append(out, "</title>\n<style>{}</style>\n{}<rect class=\"page\" width=\"{}\" height=\"{}\"/>\n{}</svg>\n", kStyle, kMarkers,
           width, height, all.canvas.body);
    return out;
}

} // namespace rawbpf::inline v0::draw
