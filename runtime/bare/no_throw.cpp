// What the core does where the standard library would throw, which nothing in it ever does (no_throw.h): a sentence, and abort().
//
//      std::string ---> std::__throw_length_error, which is named std::rawbpf_throw_length_error here ---> stop()
//
// And what else would bring libstdc++'s exceptions, 70 KB, into a static program: the guards of static variables in functions.
// Relies on: the Itanium C++ ABI's guards (and ARM's): the first byte says that the variable is there. They do what libstdc++'s
// do, for any thread, so a product in C++ may have them; weak: its own come first.
#include <cstdlib>
#include <cstring>
#include <functional> // declares what is defined here
#include <string>

#include <sched.h>
#include <unistd.h>

namespace rawbpf {
namespace {

[[noreturn]] void stop(const char *what) {
    const char *parts[] = {"rawbpf: internal error: ", what, "\n"};
    for (const char *part : parts)
        if (write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
    std::abort();
}

} // namespace
} // namespace rawbpf

// NOLINTBEGIN: names and signatures are the library's and the ABI's
namespace std {
void __throw_bad_alloc() { rawbpf::stop("out of memory"); }
void __throw_bad_array_new_length() { rawbpf::stop("an array of a negative or absurd size"); }
void __throw_bad_function_call() { rawbpf::stop("an empty function was called"); }
void __throw_invalid_argument(const char *what) { rawbpf::stop(what); }
void __throw_length_error(const char *what) { rawbpf::stop(what); }
void __throw_logic_error(const char *what) { rawbpf::stop(what); }
void __throw_out_of_range(const char *what) { rawbpf::stop(what); }
void __throw_out_of_range_fmt(const char *what, ...) { rawbpf::stop(what); }
void __throw_system_error(int) { rawbpf::stop("a system error"); }
} // namespace std

namespace {
constexpr char kBusy = 1;
char *busy(char *guard) { return guard + 1; } // the second byte
} // namespace

// Whether a deleter is asked for by make_shared()'s own tag, which no code without RTTI does. libstdc++'s stands beside what
// throws bad_weak_ptr.
extern bool never_asked(const void *) noexcept __asm__("_ZNSt19_Sp_make_shared_tag5_S_eqERKSt9type_info");
[[gnu::weak]] bool never_asked(const void *) noexcept { return false; }

extern "C" {
[[gnu::weak]] int __cxa_guard_acquire(char *guard) {
    for (;;) {
        if (__atomic_load_n(guard, __ATOMIC_ACQUIRE) != 0) return 0;
        char expected = 0;
        if (__atomic_compare_exchange_n(busy(guard), &expected, kBusy, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            if (__atomic_load_n(guard, __ATOMIC_ACQUIRE) == 0) return 1;
            __atomic_store_n(busy(guard), 0, __ATOMIC_RELEASE);
            return 0;
        }
        sched_yield(); // another thread is at it
    }
}
[[gnu::weak]] void __cxa_guard_abort(char *guard) { __atomic_store_n(busy(guard), 0, __ATOMIC_RELEASE); }
[[gnu::weak]] void __cxa_guard_release(char *guard) {
    __atomic_store_n(guard, 1, __ATOMIC_RELEASE);
    __atomic_store_n(busy(guard), 0, __ATOMIC_RELEASE);
}
[[gnu::weak]] void __cxa_pure_virtual() { rawbpf::stop("a pure virtual function was called"); }
}
// NOLINTEND
