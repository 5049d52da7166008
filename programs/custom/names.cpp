// The hash is FNV-1a of 128 bits (draft-eastlake-fnv).
#include "programs/custom/names.h"

#include <algorithm>

#include "asm/int128.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::custom {
namespace {

class Hash {
  public:
    void add(std::string_view bytes) {
        for (char c : bytes) add_byte(static_cast<uint8_t>(c));
        add_byte(0); // so that "ab" "c" isn't "a" "bc"
    }
    void add(uint64_t number) {
        for (int i = 0; i < 8; ++i) add_byte(static_cast<uint8_t>(number >> 8 * i));
    }
    [[nodiscard]] std::string text() const {
        return format("{:016x}{:016x}", static_cast<uint64_t>(value_ >> 64), static_cast<uint64_t>(value_));
    }

  private:
    void add_byte(uint8_t byte) { value_ = (value_ ^ byte) * (Uint128{1} << 88 | 0x13b); }
    Uint128 value_ = Uint128{0x6c62272e07bb0142} << 64 | 0x62b821756295c58d;
};

void add_frames(Hash &hash, const std::vector<FramePtr> &frames) {
    for (const FramePtr &frame : frames) {
        if (frame->inlined) continue;
        hash.add(frame->build_id.empty() ? frame->module : frame->build_id);
        const bool in_file = !frame->kernel && frame->file_offset != 0;
        if (in_file) {
            hash.add(frame->file_offset);
        } else { // the kernel, and code made at run time, are at another address each time
            hash.add(frame->symbol);
            hash.add(frame->symbol_offset);
            if (!frame->kernel && frame->address == 0) hash.add(uint64_t{frame->line}); // of a script
        }
        if (!frame->kernel && frame->symbol == "main") break;
    }
    hash.add(std::string_view());
}

} // namespace

std::string stack_hash(const std::vector<FramePtr> &kernel, const std::vector<FramePtr> &user) {
    Hash hash;
    add_frames(hash, kernel);
    add_frames(hash, user);
    return hash.text();
}

Named TraceNames::name(const LocatedTrace &trace) {
    const Parts with = parts();
    Named out;
    with.tree.walk(trace.kernel, [&](uint32_t place) { out.kernel.push_back(with.namer.frame(place)); });
    with.tree.walk(trace.user, [&](uint32_t place) { with.namer.add_frames(place, out.user); });
    return out;
}

void TraceNames::count_end(uint32_t user, uint8_t ending, uint64_t count) {
    const Parts with = parts();
    early_.add(with.namer, with.tree, user, ending, count);
}

std::vector<render::StackAdvice> TraceNames::advice(UnwindBy chosen) {
    return early_.advice(parts().modules, processes::remedy_of(chosen));
}

bool TraceNames::begins_at(uint32_t place) {
    const Frame &frame = *parts().namer.frame(place);
    return !frame.symbol.empty() && frame.symbol_offset == 0;
}

LocatedTrace Names::locate(const CustomTrace &trace) {
    return places_.locate(trace, [this](uint32_t place) { return begins_at(place); });
}

void Names::clear() {
    places_.clear();
    namer_.clear();
}

} // namespace rawbpf::inline v0::custom
