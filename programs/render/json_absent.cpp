// Stands in for json_text.cpp in a build without nlohmann-json (-Djson=disabled). The command line asks writes_json() before any
// command runs.
#include "programs/render/json_line.h"

namespace rawbpf::inline v0::render {

bool writes_json() { return false; }
void append_json(std::string &out, std::string_view) { out += "null"; }

} // namespace rawbpf::inline v0::render
