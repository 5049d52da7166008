// What a CO-RE relocation is about, told from the object alone: for `rawbpf inspect`, which has no kernel to ask.
#include "runtime/object/core_describe.h"

#include "runtime/base/fail.h"
#include "runtime/object/core_path.h"

namespace rawbpf::inline v0 {

Result<std::string> describe_core(const btf::Btf &local, const CoreRelocation &relocation) {
    return object::describe(TRY(object::parse_core_path(local, relocation)));
}

} // namespace rawbpf::inline v0
