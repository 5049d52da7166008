// struct_ops maps are read where there are any. The core has core/ways.cpp in place of this file.
#include "runtime/object/image.h"

namespace rawbpf::inline v0::object {

Result<void> read_struct_ops_part(Image &image, ObjectSpec &spec) { return read_struct_ops(image, spec); }

} // namespace rawbpf::inline v0::object
