// What this process's descriptors are, learnt from the calls that made them, so that --syscalls can print "map_fd=5<events>".
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {

struct Descriptor {
    enum Kind : uint8_t { other, map, program, btf, link } kind = other;
    std::string name;        ///< of the map or program, the file's path, the event's; may be empty
    uint32_t key_size = 0;   ///< of a map that was made here
    uint32_t value_size = 0; ///< the same, as user space sees it: of a per-CPU map one CPU's
};

class Descriptors {
  public:
    /// Every call with its result, after it was made.
    void see(const Call &call, long result);
    /// nullptr: not known.
    [[nodiscard]] const Descriptor *find(int fd) const;

  private:
    void see_bpf(const Call &call, int fd);
    std::map<int, Descriptor> known_;
};

} // namespace rawbpf::inline v0::sys
