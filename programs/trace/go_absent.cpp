// In the place of go_place.cpp, emit_go.cpp and go_values.cpp, in a build without the part `go`: functions of Go's programs can't
// be traced, since what Go's compiler makes takes other probes and has its arguments elsewhere.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wunused-private-field" // GoProgram's are used by go_place.cpp
#endif
#include "programs/trace/emit.h"
#include "programs/trace/go_place.h"
#include "programs/trace/go_values.h"
#include "programs/without_part.h"

namespace rawbpf::inline v0::trace {

Result<GoProgram> GoProgram::open(const UserFunctions &, const std::string &) {
    return Unexpected(without_part("functions of Go's programs", "go"));
}
std::string GoProgram::read_types(const std::vector<UserFunction> &) { return {}; }
bool GoProgram::describe(const UserFunction &, bool, ProbeSite &) const { return false; }

// No place has a Go call, so nobody asks for any of these.
void load_go_word(const Emitting &, WritableReg, const GoWord &) {}
void load_goroutine(const Emitting &, WritableReg) {}
void load_go_frame(const Emitting &, WritableReg) {}
void copy_go_slice(const Emitting &, const Value &, Mem, uint32_t) {}
void copy_go_strings(const Emitting &, const Value &, Mem, uint32_t) {}
void copy_go_interface(const Emitting &, const Value &, Mem, uint32_t) {}
void load_go_value(const Emitting &, WritableReg, const Value &, uint32_t) {}
Decoded decode_go_slice(const Type &, uint64_t, Bytes) { return {}; }
Decoded decode_go_interface(Bytes, std::string_view) { return {}; }

} // namespace rawbpf::inline v0::trace
