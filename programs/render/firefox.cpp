// The Firefox profiler's Gecko format
// (https://github.com/firefox-devtools/profiler/blob/main/docs-developer/gecko-profile-format.md), version 24, which
// profiler.firefox.com brings up to date by itself: drop the file there. Each thread has tables of its own.
//
//      thread: {"name","pid","tid","registerTime",
//               "samples":    {"schema":{"stack":0,"time":1,...},"data":[[3,1201.0],[3,1211.1], ...]}      ms since the start
//               "stackTable": {"schema":{"prefix":0,"frame":1},"data":[[null,0],[0,1], ...]}               callers first
//               "frameTable": {"schema":{"location":0,...},"data":[[0,...],[1,...]]}
//               "stringTable":["main (in split)","hot_a (in split)"]}
//
// "name (in library)" is how the profiler takes a native frame's location apart, so a bracket in a library's name is escaped.
// Where equal stacks had to be counted, each is written as often as it was seen, one after the other. Samples of events other
// than a clock's stand there once each, however many events they stand for.
#include <algorithm>

#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "programs/render/thread_stacks.h"
#include "programs/render/tool_formats.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::render {
namespace {

class Firefox final : public Renderer {
  public:
    explicit Firefox(Writer &out) : out_(out), stacks_({}) {}

    void begin(const RunInfo &run) override { run_ = run; }
    void sample(const NamedSample &sample, uint64_t count) override { stacks_.add(sample, count); }
    void end(const Ledger &) override {
        stacks_.finish();
        std::string &text = out_.text();
        {
            JsonObject file(text);
            meta(file.raw("meta"));
            file.raw("libs") += "[]";
            file.raw("threads") += '[';
            bool first = true;
            for (const ThreadStacks::Thread &thread : stacks_.threads()) {
                if (!std::exchange(first, false)) text += ',';
                append_thread(thread);
                out_.commit();
            }
            text += ']';
            file.raw("processes") += "[]";
            file.raw("pausedRanges") += "[]";
        }
        text += '\n';
        out_.commit();
    }

  private:
    enum Category : uint8_t { kUser, kKernel };

    static void append_ms(std::string &text, uint64_t ns) { append(text, "{}.{:06}", ns / 1'000'000, ns % 1'000'000); }

    void meta(std::string &text) {
        JsonObject meta(text);
        meta.number("version", 24);
        append_ms(meta.raw("startTime"), run_.start_wall_ns);
        append_ms(meta.raw("interval"), period_of(run_) ? period_of(run_) : 1'000'000);
        meta.null("shutdownTime");
        meta.number("processType", 0).number("stackwalk", 1).number("debug", 0).number("gcpoison", 0).number("asyncstack", 0);
        meta.truth("presymbolicated", true);
        meta.text("product", shell_words(run_.command)).text("importedFrom", format("rawbpf {}", run_.version));
        meta.text("platform", "Linux").text("oscpu", format("Linux {} {}", run_.kernel, run_.arch));
        meta.number("logicalCPUs", run_.cpus);
        meta.raw("categories") += R"([{"name":"User","color":"yellow","subcategories":["Other"]},)"
                                  R"({"name":"Kernel","color":"orange","subcategories":["Other"]}])";
        meta.raw("markerSchema") += "[]";
    }
    static std::string location(const Frame &frame) {
        std::string out = function_label(frame);
        if (out.empty()) out = "[unknown]";
        if (frame.kernel) out += "_[k]";
        if (frame.inlined) out += "_[i]";
        if (frame.symbol.empty() || frame.module.empty()) return out;
        out += " (in ";
        for (const char c : base_name(frame.module))
            c == '(' || c == ')' ? append(out, "\\x{:02x}", static_cast<unsigned>(c)) : void(out += c);
        return out += ')';
    }

    // The part of the shared tree that this thread has, numbered anew.
    void append_thread(const ThreadStacks::Thread &thread) {
        std::vector<uint32_t> order, path;
        std::unordered_map<uint32_t, uint32_t> stack_of, frame_of;
        std::vector<uint32_t> frames;
        for (const ThreadStacks::Run &run : thread.runs) {
            path.clear();
            for (uint32_t at = run.node; at != ThreadStacks::kNone && !stack_of.contains(at); at = stacks_.nodes()[at].caller)
                path.push_back(at);
            for (size_t i = path.size(); i-- > 0;) {
                stack_of.emplace(path[i], static_cast<uint32_t>(order.size()));
                order.push_back(path[i]);
                const uint32_t frame = stacks_.nodes()[path[i]].frame;
                if (frame_of.try_emplace(frame, static_cast<uint32_t>(frames.size())).second) frames.push_back(frame);
            }
        }
        std::string &text = out_.text();
        JsonObject object(text);
        object.text("name", thread.comm.empty() ? "[unknown]" : thread.comm).text("processType", "default");
        object.number("pid", thread.pid).number("tid", thread.tid);
        append_ms(object.raw("registerTime"), thread.first_ns);
        object.null("unregisterTime");
        object.raw("markers") += R"({"schema":{"name":0,"startTime":1,"endTime":2,"phase":3,"category":4,"data":5},"data":[]})";
        object.raw("samples") += R"({"schema":{"stack":0,"time":1,"responsiveness":2},"data":[)";
        bool first = true;
        for (const ThreadStacks::Run &run : thread.runs) {
            const uint32_t stack = stack_of[run.node];
            for (uint64_t i = 0; i < std::max<uint64_t>(run.count / std::max<uint64_t>(run_.period, 1), 1); ++i) {
                append(text, "{}[{},", std::exchange(first, false) ? "" : ",", stack);
                append_ms(text, run.t_ns);
                text += ",0]";
                out_.commit();
            }
        }
        text += "]}";
        object.raw("stackTable") += R"({"schema":{"prefix":0,"frame":1},"data":[)";
        for (size_t i = 0; i < order.size(); ++i) {
            const ThreadStacks::Node &node = stacks_.nodes()[order[i]];
            text += i ? ",[" : "[";
            node.caller == ThreadStacks::kNone ? void(text += "null") : append(text, "{}", stack_of[node.caller]);
            append(text, ",{}]", frame_of[node.frame]);
            out_.commit();
        }
        text += "]}";
        object.raw("frameTable") += R"({"schema":{"location":0,"relevantForJS":1,"innerWindowID":2,"implementation":3,)"
                                    R"("optimizations":4,"line":5,"column":6,"category":7,"subcategory":8},"data":[)";
        for (size_t i = 0; i < frames.size(); ++i) {
            const Frame &frame = *stacks_.frames()[frames[i]];
            append(text, "{}[{},false,0,null,null,null,null,{},0]", i ? "," : "", i, uint32_t{frame.kernel ? kKernel : kUser});
            out_.commit();
        }
        text += "]}";
        object.raw("stringTable") += '[';
        for (size_t i = 0; i < frames.size(); ++i) {
            if (i) text += ',';
            append_json(text, location(*stacks_.frames()[frames[i]]));
            out_.commit();
        }
        text += ']';
    }

    Writer &out_;
    RunInfo run_;
    ThreadStacks stacks_;
};

} // namespace

std::unique_ptr<Renderer> make_firefox(const RenderOptions &, Writer &out) { return std::make_unique<Firefox>(out); }

} // namespace rawbpf::inline v0::render
