// Files that become shorter while we read them.
#pragma once

namespace rawbpf::inline v0::sys {

/// From now on, where a mapped file has ended that was longer when it was mapped, there are zeros. (Without it the kernel ends
/// the process: SIGBUS.) For programs: a library doesn't decide what a signal of the whole process means. A write to such a place
/// still ends it. exec(2) gives the default back.
void outlive_truncated_files();

} // namespace rawbpf::inline v0::sys
