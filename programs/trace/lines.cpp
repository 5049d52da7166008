// A line an event, in the format of the lab that this grew out of:
//
//      [2025-01-15T10:23:45.123] cat[12345]: vfs_read(file=/etc/passwd, buf=0x7fff1234, count=4096, pos=0xffffc900...)
//
// With --label the running request's labels end the line: {trace_id="a0a1", user="alice"}.
//
// With --graph the calls of a thread are indented by depth, as ftrace's function_graph has them; one that calls nothing traced
// takes one line, for which its own is held back until the next event comes:
//
//      [2025-01-15T10:23:45.123] work[77]: mid(a=1) {
//      [2025-01-15T10:23:45.123] work[77]:   leaf(a=1, s="hello") = 2  1.2 us;
//      [2025-01-15T10:23:45.123] work[77]: } mid = 5  9.0 us
#include <algorithm>

#include "programs/render/digits.h"
#include "programs/render/text.h"
#include "programs/trace/histogram.h"
#include "programs/trace/sink.h"
#include "programs/trace/stack_text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr size_t kIndent = 2;
constexpr uint32_t kDeepestIndent = 40; // levels; deeper ones stay there and say how deep they are

class Lines final : public Sink {
  public:
    using Sink::Sink;

    void event(std::string &out, const Shown &shown) override {
        const Header &header = shown.event.header;
        if (o_.view.graph && shown.is_result && held_ && held_caller_ == shown.event.caller() && held_place_ == header.place &&
            shown.duration) {
            out += held_text_;
            out += ')';
            result(out, shown);
            out += ';';
            labels(out, shown);
            out += '\n';
            out += held_stack_;
            held_ = false;
            done();
            return;
        }
        idle(out);
        prefix(out, shown);
        if (o_.view.graph && shown.is_result) {
            append(out, "}} {}", shown.event.place->label());
        } else {
            const Plan &how = plan(shown.event);
            out += how.head;
            for (size_t i = 0; i < how.columns.size(); ++i) {
                out += how.before[i];
                if (!append_plain_text(out, shown.event, i, how.columns[i], o_.decoding)) append_text(out, argument(shown, i));
            }
            out += how.after;
            if (o_.view.graph && has_two_ends(shown.event.place->kind)) {
                hold(out, shown);
                done();
                return;
            }
            out += ')';
        }
        if (shown.is_result) result(out, shown);
        labels(out, shown);
        out += '\n';
        if (shown.stack) append_stack_lines(out, *shown.stack);
        done();
    }

    void idle(std::string &out) override {
        if (!held_) return;
        out += held_text_;
        out += ") {";
        out += held_labels_;
        out += '\n';
        out += held_stack_;
        held_ = false;
    }

    void end(std::string &out, const Ending &) override { idle(out); }

  private:
    void spell_out(Plan &plan, const Event &event) override {
        plan.head = event.place->label() + '(';
        for (const ColumnPlan &column : plan.columns)
            plan.before.push_back(format("{}{}=", plan.before.empty() ? "" : ", ", column.name));
        size_t shown = 0, all = 0;
        for (const Column &column : event.layout->columns) shown += column.value.from == Value::From::argument;
        for (const Parameter &parameter : event.place->signature.parameters) all += !parameter.is_length;
        if (shown != 0 && shown < all) plan.after = ", ..."; // more than a program fetches
    }

    void prefix(std::string &out, const Shown &shown) {
        const Header &header = shown.event.header;
        if (shown.wall_ns / 1'000'000'000 != second_) {
            second_ = shown.wall_ns / 1'000'000'000;
            stamp_ = '[' + render::rfc3339(shown.wall_ns).substr(0, 20);
        }
        line_ = out.size();
        out += stamp_;
        render::append_padded(out, shown.wall_ns / 1'000'000, 3);
        out += "] ";
        render::append_comm(out, shown.comm);
        out += '[';
        render::append_decimal(out, header.pid);
        out += "]: ";
        if (!o_.view.graph) return;
        if (header.tid != header.pid) append(out, "({}) ", header.tid);
        const uint32_t depth = shown.depth.value_or(0);
        out.append(kIndent * std::min(depth, kDeepestIndent), ' ');
        if (depth > kDeepestIndent) append(out, "[{}] ", depth);
    }

    // The line of a call, from its beginning, waits for what comes next.
    void hold(std::string &out, const Shown &shown) {
        held_ = true;
        held_caller_ = shown.event.caller();
        held_place_ = shown.event.header.place;
        held_text_.assign(out, line_, out.size() - line_);
        out.resize(line_);
        held_labels_.clear();
        labels(held_labels_, shown);
        held_stack_.clear();
        if (shown.stack) append_stack_lines(held_stack_, *shown.stack);
    }

    static void labels(std::string &out, const Shown &shown) {
        if (!shown.labels) return;
        out += ' ';
        render::append_labels(out, *shown.labels);
    }

    void result(std::string &out, const Shown &shown) {
        const Decoded value = decode_result(shown.event, o_.decoding);
        if (value.kind != Decoded::Kind::nothing) {
            out += " = ";
            append_result_text(out, value);
        }
        if (!shown.duration) return;
        out += "  ";
        append_duration(out, *shown.duration);
    }

    uint64_t second_ = UINT64_MAX; // that stamp_ was made for
    std::string stamp_;
    size_t line_ = 0; // where in the text the line begins
    bool held_ = false;
    uint64_t held_caller_ = 0;
    uint32_t held_place_ = 0;
    std::string held_text_, held_labels_, held_stack_;
};

} // namespace

std::unique_ptr<Sink> make_lines(SinkOptions options) { return std::make_unique<Lines>(options); }

} // namespace rawbpf::inline v0::trace
