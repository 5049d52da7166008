// NDJSON: one object a line, "type" first, a header, the samples, the ledger. The schema is a contract (number 1): fields are
// added, never renamed.
//
//      {"type":"header","schema":1,"command":[...],"version","kernel","arch","cpus","start":RFC 3339}
//      {"type":"sample","time":RFC 3339,"t_ns","comm","pid","tid","cpu","kernel":[frame...],"user":[frame...]}     leaf first
//      {"type":"ledger","fired","shown","filtered","sampled_out","lost":{},"degraded":{}}
//      frame: {"addr":"0x..","symbol","symbol_offset","module","file_offset","build_id"}
//
// Addresses are strings, since a double can't hold them; unknown is null. nlohmann-json does the escaping and replaces what isn't
// UTF-8, and this is the only file that includes it (a second and a half of compile time). Its DOM costs microseconds an object,
// and a sample has dozens of frames, nearly all seen before: a frame's text is made once and kept, and a sample is its envelope
// with two arrays of such texts spliced in.
#include <unordered_map>

#ifndef JSON_NOEXCEPTION
#define JSON_NOEXCEPTION 1
#endif
#include <nlohmann/json.hpp>

#include "programs/render/renderer.h"
#include "programs/render/text.h"

namespace rawbpf::inline v0::render {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json &json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json text_or_null(const std::string &text) { return text.empty() ? Json(nullptr) : Json(text); }

Json counts(const std::vector<std::pair<std::string, uint64_t>> &reasons) {
    Json out = Json::object();
    for (auto &[reason, n] : reasons) out[reason] = n;
    return out;
}

std::string frame_text(const Frame &f) {
    bool named = !f.symbol.empty(), placed = !f.module.empty() && !f.kernel;
    return dump(Json{{"addr", format("{:#x}", f.address)},
                     {"symbol", text_or_null(f.symbol)},
                     {"symbol_offset", named ? Json(f.symbol_offset) : Json(nullptr)},
                     {"module", text_or_null(f.module)},
                     {"file_offset", placed ? Json(f.file_offset) : Json(nullptr)},
                     {"build_id", text_or_null(f.build_id)}});
}

class JsonLines final : public Renderer {
  public:
    explicit JsonLines(Writer &out) : out_(out) {}

    void begin(const RunInfo &run) override {
        line(Json{{"type", "header"},
                  {"schema", 1},
                  {"command", run.command},
                  {"version", run.version},
                  {"kernel", run.kernel},
                  {"arch", run.arch},
                  {"cpus", run.cpus},
                  {"start", rfc3339(run.start_wall_ns)}});
    }
    void sample(const NamedSample &s, uint64_t) override {
        std::string envelope = dump(Json{{"type", "sample"},
                                         {"time", rfc3339(s.wall_ns)},
                                         {"t_ns", s.t_ns},
                                         {"comm", s.comm},
                                         {"pid", s.pid},
                                         {"tid", s.tid},
                                         {"cpu", s.cpu}});
        envelope.pop_back();
        std::string &text = out_.text();
        text += envelope;
        text += ",\"kernel\":";
        append_frames(text, s.kernel);
        text += ",\"user\":";
        append_frames(text, s.user);
        text += "}\n";
        out_.commit();
    }
    void end(const Ledger &l) override {
        line(Json{{"type", "ledger"},
                  {"fired", l.fired},
                  {"shown", l.shown},
                  {"filtered", l.filtered},
                  {"sampled_out", l.sampled_out},
                  {"lost", counts(l.lost)},
                  {"degraded", counts(l.degraded)}});
    }

  private:
    struct Known {
        FramePtr frame; // keeps the address from being reused for another frame
        std::string text;
    };
    static constexpr size_t kKnownFrames = 16384; // about 4 MB of text at most; then the cache starts anew

    void line(const Json &json) {
        out_.text() += dump(json);
        out_.text() += '\n';
        out_.commit();
    }
    void append_frames(std::string &text, const std::vector<FramePtr> &frames) {
        text += '[';
        for (const FramePtr &frame : frames) {
            if (known_.size() >= kKnownFrames) known_.clear();
            auto [at, fresh] = known_.try_emplace(frame.get());
            if (fresh) at->second = {frame, frame_text(*frame)};
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
