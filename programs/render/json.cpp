// NDJSON: one object a line, "type" first, a header, the samples, the ledger. The schema is a contract (number 1): fields are
// added, never renamed.
//
//      {"type":"header","schema":1,"command":[...],"version","kernel","arch","cpus","start":RFC 3339,"environment":{...}}
//          environment: "cpu", "virtualization", "governor", "clock", "bpf_jit", "bpf_jit_harden", "load":[...],
//          "mitigations":{}, each null where the kernel has no such thing, or where "unread":{FIELD:REASON} says why it isn't known
//      {"type":"sample","time":RFC 3339,"t_ns","comm","pid","tid","cpu","kernel":[frame...],"user":[frame...]}     leaf first
//          and "user_end", where unwind tables were used: why the walk of the user stack ended, a key of the ledger's stack_ends;
//          and "weight", where a sample stands for more than one event (header: "event", "period") or tick; of waits (event
//          "off-cpu") nanoseconds; and "labels":{KEY:value...}, where the request that ran has any of those asked for
//      {"type":"ledger","fired","shown","filtered","sampled_out","lost":{},"degraded":{},"stack_ends":{},"languages":{},"waits":{},
//          "duration_ns","per_second","cost":{},"advice":[{"where","stacks","early","advice"}...]}
//          advice: the places where more than one user stack in twenty ends early, and what would make them whole
//      frame: {"addr":"0x..","symbol","symbol_offset","module","file_offset","build_id"[,"file","line"][,"inlined":true]}
//
// The last three are there where they were asked for and are known. Addresses are strings, since a double can't
// hold them; unknown is null. A sample has dozens of frames, nearly all seen before: a frame's text is made once and kept.
#include <unordered_map>

#include "programs/render/json_line.h"
#include "programs/render/renderer.h"

namespace rawbpf::inline v0::render {
namespace {

class JsonLines final : public Renderer {
  public:
    explicit JsonLines(Writer &out) : out_(out) {}

    void begin(const RunInfo &run) override {
        append_json_header(out_.text(), run);
        out_.commit();
    }
    void sample(const NamedSample &s, uint64_t) override {
        {
            JsonLine line(out_.text(), "sample");
            line.text("time", rfc3339(s.wall_ns)).number("t_ns", s.t_ns);
            line.text("comm", s.comm).number("pid", s.pid).number("tid", s.tid).number("cpu", s.cpu);
            if (s.weight != 1) line.number("weight", s.weight);
            append_frames(line.raw("kernel"), s.kernel);
            append_frames(line.raw("user"), s.user);
            if (!s.user_end.empty()) line.text("user_end", s.user_end);
            if (s.labels) append_json_labels(line.raw("labels"), *s.labels);
        }
        out_.commit();
    }
    void end(const Ledger &l) override {
        append_json_ledger(out_.text(), l);
        out_.commit();
    }

  private:
    struct Known {
        FramePtr frame; // keeps the address from being reused for another frame
        std::string text;
    };
    static constexpr size_t kKnownFrames = 16384; // about 4 MB of text at most; then the cache starts anew

    void append_frames(std::string &text, const std::vector<FramePtr> &frames) {
        text += '[';
        for (const FramePtr &frame : frames) {
            if (known_.size() >= kKnownFrames) known_.clear();
            auto [at, fresh] = known_.try_emplace(frame.get());
            if (fresh) {
                at->second.frame = frame;
                append_json_frame(at->second.text, *frame);
            }
            if (text.back() != '[') text += ',';
            text += at->second.text;
        }
        text += ']';
    }
    Writer &out_;
    std::unordered_map<const Frame *, Known> known_;
};

} // namespace

std::unique_ptr<Renderer> make_json(const RenderOptions &, Writer &out) { return std::make_unique<JsonLines>(out); }

} // namespace rawbpf::inline v0::render
