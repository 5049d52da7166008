// operator new and delete of an executable that brings its own part of libstdc++: the archive's throw bad_alloc, and behind that
// stands what runtime/bare/no_exceptions.cpp keeps out. A product with librawbpf-core.a has those of runtime/core/memory.cpp.
//
// The kernel gives memory that it doesn't have, so malloc(3) fails only where a limit is near, and which one is said. What the
// command attached goes with its descriptors, as after any other end.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include <unistd.h>

#include "runtime/sys/machine.h"

namespace {

// A number, and a line from parts: nothing here may ask for memory.
struct Number {
    char digits[24];
    const char *text = nullptr;
    explicit Number(unsigned long long number) {
        char *at = digits + sizeof digits;
        *--at = 0;
        do *--at = static_cast<char>('0' + number % 10);
        while ((number /= 10) != 0);
        text = at;
    }
};

[[noreturn]] void refuse(std::size_t size) {
    const uint64_t most = rawbpf::sys::address_space_limit();
    const bool bounded = most != UINT64_MAX;
    const Number asked(size), limit(most >> 10);
    const char *parts[] = {"rawbpf: out of memory: ", asked.text,
                           " bytes more were needed", bounded ? "; this process may have " : "",
                           bounded ? limit.text : "", bounded ? " KB (ulimit -v)\n" : "\n"};
    for (const char *part : parts)
        if (write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
    _exit(1);
}

void *allocate(std::size_t size) {
    void *memory = std::malloc(size ? size : 1);
    if (!memory) refuse(size);
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
