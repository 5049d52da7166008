// Where the memory of a program with librawbpf-core.a comes from: operator new and delete, by a hook that the program gives.
//
// These are the whole program's: C++ lets it replace them once. They are in a file of their own, so that a linker takes them only
// with librawbpf-core.a and not with librawbpf.a. What they don't do is throw: the library is compiled without exceptions, so
// that no code for half-made states is in a product, and memory that runs out ends it as an assertion would.
#include <cstddef>
#include <cstdlib>
#include <new>

#include "runtime/core/rawbpf/core.h"

namespace {

void *(*hook_allocate)(size_t, void *) = nullptr;
void (*hook_release)(void *, void *) = nullptr;
void *hook_context = nullptr;

void *allocate(size_t size) {
    if (size == 0) size = 1; // each has an address of its own
    void *memory = hook_allocate ? hook_allocate(size, hook_context) : std::malloc(size);
    if (!memory) std::abort();
    return memory;
}
void release(void *memory) noexcept {
    if (!memory) return;
    if (hook_release)
        hook_release(memory, hook_context);
    else
        std::free(memory);
}

} // namespace

void rawbpf_set_memory(void *(*allocate)(size_t, void *), void (*release)(void *, void *), void *context) {
    hook_allocate = allocate;
    hook_release = release;
    hook_context = context;
}

// NOLINTBEGIN: the language's names
void *operator new(size_t size) { return allocate(size); }
void *operator new[](size_t size) { return allocate(size); }
void *operator new(size_t size, const std::nothrow_t &) noexcept { return allocate(size); }
void *operator new[](size_t size, const std::nothrow_t &) noexcept { return allocate(size); }
void operator delete(void *memory) noexcept { release(memory); }
void operator delete[](void *memory) noexcept { release(memory); }
void operator delete(void *memory, size_t) noexcept { release(memory); }
void operator delete[](void *memory, size_t) noexcept { release(memory); }
void operator delete(void *memory, const std::nothrow_t &) noexcept { release(memory); }
void operator delete[](void *memory, const std::nothrow_t &) noexcept { release(memory); }
// NOLINTEND
