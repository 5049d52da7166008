// In the place of program.cpp and unwinder.cpp, in a build without the part `unwind`: programs leave user stacks to the kernel,
// which walks them by frame pointers.
#include <cstdlib>

#include "programs/unwind/unwinder.h"
#include "programs/without_part.h"

namespace rawbpf::inline v0 {

MapSpec unwind_pool_spec() { return {}; }
void complete_unwind_maps(ObjectSpec &) {}
UnwindProgramOptions probe_unwind() { return {}; }

std::optional<UnwindProgramOptions> unwind_options(const UnwindChoice &choice, std::string &note) {
    note.clear();
    if (choice.by != UnwindBy::fp)
        note = without_part("user stacks are walked by frame pointers, and end in code without them", "unwind").message();
    return {};
}

bool goes_without(const UnwindChoice &, const Error &, std::string &) { return false; }

// Who asks unwind_options() makes none of these.
Unwinder::Unwinder(Builder &b, const UnwindProgramOptions &options)
    : b_(b), options_(options), pools_(b.hash<uint32_t, uint32_t>("unwind_pools", 1)), rules_(pools_), processes_(pools_) {
    std::abort();
}
void Unwinder::walk(Code &, const WalkPlace &) {}
void Unwinder::copy_stack(Code &, const WalkPlace &, const std::function<void(Label)> &) const {}
void Unwinder::jump_if_walked(Code &, const WalkPlace &, Label) const {}
void Unwinder::jump_if_known(Code &, const Slot &, Label) const {}
void Unwinder::forget(Code &, WritableReg, Mem, uint32_t) {}

} // namespace rawbpf::inline v0
