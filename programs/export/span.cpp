// Spans and their ids. An id of zeros means "none" to every reader of OTLP, so that one is never made.
//
// The generator is Blackman's and Vigna's xoshiro256** (https://prng.di.unimi.it): four words of state, a few instructions a
// number, and no system call for each span. W3C's trace context asks for randomness in the low 7 bytes of a trace's id, which all
// of its bits give.
#include "programs/export/span.h"

#include <bit>
#include <cstring>

#include "runtime/base/fail.h"
#include "runtime/sys/random.h"

namespace rawbpf::inline v0::telemetry {
namespace {

class Xoshiro final : public IdSource {
  public:
    explicit Xoshiro(const std::array<uint64_t, 4> &seed) : s_(seed) {}
    uint64_t next() override {
        const uint64_t out = std::rotl(s_[1] * 5, 7) * 9, shifted = s_[1] << 17;
        s_[2] ^= s_[0];
        s_[3] ^= s_[1];
        s_[1] ^= s_[2];
        s_[0] ^= s_[3];
        s_[2] ^= shifted;
        s_[3] = std::rotl(s_[3], 45);
        return out;
    }

  private:
    std::array<uint64_t, 4> s_;
};

template <class Id> Id make_id(IdSource &ids) {
    Id id{};
    do {
        for (size_t at = 0; at < id.size(); at += sizeof(uint64_t)) {
            const uint64_t part = ids.next();
            std::memcpy(id.data() + at, &part, sizeof part);
        }
    } while (!is_set(id));
    return id;
}

} // namespace

void Span::set(std::string_view key, Value value) {
    for (Attribute &one : attributes)
        if (one.key == key) {
            one.value = std::move(value);
            return;
        }
    attributes.push_back({std::string(key), std::move(value)});
}

const Value *Span::find(std::string_view key) const {
    for (const Attribute &one : attributes)
        if (one.key == key) return &one.value;
    return nullptr;
}

Result<std::unique_ptr<IdSource>> random_ids() {
    std::array<uint64_t, 4> seed{};
    TRY_IN(sys::random_bytes(std::as_writable_bytes(std::span(seed))), "a seed for the ids of spans");
    seed[0] |= 1; // a state of zeros would stay one
    return std::unique_ptr<IdSource>(std::make_unique<Xoshiro>(seed));
}

TraceId make_trace_id(IdSource &ids) { return make_id<TraceId>(ids); }
SpanId make_span_id(IdSource &ids) { return make_id<SpanId>(ids); }

} // namespace rawbpf::inline v0::telemetry
