// Stand-ins for /proc and for symbol tables, and short ways to write mappings and places.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "programs/processes/namer.h"
#include "programs/processes/process_table.h"
#include "runtime/base/fail.h"

namespace rawbpf::test {

using namespace rawbpf::processes;

inline symbols::Region region(uint64_t start, uint64_t end, std::string path, uint64_t offset = 0, uint64_t inode = 1) {
    symbols::Region out;
    out.start = start;
    out.end = end;
    out.file_offset = offset;
    out.path = std::move(path);
    out.inode = inode;
    return out;
}

/// /proc, as a table.
struct FakeMaps : MapsSource {
    std::map<uint32_t, std::vector<symbols::Region>> processes;
    std::vector<uint32_t> read; // pids, in the order asked
    std::vector<std::string> modules_met;
    std::vector<std::vector<uint32_t>> met_with;

    Result<symbols::ProcessMaps> maps(uint32_t pid) override {
        read.push_back(pid);
        auto found = processes.find(pid);
        if (found == processes.end()) return fail(Errc::not_found, "process {}", pid);
        symbols::ProcessMaps out;
        out.pid = static_cast<int>(pid);
        out.regions = found->second;
        return out;
    }
    std::map<uint32_t, uint32_t> parents;
    uint32_t parent(uint32_t pid) override { return parents.count(pid) ? parents[pid] : 0; }
    void met(uint32_t, Module &module, const std::vector<uint32_t> &pids, uint64_t, uint64_t) override {
        modules_met.push_back(module.path);
        met_with.push_back(pids);
    }
    bool met_jit(const std::vector<uint32_t> &, const symbols::Region *) override { return ++jit_looks >= jit_there_at; }
    int jit_looks = 0, jit_there_at = 1;
    std::map<uint64_t, bool> memory_programs; // by inode; others can't be looked into
    int memory_looks = 0;
    std::optional<bool> is_program(uint32_t, const symbols::Region &region) override {
        ++memory_looks;
        auto found = memory_programs.find(region.inode);
        return found == memory_programs.end() ? std::nullopt : std::optional(found->second);
    }
};

/// Every 0x100 bytes of a file begin a function "NAME_xx"; kernel addresses likewise.
struct FakeSymbols : SymbolSource {
    size_t kernel_passes = 0;
    std::vector<uint32_t> done;
    std::map<uint64_t, std::string> special; // by file offset, rounded down to 0x100

    std::vector<symbols::KernelName> kernel(std::vector<uint64_t> addresses) override {
        ++kernel_passes;
        std::vector<symbols::KernelName> out;
        for (uint64_t a : addresses) {
            symbols::KernelName name;
            name.address = a;
            name.symbol = format("kernel_{:x}", a >> 8);
            name.offset = a & 0xff;
            name.module = "vmlinux";
            out.push_back(name);
        }
        return out;
    }
    std::optional<symbols::Name> in_module(uint32_t, const Module &, uint64_t offset) override {
        if (auto found = special.find(offset & ~0xffull); found != special.end())
            return symbols::Name{found->second, offset & 0xff};
        return symbols::Name{format("f_{:x}", offset >> 8), offset & 0xff};
    }
    std::optional<symbols::CompiledName> in_memory(uint32_t pid, uint64_t address, uint64_t) override {
        return symbols::CompiledName{{format("jit_{}", pid), address & 0xff}, {}, 0};
    }
    std::string build_id(uint32_t, const Module &) override { return "cafe"; }
    std::vector<SourceFrame> in_source(uint32_t, const Module &, uint64_t offset) override {
        asked_source.push_back(offset);
        auto found = source.find(offset & ~0xffull);
        return found == source.end() ? std::vector<SourceFrame>() : found->second;
    }
    std::vector<SourceFrame> in_made_code(uint64_t layer) override {
        auto found = made.find(layer);
        return found == made.end() ? std::vector<SourceFrame>() : found->second;
    }
    std::map<uint64_t, std::vector<SourceFrame>> made; // by layer
    void done_with(uint32_t module) override { done.push_back(module); }
    std::map<uint64_t, std::vector<SourceFrame>> source; // by file offset, rounded down to 0x100
    std::vector<uint64_t> asked_source;
};

inline FrameLocation kernel_place(uint64_t address, bool caller = false) {
    FrameLocation place;
    place.address = address;
    place.kernel = true;
    place.caller = caller;
    return place;
}

} // namespace rawbpf::test
