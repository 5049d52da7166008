// operator new and delete of an executable that brings its own part of libstdc++: the archive's throw bad_alloc, and behind that
// stands what runtime/bare/no_exceptions.cpp keeps out. A product with librawbpf-core.a has those of runtime/core/memory.cpp.
#include <cstdlib>
#include <new>

#include "runtime/bare/stop.h"

namespace {

void *allocate(std::size_t size) {
    void *memory = std::malloc(size ? size : 1);
    if (!memory) rawbpf::stop("out of memory");
    return memory;
}

} // namespace

// NOLINTBEGIN: the language's names
void *operator new(std::size_t size) { return allocate(size); }
void *operator new[](std::size_t size) { return allocate(size); }
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void *memory, std::size_t) noexcept { std::free(memory); }
// NOLINTEND
