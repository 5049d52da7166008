// What a Go program says of its functions: which convention it has, what they take.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "programs/trace/probe.h"
#include "runtime/base/result.h"
#include "runtime/link/user_functions.h"

namespace rawbpf::inline v0::trace {

class GoTypeNames;

class GoProgram {
  public:
    /// `signature`: --sig, empty: none. Errors: invalid_argument, what is wrong with it.
    [[nodiscard]] static Result<GoProgram> open(const UserFunctions &file, const std::string &signature);
    /// Looks what its DWARF says of these, where --sig says nothing. Returns what is to be told, or nothing.
    [[nodiscard]] std::string read_types(const std::vector<UserFunction> &functions);
    /// Where its arguments and results are, and what is known of them. False: `returns` are wanted, and where it returns isn't
    /// known.
    [[nodiscard]] bool describe(const UserFunction &function, bool returns, ProbeSite &place) const;

  private:
    UserFunctions file_;
    bool in_registers_ = true;
    std::optional<GoSignature> go_;                   ///< --sig
    std::optional<Signature> c_;                      ///< or as C
    std::unordered_map<uint64_t, GoSignature> known_; ///< by address, from DWARF
    std::shared_ptr<const GoTypeNames> types_;
};

} // namespace rawbpf::inline v0::trace
