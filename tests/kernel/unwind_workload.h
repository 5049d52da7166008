// What the unwinder's tests look at: this same binary, started again with the environment saying what to do.
#pragma once

#include <string>
#include <vector>

namespace rawbpf::test {

/// The command that runs a workload whose stack is known (unwind_workload.cpp) for so many milliseconds of CPU time. When it has
/// all its mappings it is called "unwound" and stops itself, until it gets a SIGCONT. "storm" doesn't: it starts fifty processes
/// one after the other, each of which recurses for so long. "exec" does, and then executes itself anew, to recurse for so long.
std::vector<std::string> unwind_workload(const std::string &what, int milliseconds);

} // namespace rawbpf::test
