// Which words of PHP's structures say what, learnt from a process that runs.
//
//      executor_globals (exported) --> each of its words: a frame?
//
//      frame: some word is a function, whose first byte is its type: 1 internal, 2 of a script, 4 eval's
//             some word is another such frame, ... to the last, 0, which is the script itself
//             some word points at an instruction, in all of them of a line between their functions' first and last
//      function: some word is a text with a path, and behind it are the first and the last line
//
// A chain of frames that ends in 0, with a function in each whose name is a text, doesn't come about by accident: the result
// proves itself. What is left to be known, the same in all versions of PHP 7 and 8: where in a function its name and, behind
// that, its class are; what a text looks like; which bits say that native code called a frame. PURE.
#pragma once

#include "programs/languages/runtime.h"

namespace rawbpf::inline v0::languages::php {

/// As Runtime::learn.
[[nodiscard]] std::optional<Layout> learn(Memory &memory, const Lesson &lesson, std::string &why);

/// "PHP 8.2.36: frame at executor_globals +488, function +24, caller +48, position +0; file +152, line of an instruction +24;
/// learnt from 9 frames".
[[nodiscard]] std::string describe(const Interpreter &file, const Layout &layout);

inline constexpr uint32_t kText = 24;       ///< bytes of a text (zend_string) in front of its characters
inline constexpr uint32_t kTextLength = 16; ///< where its length is
inline constexpr uint8_t kCode = 1;         ///< of a frame's mark: a script, an include, an eval; no function
inline constexpr uint8_t kTop = 2;          ///< native code called it

} // namespace rawbpf::inline v0::languages::php
