// Functions of programs and libraries, for uprobes. Private to this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/result.h"
#include "runtime/elf/elf.h"

namespace rawbpf::inline v0 {

/// A program or library as a person names it -> a path to open: "libc" and "libc.so.6" are looked up where the dynamic linker
/// would, "bash" in PATH, anything with a slash is taken as it is. With a pid: as that process sees it (/proc/PID/root), and a
/// library by what it has mapped. Errors: not_found, with the places looked at.
[[nodiscard]] Result<std::string> find_binary(const std::string &name, int pid = -1);

struct UserFunction {
    std::string name;    ///< as it is shown: demangled, with what the compiler appended
    uint64_t offset = 0; ///< in the file
    uint64_t size = 0;
    std::string symbol = {}; ///< as the file has it; empty: nothing but the offset was given
    std::string suffix = {}; ///< of a copy or a part that the compiler made: ".isra.0"
};

/// Whether code of that name has no return address of its own (parts that the compiler split off, PLT stubs), or runs before
/// there is a stack to speak of: a probe at its return would overwrite something else.
[[nodiscard]] bool returns_to_nobody(std::string_view name);

/// The functions of one ELF file: .dynsym, .symtab, the separate debug file where there is one, and of a stripped Go program
/// those in its .gopclntab.
class UserFunctions {
  public:
    [[nodiscard]] static Result<UserFunctions> open(const std::string &path);
    /// The function called `name`, mangled or readable, with or without its parameters, or "name@VERSION" (of .gnu.version_d).
    /// Where several share the name, one that others can link against wins. Errors: not_found with the nearest names;
    /// invalid_argument where the name stands for several places.
    [[nodiscard]] Result<UserFunction> find(const std::string &name) const;
    /// All that a pattern describes by one of their names (FunctionNames), each place once, sorted by offset. Errors: not_found
    /// with the nearest names.
    [[nodiscard]] Result<std::vector<UserFunction>> match(const std::string &pattern) const;
    /// Whether Go made it: its functions move their stacks, so that a probe at a return crashes them.
    [[nodiscard]] bool is_go() const;
    [[nodiscard]] const std::string &path() const;
    [[nodiscard]] const elf::Elf &elf() const;
    [[nodiscard]] Bytes image() const; ///< the file; good as long as this, or a copy of it, is there

    struct State;

  private:
    std::shared_ptr<const State> state_;
};

} // namespace rawbpf::inline v0
