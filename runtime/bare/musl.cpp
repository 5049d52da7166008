// What librawbpf-core.a calls and musl lacks, so that a static program in C by musl-gcc has the loader: names of glibc that its
// headers and libstdc++'s put into the library's code. With no_exceptions.cpp it is librawbpf-musl.a; glibc's programs don't link
// it.
//
//      product.c ---> librawbpf-core.a ---> librawbpf-musl.a ---> libc.a (musl)
//                          `--------------> libstdc++.a: trees, hash tables; code that only computes
//
// Relies on: musl 1.2.3's libc.a.
#include <cstring>

namespace {

// The kernel's way to put a device's two numbers into 64 bits: 12 low bits of the major, 8 of the minor, then the rest of both.
constexpr unsigned long long device(unsigned long long major, unsigned long long minor) {
    return (major & 0xfffff000) << 32 | (minor & 0xffffff00) << 12 | (major & 0xfff) << 8 | (minor & 0xff);
}

} // namespace

// NOLINTBEGIN: names and signatures are the C library's and the ABI's
extern "C" {
char __libc_single_threaded = 0; // never counts a reference without a lock
unsigned long long gnu_dev_makedev(unsigned int major, unsigned int minor) { return device(major, minor); }
const char *strerrorname_np(int) { return nullptr; } // an error's number is printed then
const char *strerrordesc_np(int error) { return std::strerror(error); }
}
// NOLINTEND
