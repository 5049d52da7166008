#include "programs/languages/cpython/states.h"

namespace rawbpf::inline v0::languages::cpython {
namespace {

constexpr uint64_t kBefore = 0, kNext = 8, kInterpreter = 16; // of a thread state
constexpr uint64_t kRuntimeBytes = 8192, kInterpreterBytes = 16384, kStateBytes = 1024;
constexpr int kMostStates = 256, kMostInterpreters = 64;
constexpr uint64_t kThreadBytes = 0x1000; // of what glibc has in front of a thread's pointer on arm64, at most

class States {
  public:
    explicit States(Memory &memory) : memory_(memory) {}

    [[nodiscard]] uint64_t word(uint64_t at) { return at < Pages::kPage || at % 8 != 0 ? 0 : memory_.word(at).value_or(0); }

    /// Whether a list of this interpreter's states begins here; `state`: and has this one; 0: any.
    [[nodiscard]] bool is_list(uint64_t first, uint64_t interpreter, uint64_t state) {
        if (first == 0 || word(first + kInterpreter) != interpreter || memory_.word(first + kBefore) != 0) return false;
        int count = 0;
        for (uint64_t at = first; at != 0 && count < kMostStates; at = word(at + kNext), ++count) {
            if (word(at + kInterpreter) != interpreter) return false;
            if (at == state) return true;
        }
        return state == 0;
    }

    /// How many interpreters there are from this one on, if the one that is known is among them; else 0.
    [[nodiscard]] int interpreters(uint64_t head, uint64_t next, uint64_t first, uint64_t known) {
        int count = 0;
        bool seen = false;
        for (uint64_t at = head; at != 0; at = word(at + next)) {
            if (++count > kMostInterpreters || !is_list(word(at + first), at, 0)) return 0;
            seen |= at == known;
        }
        return seen ? count : 0;
    }

  private:
    Memory &memory_;
};

/// The word of a thread state that names its thread: the pointer of it, or on arm64 what lies in front of that.
bool thread_of(States &states, uint64_t state, const Lesson &lesson, LanguageProcess &process) {
    for (uint64_t at = kInterpreter + 8; at < kStateBytes; at += 8) {
        const uint64_t less = lesson.thread_pointer - states.word(state + at);
        if (lesson.arch == Arch::arm64 ? less == 0 || less > kThreadBytes : less != 0) continue;
        process.state_thread = static_cast<uint16_t>(at);
        process.thread_less = static_cast<uint16_t>(less);
        return true;
    }
    return false;
}

} // namespace

bool learn_others(Memory &memory, const Lesson &lesson, Layout &layout) {
    States states(memory);
    const uint64_t runtime = lesson.file.address("_PyRuntime") + lesson.bias;
    const uint64_t state = states.word(lesson.thread_pointer + layout.process.start), known = states.word(state + kInterpreter);
    if (known == 0 || !thread_of(states, state, lesson, layout.process)) return false;
    uint64_t first = 0;
    while (first < kInterpreterBytes && !states.is_list(states.word(known + first), known, state)) first += 8;
    if (first == kInterpreterBytes) return false;
    for (uint64_t at = 0; at < kRuntimeBytes; at += 8) {
        const uint64_t head = states.word(runtime + at);
        if (head == 0 || !states.is_list(states.word(head + first), head, 0)) continue;
        for (uint64_t next = 0; next < kInterpreterBytes; next += 8) {
            if (states.word(head + next) == 0 || states.interpreters(head, next, first, known) < 2) continue;
            layout.process.others = runtime + at;
            layout.process.other_next = static_cast<uint16_t>(next);
            layout.process.other_first = static_cast<uint16_t>(first);
            layout.process.state_next = kNext;
            return true;
        }
    }
    return false;
}

} // namespace rawbpf::inline v0::languages::cpython
