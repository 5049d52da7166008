// speedscope's own format (https://www.speedscope.app/file-format-schema.json): one profile a thread, the frames shared.
//
//      {"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"main","file":"/usr/bin/split"}]},
//       "profiles":[{"type":"sampled","name":"split 4242/4243","unit":"nanoseconds","startValue":0,"endValue":3000000000,
//                    "samples":[[0,1],[0,2]],"weights":[10101010,10101010]}], ...}
//
// A sample's frames stand root first; its weight is the time that it stands for. Samples that follow each other with the same
// stack are one with their weights added. What a thread slept isn't there, so its end is the time that it ran; off-CPU it is the
// other way round.
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "programs/render/thread_stacks.h"
#include "programs/render/tool_formats.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::render {
namespace {

class Speedscope final : public Renderer {
  public:
    explicit Speedscope(const RenderOptions &options, Writer &out) : out_(out), title_(options.title), stacks_({}) {}

    void begin(const RunInfo &run) override { run_ = run; }
    void sample(const NamedSample &sample, uint64_t count) override { stacks_.add(sample, count); }
    void end(const Ledger &) override {
        stacks_.finish();
        const uint64_t period_ns = period_of(run_);
        weight_ = period_ns ? period_ns : 1;
        std::string &text = out_.text();
        {
            JsonObject file(text);
            file.text("$schema", "https://www.speedscope.app/file-format-schema.json");
            file.text("exporter", format("rawbpf {}", run_.version));
            file.text("name", title_.empty() ? shell_words(run_.command) : title_);
            {
                JsonObject shared(file.raw("shared"));
                shared.raw("frames") += '[';
                bool first = true;
                for (const FramePtr &frame : stacks_.frames()) {
                    if (!std::exchange(first, false)) text += ',';
                    append_frame(*frame);
                }
                text += ']';
            }
            file.raw("profiles") += '[';
            bool first = true;
            for (const ThreadStacks::Thread &thread : stacks_.threads()) {
                if (!std::exchange(first, false)) text += ',';
                append_thread(thread, period_ns || run_.waits() ? "nanoseconds" : "none");
            }
            text += ']';
        }
        text += '\n';
        out_.commit();
    }

  private:
    void append_frame(const Frame &frame) {
        std::string name = function_label(frame);
        if (name.empty()) name = "[unknown]";
        if (frame.kernel) name += "_[k]";
        if (frame.inlined) name += "_[i]";
        {
            JsonObject object(out_.text());
            object.text("name", name);
            if (!frame.module.empty()) object.text("file", frame.module);
        }
        out_.commit();
    }
    void append_thread(const ThreadStacks::Thread &thread, std::string_view unit) {
        // Runs of one stack, as they come.
        std::vector<ThreadStacks::Run> runs;
        uint64_t all = 0;
        for (const ThreadStacks::Run &run : thread.runs) {
            if (!runs.empty() && runs.back().node == run.node)
                runs.back().count += run.count;
            else
                runs.push_back(run);
            all += run.count;
        }
        std::string &text = out_.text();
        JsonObject profile(text);
        profile.text("type", "sampled");
        profile.text("name", format("{} {}/{}{}", thread.comm.empty() ? "[unknown]" : thread.comm, thread.pid, thread.tid,
                                    stacks_.counted() ? ", not in the order of time" : ""));
        profile.text("unit", unit).number("startValue", 0).number("endValue", all * weight_);
        profile.raw("samples") += '[';
        std::vector<uint32_t> path;
        for (size_t i = 0; i < runs.size(); ++i) {
            path.clear();
            for (uint32_t at = runs[i].node; at != ThreadStacks::kNone; at = stacks_.nodes()[at].caller)
                path.push_back(stacks_.nodes()[at].frame);
            text += i ? ",[" : "[";
            for (size_t n = path.size(); n-- > 0;) append(text, "{}{}", path[n], n ? "," : "");
            text += ']';
            out_.commit();
        }
        text += ']';
        profile.raw("weights") += '[';
        for (size_t i = 0; i < runs.size(); ++i) {
            append(text, "{}{}", i ? "," : "", runs[i].count * weight_);
            out_.commit();
        }
        text += ']';
    }

    Writer &out_;
    std::string title_;
    RunInfo run_;
    ThreadStacks stacks_;
    uint64_t weight_ = 1;
};

} // namespace

std::unique_ptr<Renderer> make_speedscope(const RenderOptions &options, Writer &out) {
    return std::make_unique<Speedscope>(options, out);
}

} // namespace rawbpf::inline v0::render
