// Words of what a walk has read, by the places that a LanguageProcess names. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "programs/languages/walk_round.h"

namespace rawbpf::inline v0 {

struct LanguagePlaces {
    Code &g;
    const LanguageRound &how;

    static Mem at(size_t offset) { return language_state(offset); }

    /// dst = the word at the place that `where` (u16, of the process) names, in what was read to `read`, `mask` of its bytes.
    template <class T> void load_at(WritableReg dst, size_t where, size_t read, uint32_t mask) const {
        g.load<uint16_t>(r1, at(where));
        g.and_(r1, runtime(static_cast<int64_t>(mask)));
        g.add(r1, r6);
        g.load<T>(dst, r1 + runtime(static_cast<int64_t>(read)));
    }
    template <class T> void of_code(WritableReg dst, size_t where) const {
        load_at<T>(dst, where, offsetof(LanguageState, object), LANGUAGE_CODE_BYTES - 1);
    }

    void if_flag(uint32_t flag, const std::function<void()> &body) const {
        g.load<uint32_t>(r1, STATE(process.flags));
        g.and_(r1, runtime(static_cast<int64_t>(flag)));
        g.if_(r1 != 0, body);
    }

    /// dst = the address of the text that is its file's path.
    void load_file(WritableReg dst) const {
        of_code<uint64_t>(dst, offsetof(LanguageState, process.file));
        if_flag(LANGUAGE_CALLERS, [&] { g.load<uint64_t>(dst, STATE(file)); });
    }
};

} // namespace rawbpf::inline v0
