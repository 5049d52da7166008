#include "programs/recording/names.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace rawbpf::inline v0::recording {

using namespace processes;

void write_names(Writer &writer, const StackTree &tree, Namer &namer, const ModuleTable &modules, const LiveSymbols &symbols) {
    std::vector<uint32_t> kernel;
    for (uint32_t i = 0; i < tree.places().size(); ++i)
        if (tree.places()[i].kernel && !namer.named(i)) kernel.push_back(i);
    namer.name_kernel(kernel);
    std::vector<uint8_t> by_module; // whether a report can't name it
    for (uint32_t id = 0; id < modules.all().size(); ++id) {
        const Module &module = modules[id];
        by_module.push_back(module.kind != ModuleKind::file || symbols.unlinked(id, module));
    }
    std::vector<FramePtr> frames; // of a place
    for (uint32_t i = 0; i < tree.places().size(); ++i) {
        const FrameLocation &place = tree.places()[i];
        if (place.kernel || (place.module != kNone && by_module[place.module])) {
            frames.clear();
            namer.add_frames(i, frames);
            for (const FramePtr &frame : frames) writer.name(i, *frame);
        }
    }
}

// A place's inlined functions come first. There are no more of them than a compiler makes: a small file must not cost much.
void BroughtNames::add(uint32_t place, Frame &&frame) {
    constexpr size_t kMost = 256;
    std::vector<Frame> &frames = parts_.back()[place];
    if (!frames.empty() && !frames.back().inlined) frames.clear();
    if (!frame.inlined || frames.size() < kMost) frames.push_back(std::move(frame));
}

// A stack that comes again and again has its names already.
void BroughtNames::give_place(Namer &namer, uint32_t place) {
    if (namer.named(place)) return;
    auto &names = parts_[part_];
    if (auto found = names.find(place); found != names.end()) namer.give(place, std::move(found->second));
}

} // namespace rawbpf::inline v0::recording
