// The commands of rawbpf-lab: all that there are.
#include "cli/commands.h"
#include "cli/lab.h"

namespace rawbpf::inline v0::cli {

const bool kHasLab = true;

std::span<const Command *const> all_commands() {
    // One a line, so that two that are added at once don't meet.
    static constexpr const Command *commands[] = {
        &kProfile,     &kReport, //
        &kLoad,                  //
        &kExec,        &kStep,   //
        &kInspect,               //
        &kRelocs,                //
        &kCheck,                 //
        &kLink,                  //
        &kBtfDump,     &kBtfMin, //
        &kGenSkeleton,           //
        &kAsm,         &kDisasm, //
        &kIsa,         &kHelper, //
        &kDoctor,                //
        &kCompletion,            //
        &kHelp,        &kVersion, &kMan,
    };
    return commands;
}

} // namespace rawbpf::inline v0::cli
