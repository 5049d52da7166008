// What an interpreter is to the rest: one folder, and one entry of the table.
//
//      recognise   a file that is mapped: is it one of mine? Then what it exports, and which of its functions evaluate
//      learn       a process that runs it: which words lead to a thread's frames, and which of a frame say what
//      others      a process with several interpreters: where a thread's other lists of frames are
//      function    a code object as the program sent it: name, file, table of lines
//      part        a frame of the list: a function, the end of a group (merge.h), or neither
//      line        a position in a function
//
// What is the same for all (walk, merge, memory, which process is what) knows no language. Another runtime is a folder with
// these, and a line in runtimes.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "asm/machines.h"
#include "programs/languages/layout.h"
#include "programs/languages/memory.h"
#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::languages {

struct Runtime;

/// What the file of an interpreter says of itself.
struct Interpreter {
    const Runtime *runtime = nullptr;
    std::map<std::string, uint64_t, std::less<>> exports; ///< of the names that its runtime asks for: addresses in the file
    uint32_t version = 0;                                 ///< in the runtime's own way; 0: it doesn't say
    std::string why_not;                                  ///< half a sentence: it is one, whose frames can't be had; else empty
    struct Range {
        uint64_t start, end;
    };
    std::vector<elf::Segment> code; ///< its executable parts
    std::vector<Range> evaluates;   ///< offsets in the file: code that runs the language's functions, its cold part as well
    std::vector<Range> enters;      ///< code that calls that once for each group, or code that the runtime has made instead
    std::vector<Range> functions;   ///< all that it has, by offset, where its runtime needs them, or evaluation.h

    /// In the file; 0: it isn't exported.
    [[nodiscard]] uint64_t address(std::string_view name) const {
        const auto at = exports.find(name);
        return at == exports.end() ? 0 : at->second;
    }
};

/// What ends a group of frames (merge.h).
enum class Groups : uint8_t {
    each,   ///< each frame
    marked, ///< a frame that its mark says so of
    shims,  ///< a frame that is no function's
};

/// "Perl 5.36.0": a runtime and its version, a byte each from the lowest; without one where it is 0.
[[nodiscard]] std::string with_version(std::string_view runtime, uint32_t version);

/// What was learnt of a build.
struct Layout {
    LanguageProcess process{}; ///< addresses are those of the process it was learnt in
    Groups groups = Groups::each;
    uint32_t text = 0; ///< bytes of a string object in front of its characters, where all are ASCII
    bool stacked =
        false; ///< what ends a list of frames (LANGUAGE_IS_LIST) is an address on the native stack: inner lists have lower ones
    bool based = false; ///< the outermost frame of each list is one that a thread begins with, which evaluates nothing
    uint32_t head = 16; ///< bytes of each object in front of what it is
    uint32_t code_size =
        0; ///< bytes of a code object in front of its instructions; 0: these lie elsewhere, and positions count them
    uint32_t index_bytes = 0;                ///< with code_size 0: of an instruction that a position counts
    size_t frames = 0;                       ///< that it was learnt from
    bool confirmed = false;                  ///< the runtime says of itself where these words are, and it's the same
    std::vector<Interpreter::Range> resumes; ///< by which one evaluation goes on in another one: that begins no group
};

/// Where something is learnt.
struct Lesson {
    const Interpreter &file;
    uint64_t bias; ///< addresses in the process less those in the file
    Arch arch;
    uint64_t thread_pointer;                  ///< of the thread that was sampled
    std::span<const LanguageProcess> refuted; ///< ways to the frames that didn't agree with native stacks
};

/// A function of the language, as the program sent its code object.
struct Function {
    std::string name, file;
    uint32_t line = 0; ///< the first
    uint64_t address = 0;
    std::vector<std::byte> table;
    size_t index = 0;      ///< bytes of the table that are its index, at its end
    bool evaluated = true; ///< by the function that evaluates; false: it is native code
};

/// What a frame of the list is.
struct Part {
    bool ends_group = false; ///< native code called it
    bool hidden = false;     ///< it is no function that is shown
    bool joins = false;      ///< what it called is of its group, whatever that frame says
};

/// One entry of the table. All functions are PURE but for what `learn` reads.
struct Runtime {
    std::string_view language; ///< "Python"
    std::string_view compiled; ///< a mapping whose name begins so has code made of the language's functions, that runs in the
                               ///< frame of the function that evaluates; empty: there is none
    /// nullopt: it isn't one.
    std::optional<Interpreter> (*recognise)(const elf::Elf &file, Bytes bytes);
    /// As of now; none of the ways that are refuted. nullopt: `why` says what is missing (half a sentence).
    std::optional<Layout> (*learn)(Memory &memory, const Lesson &lesson, std::string &why);
    /// Where a thread's other lists of frames are, where it runs several interpreters, into a layout with the process's
    /// addresses. False: it has none, or they weren't found. nullptr: threads have one list.
    bool (*others)(Memory &memory, const Lesson &lesson, Layout &layout);
    /// "CPython 3.11.2", up to the first colon, and what was learnt.
    std::string (*describe)(const Interpreter &file, const Layout &layout);
    /// `code`: as far as `table`, which is given apart.
    Function (*function)(const LanguageCode &code, Bytes table, const Layout &layout);
    /// `function` is nullptr while it isn't known; the id is word 0 of the frame, `word` word 1.
    Part (*part)(const Layout &layout, const Function *function, uint64_t id, uint64_t word);
    /// 0: unknown.
    uint32_t (*line)(const Layout &layout, const Function &function, uint64_t word);
    bool early = false; ///< frames are in the list before what evaluates them is entered (merge.h)
    bool alike = false; ///< the code that it makes of functions has frames that are alike, and no frame pointers
};

/// All that there are. The first that recognises a file has it.
[[nodiscard]] std::span<const Runtime *const> runtimes();

/// Whose file this is; nullopt: no interpreter's that is known here.
[[nodiscard]] std::optional<Interpreter> recognise(const elf::Elf &file, Bytes bytes);

/// What is added to the file's addresses where it is mapped at `start` from `offset` on; nullopt: no code of it lies there.
[[nodiscard]] std::optional<uint64_t> bias_of(std::span<const elf::Segment> code, uint64_t start, uint64_t offset);
[[nodiscard]] std::optional<uint64_t> bias_of(const Interpreter &file, uint64_t start, uint64_t offset);

/// The same way in a process whose addresses are `bias` more.
[[nodiscard]] LanguageProcess moved(LanguageProcess process, uint64_t bias);

} // namespace rawbpf::inline v0::languages
