// The commands of rawbpf: without those of the laboratory (lab.cpp).
#include "cli/commands.h"
#include "cli/lab.h"

namespace rawbpf::inline v0::cli {

const bool kHasLab = false;

std::span<const Command *const> all_commands() {
    // One a line, so that two that are added at once don't meet.
    static constexpr const Command *commands[] = {
        &kProfile,     &kReport, //
        &kLoad,                  //
        &kInspect,               //
        &kRelocs,                //
        &kCheck,                 //
        &kLink,                  //
        &kBtfDump,     &kBtfMin, //
        &kGenSkeleton,           //
        &kDoctor,                //
        &kCompletion,            //
        &kHelp,        &kVersion, &kMan,
    };
    return commands;
}

} // namespace rawbpf::inline v0::cli
