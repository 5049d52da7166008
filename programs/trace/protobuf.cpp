// Length-delimited records, as writeDelimitedTo() of protobuf's libraries has them: a varint, and so many bytes of a
// rawbpf.trace.Record. The schema is trace.proto, in this folder, and is installed; the numbers of fields below are its.
#include <bit>

#include "programs/render/protobuf.h"
#include "programs/render/text.h"
#include "programs/trace/sink.h"

namespace rawbpf::inline v0::trace {

namespace {

using render::Message;

void fill_value(Message &m, const Decoded &value) {
    using Kind = Decoded::Kind;
    switch (value.kind) {
    case Kind::nothing:
    case Kind::unavailable:
    case Kind::nil:
    case Kind::null: break;
    case Kind::unreadable: m.present(6, 1); break;
    case Kind::truth: m.present(3, value.number); break;
    case Kind::character:
    case Kind::number:
        if (value.negative)
            m.signed_number(1, static_cast<int64_t>(-value.number));
        else
            m.present(2, value.number);
        break;
    case Kind::address: m.fixed64(5, value.number); break;
    case Kind::real: m.fixed64(7, std::bit_cast<uint64_t>(value.real)); break;
    case Kind::list:
    case Kind::tuple:
    case Kind::text:
    case Kind::words: {
        std::string clean, text = value.text;
        if (value.kind == Kind::list || value.kind == Kind::tuple) append_text(text, value);
        render::append_utf8(clean, text);
        m.bytes(4, clean); // an empty one is a text, too
    }
    }
}

void fill_frames(Message &m, uint32_t field, const std::vector<FramePtr> &frames) {
    for (const FramePtr &frame : frames)
        m.message(field, [&](Message &one) {
            one.fixed64(1, frame->address).text(2, frame->symbol).number(3, frame->symbol_offset).text(4, frame->module);
            one.number(5, frame->file_offset).text(6, frame->build_id);
        });
}

void fill_counts(Message &m, uint32_t field, std::string_view name, uint64_t n) { // an entry of a map<string, uint64>
    m.message(field, [&](Message &entry) { entry.text(1, name).number(2, n); });
}

class Protobuf final : public Sink {
  public:
    using Sink::Sink;

    void begin(std::string &out) override {
        record(out, 1, [&](Message &m) {
            m.number(1, 1);
            for (const std::string &word : o_.run.command) m.bytes(2, clean(word));
            m.text(3, o_.run.version).text(4, o_.run.kernel).text(5, o_.run.arch).number(6, o_.run.cpus);
            m.number(7, o_.run.start_wall_ns);
        });
    }

    void event(std::string &out, const Shown &shown) override {
        const Event &event = shown.event;
        const Header &header = event.header;
        record(out, 2, [&](Message &m) {
            m.number(1, shown.is_result ? 1 : 0).number(2, shown.wall_ns).number(3, shown.t_ns).text(4, shown.comm);
            m.number(5, header.pid).number(6, header.tid).number(7, header.cpu);
            m.text(8, event.place->describe()).text(9, event.place->function);
            for (size_t i = 0; i < event.layout->arguments(); ++i)
                m.message(10, [&](Message &one) {
                    const Decoded value = argument(shown, i);
                    const bool known = event.place->signature.known || !event.layout->columns[i].name.empty();
                    one.text(1, event.name(i)).text(2, known ? event.type(i).name : "");
                    one.message(3, [&](Message &v) { fill_value(v, value); });
                    one.text(4, value.name).text(5, value.target);
                });
            if (shown.is_result) m.message(11, [&](Message &v) { fill_value(v, decode_result(event, o_.decoding)); });
            if (shown.duration) m.present(12, *shown.duration);
            if (shown.depth) m.present(13, *shown.depth);
            if (shown.stack)
                m.message(14, [&](Message &both) {
                    fill_frames(both, 1, shown.stack->kernel);
                    fill_frames(both, 2, shown.stack->user);
                    both.text(3, shown.stack->user_end);
                });
            if (shown.labels)
                for (const auto &label : *shown.labels)
                    m.message(15, [&](Message &entry) { entry.bytes(1, clean(label.first)).bytes(2, clean(label.second)); });
        });
        done();
    }

    void end(std::string &out, const Ending &ending) override {
        if (o_.view.count)
            record(out, 3, [&](Message &m) {
                for (size_t i = 0; i < ending.counts.size(); ++i)
                    if (!o_.names[i].empty()) fill_counts(m, 1, o_.names[i], ending.counts[i].shown);
            });
        record(out, 4, [&](Message &m) {
            const Ledger &ledger = ending.ledger;
            m.number(1, ledger.fired).number(2, ledger.shown).number(3, ledger.filtered).number(4, ledger.sampled_out);
            for (const auto &[reason, n] : ledger.lost) fill_counts(m, 5, reason, n);
            for (const auto &[reason, n] : ledger.degraded) fill_counts(m, 6, reason, n);
            for (size_t i = 0; i < ending.counts.size(); ++i) {
                const PlaceCounts &place = ending.counts[i];
                if (place.counts.fired == 0 || o_.names[i].empty()) continue;
                m.message(7, [&](Message &entry) {
                    entry.text(1, o_.names[i]);
                    entry.message(2, [&](Message &counts) {
                        counts.number(1, place.counts.fired).number(2, place.shown).number(3, place.counts.filtered);
                        counts.number(4, place.counts.sampled_out).number(5, place.lost());
                    });
                });
            }
        });
    }

  private:
    static std::string clean(std::string_view text) {
        std::string out;
        render::append_utf8(out, text);
        return out;
    }
    template <class Fill> void record(std::string &out, uint32_t field, Fill &&fill) {
        record_.clear();
        Message(record_).message(field, fill);
        Message(out).varint(record_.size());
        out += record_;
    }
    std::string record_;
};

} // namespace

std::unique_ptr<Sink> make_protobuf(SinkOptions options) { return std::make_unique<Protobuf>(options); }

} // namespace rawbpf::inline v0::trace
