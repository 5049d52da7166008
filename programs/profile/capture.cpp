// The profiler's chunks of a recording (programs/recording/chunks.h has the others):
//
//      6 sample   time since the last, pid, tid, cpu, sizes, nodes, comm, why the user stack ended (if that is known)
//     10 weight   what each sample from here on stands for  only where it isn't one, as before
//
// A sample whose stacks were seen before takes about 15 bytes.
#include "programs/profile/capture.h"

#include <algorithm>
#include <cstring>

#include "programs/profile/cpu_budget.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/unwind/layout.h"

namespace rawbpf::inline v0::profile {

using namespace recording;

namespace {

enum Type : uint8_t { kSample = 6, kWeight = 10 };

class Samples : public Reader::Visitor {
  public:
    Samples(CaptureReader &reader, CaptureReader::Visitor &to) : reader_(reader), to_(to) {}

    Result<bool> chunk(uint8_t type, Cursor &in) override {
        switch (type) {
        case kWeight: TRY(weight(in)); return true;
        case kSample: TRY(sample(in)); return true;
        default: return false;
        }
    }
    void name(uint32_t place, Frame &&frame) override { to_.name(place, std::move(frame)); }
    Result<void> part_ends() override { return to_.part_ends(); }

  private:
    Result<void> weight(Cursor &in) {
        const size_t at = in.in.offset();
        const uint64_t weight = TRY(in.number()), period = reader_.header().run.period;
        // Of events the period; of a clock how much slower than asked for it ticked. Some format writes each of them out.
        if (weight == 0 || (period ? weight != period : weight > kMostWeight))
            return Unexpected(in.in.error_at(at, format("samples that stand for {}", weight)));
        weight_ = static_cast<uint32_t>(weight);
        return {};
    }

    Result<void> sample(Cursor &in) {
        processes::InternedSample sample;
        sample.t_ns = TRY(reader_.time(in));
        sample.pid = TRY(in.number_32());
        sample.tid = TRY(in.number_32());
        sample.cpu = TRY(in.number_32());
        sample.kernel_bytes = TRY(in.stack_bytes());
        sample.user_bytes = TRY(in.stack_bytes());
        sample.kernel = TRY(reader_.node(in, "kernel stack"));
        sample.user = TRY(reader_.node(in, "user stack"));
        sample.kernel_thread = TRY(in.number()) != 0;
        const std::string_view comm = TRY(reader_.comm(in));
        std::memcpy(sample.comm, comm.data(), std::min(comm.size(), sizeof sample.comm - 1));
        sample.weight = weight_;
        sample.labels = reader_.labels();
        if (!in.done()) sample.ending = static_cast<uint8_t>(TRY(in.id(UNWIND_ENDINGS, "ending")));
        reader_.count();
        return to_.sample(sample);
    }

    CaptureReader &reader_;
    CaptureReader::Visitor &to_;
    uint32_t weight_ = 1; // of the samples being read
};

} // namespace

void CaptureWriter::sample(const processes::InternedSample &sample, const processes::StackTree &tree,
                           const processes::ModuleTable &modules, const processes::LabelSets &labels) {
    grow(tree, modules);
    this->labels(sample.labels, labels);
    const uint32_t name = comm(sample.comm);
    std::string p;
    if (sample.weight != weight_) {
        weight_ = sample.weight;
        put(p, weight_);
        chunk(kWeight, p);
        p.clear();
    }
    put_time(p, sample.t_ns);
    put(p, uint64_t{sample.pid});
    put(p, uint64_t{sample.tid});
    put(p, uint64_t{sample.cpu});
    put_signed(p, sample.kernel_bytes);
    put_signed(p, sample.user_bytes);
    put_reference(p, sample.kernel);
    put_reference(p, sample.user);
    put(p, uint64_t{sample.kernel_thread});
    put(p, uint64_t{name});
    if (sample.ending != processes::kNoEnding) put(p, uint64_t{sample.ending});
    chunk(kSample, p);
}

void CaptureWriter::end(const Outcome &outcome) {
    End end;
    end.ledger = outcome.ledger;
    const Cost &cost = outcome.cost;
    end.bpf_runs = cost.bpf_runs;
    end.bpf_ns = cost.bpf_ns;
    end.cpu_ns = cost.cpu_ns;
    end.rss_anon_bytes = cost.rss_anon_bytes;
    end.ring_bytes = cost.ring_bytes;
    end.armed_ns = cost.armed_ns;
    end.elapsed_ns = outcome.elapsed_ns;
    end.warnings = outcome.warnings;
    Writer::end(end);
}

Result<void> CaptureReader::read(Visitor &visitor) {
    Samples samples(*this, visitor);
    return Reader::read(Tool::profile, samples);
}

Outcome CaptureReader::outcome() const {
    const End &from = end();
    Outcome out;
    out.run = header().run;
    out.ledger = from.ledger;
    out.cost.bpf_runs = from.bpf_runs;
    out.cost.bpf_ns = from.bpf_ns;
    out.cost.cpu_ns = from.cpu_ns;
    out.cost.rss_anon_bytes = from.rss_anon_bytes;
    out.cost.ring_bytes = from.ring_bytes;
    out.cost.armed_ns = from.armed_ns;
    out.elapsed_ns = from.elapsed_ns;
    out.warnings = from.warnings;
    return out;
}

} // namespace rawbpf::inline v0::profile
