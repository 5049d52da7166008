// What this machine says to the compiler.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "programs/experiment/compile.h"

namespace rawbpf::inline v0::experiment {

/// Opens the running kernel's types, where it has any.
class LiveSurroundings {
  public:
    /// `folders`: where headers of programs in C are.
    explicit LiveSurroundings(std::vector<std::string> folders = {});
    /// Good as long as this lives.
    [[nodiscard]] Surroundings surroundings() const;

  private:
    std::shared_ptr<const btf::Btf> kernel_;
    std::vector<std::string> folders_;
};

} // namespace rawbpf::inline v0::experiment
