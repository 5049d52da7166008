// rawbpf-lines.so's one symbol. The module has its own copy of what it needs of the library; what crosses the border are the
// classes of source_lines.h, by the same compiler's rules, which the version stands for.
#include "programs/dwarf/debug_info.h"

extern "C" __attribute__((visibility("default"))) const rawbpf::dwarf::Lines *rawbpf_lines();

const rawbpf::dwarf::Lines *rawbpf_lines() {
    using namespace rawbpf::dwarf;
    static const Lines lines{RAWBPF_VERSION, make_debug_info};
    return &lines;
}
