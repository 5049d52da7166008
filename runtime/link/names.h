// Names that don't exist, and those that do; and patterns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rawbpf::inline v0 {

/// Whether `text` is what `pattern` describes: * is any number of characters, ? is one, all others are themselves. Takes time
/// proportional to the product of the lengths at worst.
[[nodiscard]] bool matches_pattern(std::string_view pattern, std::string_view text);
[[nodiscard]] inline bool is_pattern(std::string_view text) { return text.find_first_of("*?") != std::string_view::npos; }

/// "MODULE:NAME", as kprobes and BPF sections write a kernel function (or a pattern of them) that only one module is asked for;
/// "vmlinux:NAME", like NAME alone, is the kernel's own.
struct ModuleAndName {
    std::string_view module, name;
    bool given = false; ///< there was a colon: functions of other modules aren't meant
};
[[nodiscard]] inline ModuleAndName split_module(std::string_view target) {
    const size_t colon = target.find(':');
    if (colon == std::string_view::npos) return {{}, target, false};
    const std::string_view module = target.substr(0, colon);
    return {module == "vmlinux" ? std::string_view() : module, target.substr(colon + 1), true};
}

/// Collects, of all names shown to it, the few that are nearest to the one that wasn't found.
class NearestNames {
  public:
    explicit NearestNames(std::string_view wanted);
    void see(std::string_view name);
    /// "did you mean vfs_read, vfs_readv?", or empty where nothing is near.
    [[nodiscard]] std::string hint() const;

  private:
    static constexpr size_t kShown = 3;
    std::string wanted_;
    struct Near {
        size_t distance;
        std::string name;
    };
    std::vector<Near> near_;
};

} // namespace rawbpf::inline v0
