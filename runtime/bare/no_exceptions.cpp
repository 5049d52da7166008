// What the standard library needs for exceptions, for a program that has none. Linked into executables that bring their own part
// of libstdc++: static ones, those of a release build, and programs in C with musl (musl.cpp).
//
// Nothing in rawbpf throws, but the archive libstdc++.a doesn't know: `operator new` throws bad_alloc, std::string throws
// out_of_range, and behind one throw stand the unwinder, the handler of last resort, and with that a demangler and printf: 150 KB
// of code that could only ever say "terminate called". These definitions come first at link time, so that the archive's members
// are never taken, and each says what happened in a sentence and ends the program, which is all that the originals could do.
//
//      std::string ----> __throw_out_of_range ----> __cxa_throw ----> _Unwind_RaiseException, .eh_frame of everything
//                                 |                      `----------> std::terminate ----> the verbose handler ----> demangler
//                                 `-- here: a sentence, abort
//
// Relies on: the Itanium C++ ABI's names (__cxa_*, __gxx_personality_v0) and libstdc++'s bits/functexcept.h. A name missing here
// shows as a symbol defined twice when linking, and a larger file in `./dev dist`, never as a different program.
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "runtime/bare/stop.h"

namespace rawbpf {
void stop(const char *what) {
    const char *parts[] = {"rawbpf: internal error: ", what, "\n"};
    for (const char *part : parts)
        if (write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
    std::abort();
}
} // namespace rawbpf

using rawbpf::stop;

// NOLINTBEGIN: names and signatures are the ABI's
namespace std {
void __throw_bad_alloc() { stop("out of memory"); }
void __throw_bad_array_new_length() { stop("an array of a negative or absurd size"); }
void __throw_bad_function_call() { stop("an empty function was called"); }
void __throw_invalid_argument(const char *what) { stop(what); }
void __throw_length_error(const char *what) { stop(what); }
void __throw_logic_error(const char *what) { stop(what); }
void __throw_out_of_range(const char *what) { stop(what); }
void __throw_out_of_range_fmt(const char *what, ...) { stop(what); }
void __throw_runtime_error(const char *what) { stop(what); }
void __throw_system_error(int) { stop("a system error"); }
void terminate() noexcept { stop("terminated"); }
} // namespace std

extern "C" {
void __cxa_pure_virtual() { stop("a pure virtual function was called"); }
void *__cxa_allocate_exception(std::size_t) noexcept { stop("an exception"); }
void __cxa_free_exception(void *) noexcept {}
void __cxa_throw(void *, void *, void (*)(void *)) { stop("an exception"); }
void __cxa_rethrow() { stop("an exception"); }
void *__cxa_begin_catch(void *) noexcept { stop("an exception"); }
void __cxa_end_catch() {}
void *__cxa_get_globals() noexcept { stop("an exception"); }
int __gxx_personality_v0() { stop("an exception"); }
int __gcc_personality_v0() { stop("an exception"); } // C's, for the cancellation of threads
void _Unwind_Resume(void *) { stop("an exception"); }
}
// NOLINTEND
