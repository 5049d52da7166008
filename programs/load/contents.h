// What the maps of a loaded object hold, as text for people or JSON lines.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/kernel/loader.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::load_tool {

struct ContentsOptions {
    bool json = false;
    bool constants = false; ///< .rodata and .kconfig, too
};

/// Appends every map of the object, in its order, with keys and values by their types. Text: a heading a map and a line an entry
/// ("  {.pid = 1} = 7"), a line a variable for .bss and .data. JSON: {"type":"entry","map","key","value"} ("values" for each
/// CPU),
/// {"type":"variable","map","name","value"}, and {"type":"map_contents","map","map_type","entries","zero","reason"} after each
/// map. Elements of arrays that are zero are counted, not shown. A map of a kind that can't be read says why and is no error.
/// Errors: the first of a map that could have been read (ENOMEM, EIO); what can be is shown even so.
[[nodiscard]] Result<void> append_contents(std::string &out, const ObjectSpec &spec, const LoadedObject &object,
                                           const ContentsOptions &options = {});

} // namespace rawbpf::inline v0::load_tool
