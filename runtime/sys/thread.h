// Threads that help for a while.
#pragma once

#include <cstddef>
#include <optional>
#include <pthread.h>

namespace rawbpf::inline v0::sys {

/// A thread that runs `body(argument)`, with all signals blocked: they are for the thread that waits for them. Its stack has
/// `stack_bytes` and not the 8 MB that are usual: where `ulimit -v` bounds the address space, one stack would be a quarter of
/// it. Nothing: the machine starts none.
[[nodiscard]] std::optional<pthread_t> start_thread(void *(*body)(void *), void *argument, size_t stack_bytes);

} // namespace rawbpf::inline v0::sys
