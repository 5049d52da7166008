// Chrome's trace-event JSON, which ui.perfetto.dev and chrome://tracing open: one object with a list of events.
//
//      {"traceEvents":[
//      {"ph":"M","name":"process_name","pid":77,"tid":77,"args":{"name":"work"}},              metadata, once a process and thread
//      {"ph":"X","name":"leaf","cat":"uprobe","pid":77,"tid":77,"ts":12.345,"dur":1.200,"args":{"a":1,"ret":2}},   a whole call
//      {"ph":"i","s":"t","name":"sched_switch",...}                                            a point in time
//      ],"displayTimeUnit":"ns","otherData":{...}}
//
// Times are microseconds since the trace began, with the nanoseconds behind the point. A call is written when it returns; its
// arguments wait until then. What never returns is a point in time. (The format: "Trace Event Format", Google, 2016.)
#include <unordered_map>

#include "programs/render/json_line.h"
#include "programs/trace/sink.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr size_t kMostThreads = 65536; // whose names are remembered

void append_us(std::string &out, uint64_t ns) { append(out, "{}.{:03}", ns / 1000, ns % 1000); }

class Chrome final : public Sink {
  public:
    using Sink::Sink;

    void begin(std::string &out) override { out += "{\"traceEvents\":["; }

    void event(std::string &out, const Shown &shown) override {
        const Header &header = shown.event.header;
        name_thread(out, shown);
        std::vector<Held> *calls = nullptr;
        if (o_.view.returns && shown.depth) calls = &held_[shown.event.caller()];
        if (calls) give_up(out, header.tid, *calls, *shown.depth + (shown.is_result ? 1 : 0));
        if (!shown.is_result && calls && has_two_ends(shown.event.place->kind)) {
            calls->resize(*shown.depth);
            calls->push_back({header.place, header.pid, shown.t_ns, arguments(shown)});
            done();
            return;
        }
        std::string args;
        uint64_t began = shown.t_ns;
        if (shown.duration) began -= std::min(*shown.duration, shown.t_ns);
        if (calls && shown.duration && calls->size() == *shown.depth + 1) {
            args = std::move(calls->back().arguments);
            began = calls->back().t_ns;
            calls->pop_back();
            if (calls->empty()) held_.erase(shown.event.caller());
        } else {
            args = arguments(shown);
        }
        if (shown.is_result) {
            const Decoded value = decode_result(shown.event, o_.decoding);
            if (value.kind != Decoded::Kind::nothing) {
                append(args, "{}\"ret\":", args.empty() ? "" : ",");
                append_plain(args, value);
            }
        }
        if (shown.duration)
            whole(out, header.place, header.pid, header.tid, began, shown.t_ns - began, args);
        else
            instant(out, header.place, header.pid, header.tid, shown.t_ns, args);
        done();
    }

    void end(std::string &out, const Ending &ending) override {
        for (auto &[caller, calls] : held_) give_up(out, Event::thread_of(caller), calls, 0);
        out += "\n],\"displayTimeUnit\":\"ns\",\"otherData\":";
        {
            render::JsonObject other(out);
            std::string command;
            for (const std::string &word : o_.run.command) append(command, "{}{}", command.empty() ? "" : " ", word);
            other.text("command", command).text("version", o_.run.version).text("kernel", o_.run.kernel);
            other.text("start", render::rfc3339(o_.run.start_wall_ns));
            other.number("fired", ending.ledger.fired).number("shown", ending.ledger.shown);
            other.number("filtered", ending.ledger.filtered);
            uint64_t lost = 0;
            for (const auto &[reason, n] : ending.ledger.lost) lost += n;
            other.number("lost", lost);
        }
        out += "}\n";
    }

  private:
    struct Held {
        uint32_t place = 0, pid = 0;
        uint64_t t_ns = 0;
        std::string arguments; ///< fields of a JSON object
    };

    void next(std::string &out) {
        out += first_ ? "\n" : ",\n";
        first_ = false;
    }

    void name_thread(std::string &out, const Shown &shown) {
        const Header &header = shown.event.header;
        if (threads_.size() >= kMostThreads) threads_.clear();
        std::string &known = threads_[header.tid];
        if (known == shown.comm && !known.empty()) return;
        known = shown.comm;
        if (header.pid == header.tid || threads_.emplace(header.pid, shown.comm).second)
            metadata(out, "process_name", header, known);
        metadata(out, "thread_name", header, known);
    }

    void metadata(std::string &out, std::string_view what, const Header &header, std::string_view name) {
        next(out);
        render::JsonObject one(out);
        one.text("ph", "M").text("name", what).number("pid", header.pid).number("tid", header.tid);
        render::JsonObject(one.raw("args")).text("name", name);
    }

    std::string arguments(const Shown &shown) {
        std::string out;
        for (size_t i = 0; i < shown.event.layout->arguments(); ++i) {
            if (i) out += ',';
            render::append_json(out, shown.event.name(i));
            out += ':';
            append_plain(out, argument(shown, i));
        }
        if (shown.stack) {
            append(out, "{}\"stack\":[", out.empty() ? "" : ",");
            for (const std::vector<FramePtr> *frames : {&shown.stack->kernel, &shown.stack->user})
                for (const FramePtr &frame : *frames) {
                    if (out.back() != '[') out += ',';
                    render::append_json(out, frame_name(*frame));
                }
            out += ']';
        }
        if (shown.labels) {
            append(out, "{}\"labels\":", out.empty() ? "" : ",");
            render::append_json_labels(out, *shown.labels);
        }
        return out;
    }

    // As people read it, where that isn't the number itself.
    static void append_plain(std::string &out, const Decoded &value) {
        if (value.name.empty() && value.target.empty()) return append_json(out, value);
        std::string text;
        append_result_text(text, value);
        render::append_json(out, text);
    }

    void head(std::string &out, std::string_view phase, uint32_t place, uint32_t pid, uint32_t tid, uint64_t t_ns) {
        next(out);
        append(out, "{{\"ph\":\"{}\",\"name\":", phase);
        render::append_json(out, o_.places[place].label());
        append(out, ",\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":", probe_kind_name(o_.places[place].kind), pid, tid);
        append_us(out, t_ns);
    }

    void whole(std::string &out, uint32_t place, uint32_t pid, uint32_t tid, uint64_t t_ns, uint64_t ns, std::string_view args) {
        head(out, "X", place, pid, tid, t_ns);
        out += ",\"dur\":";
        append_us(out, ns);
        append(out, ",\"args\":{{{}}}}}", args);
    }

    void instant(std::string &out, uint32_t place, uint32_t pid, uint32_t tid, uint64_t t_ns, std::string_view args) {
        head(out, "i", place, pid, tid, t_ns);
        append(out, ",\"s\":\"t\",\"args\":{{{}}}}}", args);
    }

    // Calls deeper than `depth` won't return any more.
    void give_up(std::string &out, uint32_t tid, std::vector<Held> &calls, uint32_t depth) {
        while (calls.size() > depth) {
            Held &call = calls.back();
            append(call.arguments, "{}\"returned\":false", call.arguments.empty() ? "" : ",");
            instant(out, call.place, call.pid, tid, call.t_ns, call.arguments);
            calls.pop_back();
        }
    }

    bool first_ = true;
    std::unordered_map<uint32_t, std::string> threads_;    ///< names by tid
    std::unordered_map<uint64_t, std::vector<Held>> held_; ///< by Event::caller(), one for each depth
};

} // namespace

std::unique_ptr<Sink> make_chrome(SinkOptions options) { return std::make_unique<Chrome>(options); }

} // namespace rawbpf::inline v0::trace
