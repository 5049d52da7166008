// SPDX-License-Identifier: MIT
// Makes system calls: every one of this project goes through invoke().
//
//      room  ->  sys::function()  ->  invoke()  ->  Backend (the kernel, or a fake in tests)
//                                        |
//                                     Observer (the narrator of --syscalls)
//
// So --syscalls can show everything, a test can make the n-th call fail and check that no descriptor leaks, and errno is read
// in one place. Only files in runtime/sys/ include <sys/syscall.h>.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rawbpf::inline v0::sys {

/// One system call on its way to the kernel.
struct Call {
    long number;                  ///< __NR_...
    std::array<uint64_t, 6> args; ///< as in the registers
    std::string_view why;         ///< one clause by the caller (see Because), or empty
};

/// Sees every call with its result; may not make calls that it wants to see itself.
class Observer {
  public:
    virtual ~Observer() = default;
    /// `result` is the return value, or -errno.
    virtual void after(const Call &call, long result) = 0;
};

/// Carries out calls. The default one is the kernel.
class Backend {
  public:
    virtual ~Backend() = default;
    /// The return value, or -errno.
    virtual long call(const Call &call) = 0;
};

/// Installs an observer (nullptr: none) and returns the one before. Process-wide: it sees the calls of all threads, from these
/// threads, and one that begins or ends while others call has to outlive their calls.
Observer *observe(Observer *observer);
/// Installs a backend (nullptr: the kernel) and returns the one before. Process-wide, as an observer is.
Backend *use_backend(Backend *backend);
/// The real kernel, for fakes that pass calls through.
Backend &kernel_backend();

/// Makes the call: the return value, or -errno. Never touches errno itself.
long invoke(long number, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0, uint64_t e = 0, uint64_t f = 0);

/// The same past observer and backend, in a copy of this process: there nothing but system calls is safe.
inline long direct(long number, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0, uint64_t e = 0, uint64_t f = 0) {
    return kernel_backend().call(Call{number, {a, b, c, d, e, f}, {}});
}

/// Says why the calls in this scope are made: `sys::Because why("the ring buffer that samples come out of");`
/// Nested scopes override. Costs two pointer moves. The text must outlive the scope.
class Because {
  public:
    /// `why`: one clause without a full stop; what --syscalls prints behind each call.
    explicit Because(std::string_view why);
    ~Because();
    Because(const Because &) = delete;
    Because &operator=(const Because &) = delete;

  private:
    std::string_view outer_;
};

/// A pointer as a register value. By way of uintptr_t: a pointer of 32 bits that becomes a wider number at once is extended by
/// its sign.
template <class T> uint64_t reg(T *pointer) { return reinterpret_cast<uintptr_t>(pointer); }

} // namespace rawbpf::inline v0::sys
