// Tells "it doesn't exist" apart from "it couldn't be read".
#pragma once

#include "runtime/base/error.h"

namespace rawbpf::inline v0::sys {

/// What failed may well be there, it only could not be read now (EIO, ENOMEM, EMFILE ...). False where the error says that it
/// isn't there, isn't for us to read, or is another kind of thing: that is an answer.
[[nodiscard]] bool is_unread(const Error &error);

} // namespace rawbpf::inline v0::sys
