// Modules' tables where programs can read them: one a file, however many processes map it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "programs/unwind/pools.h"
#include "programs/unwind/program.h"
#include "programs/unwind/rules.h"
#include "runtime/base/bytes.h"
#include "runtime/elf/elf.h"
#include "runtime/unwind/table.h"

namespace rawbpf::inline v0::unwind {

class Tables {
  public:
    static constexpr uint32_t kNone = UINT32_MAX;
    enum class State : uint8_t {
        resident, ///< its rows lie in the pools
        by_fp,    ///< it has none: its code keeps frame pointers, or nobody can tell
        dropped,  ///< others were used more: it can be loaded again
        refused,  ///< see Module::why
    };
    struct Segment {
        uint64_t offset, address, size; ///< of executable bytes: in the file, in memory
    };
    struct Module {
        std::string identity; ///< what tells the file from all others: build-id and fingerprint, or what stands for them
        State state = State::refused;
        std::string why; ///< refused: a phrase
        std::vector<Segment> segments;
        uint64_t base = 0; ///< address (as the file numbers them) of the first page
        uint32_t directory = 0, pages = 0;
        std::vector<std::pair<uint32_t, uint32_t>> pieces; ///< of the pools: position, bytes
        uint32_t bytes = 0;                                ///< of them all
        uint64_t used_ns = 0;
        TableStats stats;
    };

    /// How code is unwound that no row covers.
    enum class Gaps : uint8_t {
        tried, ///< its instructions and its frame pointers are tried (kGuess)
        by_fp, ///< the same, but it has frame pointers up to the outermost frame (kByFramePointer)
    };

    /// `make_room` is asked when the pools are full; false: nothing can go.
    Tables(Pools &pools, Rules &rules, std::function<bool()> make_room)
        : pools_(pools), rules_(rules), make_room_(std::move(make_room)) {}

    /// The number of a module that is known already, whether or not it is resident; kNone.
    [[nodiscard]] uint32_t find(const std::string &identity) const;
    /// Makes the table of a file and puts it into the pools; again, for one that was dropped. Its state says how it went:
    /// `dropped` when there is no room. The file's bytes are hostile.
    uint32_t load(const elf::Elf &file, std::string identity, uint64_t now_ns);
    /// The same with a table that is made already; `code`: the executable segments.
    uint32_t add(const Table &table, std::vector<Segment> code, Gaps gaps, std::string identity, uint64_t now_ns);
    /// The same for a file of machine code that isn't ELF, as just-in-time compilers have them: frame pointers are all there is.
    uint32_t add_without_rows(std::string identity);
    /// The table of code all of whose frames are alike; one for all code of that form, from address 0 on. Its first 256 MiB have
    /// rows.
    uint32_t add_uniform(const UniformFrame &frame, uint64_t now_ns);
    /// The same for something that can't be read: its mappings are stops.
    uint32_t refuse(std::string identity, std::string why);
    /// Takes it out of the pools, after no published mapping leads there any more.
    void drop(uint32_t module);
    /// The resident one that was used least recently, but before `before_ns`; kNone.
    [[nodiscard]] uint32_t least_used(uint64_t before_ns) const;
    void used(uint32_t module, uint64_t now_ns) { modules_[module].used_ns = now_ns; }

    /// How code of the module is unwound where [start, end) maps its bytes from `file_offset` on.
    [[nodiscard]] UnwindMapping mapping(uint32_t module, uint64_t start, uint64_t end, uint64_t file_offset) const;

    [[nodiscard]] const Module &operator[](uint32_t module) const { return modules_[module]; }
    [[nodiscard]] const std::vector<Module> &all() const { return modules_; }
    [[nodiscard]] uint64_t drops() const { return drops_; }

  private:
    uint32_t slot(std::string identity);
    [[nodiscard]] bool place(Module &module, const Table &table, const UnwindRule &elsewhere);
    /// `elsewhere`: the rule for code that no row covers; nullptr: there are no rows at all.
    uint32_t add(const Table &table, std::vector<Segment> code, const UnwindRule *elsewhere, std::string identity,
                 uint64_t now_ns);
    void release(Module &module);

    Pools &pools_;
    Rules &rules_;
    std::function<bool()> make_room_;
    std::vector<Module> modules_;
    uint64_t drops_ = 0;
};

} // namespace rawbpf::inline v0::unwind
