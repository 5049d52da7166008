// Which commands an executable has. This file is compiled twice: for rawbpf, and with RAWBPF_LAB for rawbpf-lab, which has all
// commands (lab.cpp says why there are two). The static rawbpf has no room for USDT probes (RAWBPF_WITHOUT_USDT).
#include "cli/asm_file.h"
#include "cli/commands.h"
#include "cli/doctor_modules.h"
#include "cli/lab.h"
#include "cli/lines.h"
#include "cli/profile_export.h"
#include "cli/profile_live.h"
#include "cli/profile_off_cpu.h"
#include "programs/render/lab_formats.h"

namespace rawbpf::inline v0::cli {

#ifdef RAWBPF_LAB
const bool kHasLab = true;
const OpenProfileExport kOpenProfileExport = open_profile_export;
const OpenDebugInfo kOpenDebugInfo = open_debug_info;
const OpenLiveScreen kOpenLiveScreen = open_live_screen;
const MakeOffCpu kMakeOffCpu = profile::make_off_cpu;
const MakeRenderer kMakeRenderer = render::make_any_renderer;
const ExamineModules kExamineModules = examine_modules;
const OpenAssembly kOpenAssembly = open_assembly;
#else
const bool kHasLab = false;
const OpenProfileExport kOpenProfileExport = nullptr;
const OpenDebugInfo kOpenDebugInfo = nullptr;
const OpenLiveScreen kOpenLiveScreen = nullptr;
const MakeOffCpu kMakeOffCpu = nullptr;
const MakeRenderer kMakeRenderer = render::make_renderer;
const ExamineModules kExamineModules = nullptr;
const OpenAssembly kOpenAssembly = nullptr;
#endif

std::span<const Command *const> all_commands() {
    // In the order of the help. One a line, so that two that are added at once don't meet.
    static constexpr const Command *commands[] = {
        &kProfile,     &kReport, //
#ifdef RAWBPF_LAB
        &kTrace,  //
        &kCustom, //
#endif
#ifndef RAWBPF_WITHOUT_USDT
        &kUsdtList,    &kUsdtValidate, //
#endif
#ifdef RAWBPF_LAB
        &kUsdtTrace, //
#endif
        &kLoad, //
#ifdef RAWBPF_LAB
        &kExec,        &kStep,   //
        &kInspect,               //
        &kRelocs,                //
        &kCheck,                 //
        &kLink,                  //
        &kBtfDump,     &kBtfMin, //
        &kGenSkeleton,           //
        &kAsm,         &kDisasm, //
        &kIsa,         &kHelper, //
#endif
        &kDoctor,     //
        &kCompletion, //
        &kHelp,        &kVersion,      &kMan,
    };
    return commands;
}

} // namespace rawbpf::inline v0::cli
