// Whether an emulator runs this program so that its memory lies elsewhere than it says: qemu-user with a 32-bit program. Then
// /proc/PID/mem and /proc/PID/map_files, which are the host's, know other addresses.
#pragma once

#include <cstdint>

#include <fcntl.h>
#include <unistd.h>

namespace rawbpf::test {

inline bool memory_is_elsewhere() {
    const volatile uint64_t known = 0x5eed'5eed'5eed'5eed;
    uint64_t read = 0;
    const int memory = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    const auto got = ::pread(memory, &read, sizeof read, static_cast<off_t>(reinterpret_cast<uintptr_t>(&known)));
    ::close(memory);
    return got != sizeof read || read != known;
}

} // namespace rawbpf::test
