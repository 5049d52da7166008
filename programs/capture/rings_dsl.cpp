// Sending, instruction by instruction. Each ring is a case by itself: the verifier wants to see which map a helper is given.
// (Plain maps instead of a map of maps: filling a slot of that waits for a grace period, 10 ms each.) Ring buffers: kernel 5.8.
#include "programs/capture/rings_dsl.h"

#include <cstdint>

#include <linux/bpf.h>

namespace rawbpf::inline v0 {

namespace {

// A comparison takes a number of 31 bits; others come in r1.
void if_at_least(Code &f, uint64_t bytes, const std::function<void()> &then) {
    if (bytes <= INT32_MAX) {
        f.if_(r0 >= runtime(static_cast<int64_t>(bytes)), then);
    } else {
        f.load_imm64(r1, bytes);
        f.if_(r0 >= r1, then);
    }
}

} // namespace

Rings::Rings(Builder &b, std::string_view name, uint32_t bytes) { rings_.push_back(b.ringbuf(std::string(name), bytes)); }

Rings::Rings(Builder &b, const std::string &name, uint32_t count, uint32_t bytes) {
    rings_.reserve(count);
    for (uint32_t i = 0; i < count; ++i) rings_.push_back(b.ringbuf(name + "_" + std::to_string(i), bytes));
}

// r0 to r5 are gone before `use`.
void Rings::with_own(Code &f, const std::optional<Mem> &cpu, const std::function<void(const MapRef &)> &use) const {
    if (rings_.size() == 1) return use(rings_.front());
    const Label used = f.label("ring used");
    if (cpu) {
        f.load<uint32_t>(r1, *cpu);
    } else {
        f.call(helper::get_smp_processor_id);
        f.mov(r1, r0);
    }
    f.and_(r1, runtime(static_cast<int64_t>(rings_.size() - 1)));
    for (size_t i = 0; i + 1 < rings_.size(); ++i)
        f.if_(r1 == runtime(static_cast<int64_t>(i)), [&] {
            use(rings_[i]);
            f.jump(used);
        });
    use(rings_.back());
    f.bind(used);
}

void Rings::send(Code &f, Mem data, uint32_t wake_bytes, const std::optional<Mem> &cpu, const When &when) const {
    f.mov(r6, BPF_RB_NO_WAKEUP);
    with_own(f, cpu, [&](const MapRef &ring) {
        const auto ask = [&] {
            f.call(helper::ringbuf_query, ring, BPF_RB_AVAIL_DATA);
            if_at_least(f, wake_bytes, [&] { f.mov(r6, BPF_RB_FORCE_WAKEUP); });
        };
        if (when)
            when(ask);
        else
            ask();
        f.call(helper::ringbuf_output, ring, data, r9, r6);
    });
}

void Rings::output(Code &f, Mem data, Reg bytes, Mem cpu, bool wakes) const {
    const uint64_t flags = wakes ? 0 : BPF_RB_NO_WAKEUP;
    with_own(f, cpu, [&](const MapRef &ring) {
        f.call(helper::ringbuf_output, ring, data, bytes, runtime(static_cast<int64_t>(flags)));
    });
}

void Rings::jump_if_fuller(Code &f, uint64_t bytes, Label fuller, const std::optional<Mem> &cpu) const {
    with_own(f, cpu, [&](const MapRef &ring) { f.call(helper::ringbuf_query, ring, BPF_RB_AVAIL_DATA); });
    if_at_least(f, bytes + 1, [&] { f.jump(fuller); });
}

} // namespace rawbpf::inline v0
