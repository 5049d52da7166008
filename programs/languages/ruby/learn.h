// Which words of Ruby's structures say what, learnt from a process that runs.
//
//      thread pointer --> each word of the thread's own variables: an execution context?
//                         its first words are an address, a number of words and the address of the leaf's frame, within these
//
//      frames lie one behind the other, to the end of these words
//      frame:  some word is 0 or an object whose flags say that it is instructions (iseq); so in all frames, if the stride is right
//              some word points at flags that say what sort of frame it is
//      iseq:   some word leads to its body
//      body:   some word is an address that the frame's position lies behind, as many words as the body says at most
//              three texts, and the first line behind them; entries of lines and their index
//
// A way through all of these in every frame doesn't come about by accident: the result proves itself. PURE.
#pragma once

#include "programs/languages/runtime.h"

namespace rawbpf::inline v0::languages::ruby {

/// As Runtime::learn.
[[nodiscard]] std::optional<Layout> learn(Memory &memory, const Lesson &lesson, std::string &why);

/// "Ruby 3.1.2: context at -8, frames of 64 bytes, iseq +16, body +16, path +64, lines +120; learnt from 9 frames".
[[nodiscard]] std::string describe(const Interpreter &file, const Layout &layout);

inline constexpr uint8_t kFinish = 0x20; ///< of a frame's mark: native code called it

} // namespace rawbpf::inline v0::languages::ruby
