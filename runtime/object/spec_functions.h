// The functions of all programs of a spec, each once and each with a name of its own. Private to this folder.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "asm/unit.h"

namespace rawbpf::inline v0::object {

/// A function as it stands in one program.
struct SpecPart {
    Function function;           ///< its references to functions have no symbol yet
    std::vector<size_t> targets; ///< for each of these, in order: the part of this program that it leads to
};

class SpecFunctions {
  public:
    /// The parts of one program; those without instructions are nothing, and nothing may lead to them.
    void add(std::vector<SpecPart> program);
    /// All functions, in order of their first appearance, with names that aren't in `taken` and that are plain symbols.
    [[nodiscard]] std::vector<Function> finish(std::set<std::string> taken) &&;

  private:
    struct Part {
        size_t program, kind;
        std::vector<size_t> targets; ///< places in parts_
    };
    void refine();

    std::vector<Function> bodies_; ///< one of each kind
    std::map<std::string, size_t> kinds_;
    std::vector<Part> parts_;
    size_t programs_ = 0;
};

} // namespace rawbpf::inline v0::object
