// What the kernel's compiler (JIT) made of a loaded program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::inspect {

struct MachineFunction {
    std::string name;
    uint64_t address = 0; ///< in the kernel; 0: it doesn't say (kernel.kptr_restrict)
    std::vector<std::byte> code;
    struct Line {
        uint32_t offset = 0; ///< in the code
        std::string file, text;
        uint32_t line = 0;
    };
    std::vector<Line> lines; ///< source lines, by offset; where the kernel has them
};

/// The functions of a loaded program, each with its machine code and the source lines that it begins at. Errors: not_found for an
/// id that nobody has; unsupported where the program is interpreted; permission where the kernel doesn't show it.
[[nodiscard]] Result<std::vector<MachineFunction>> machine_code(int fd);

/// For people: bytes in hexadecimal, 16 a line, with their offsets; names, addresses and source lines between them.
[[nodiscard]] std::string machine_text(const std::vector<MachineFunction> &functions, bool source);

} // namespace rawbpf::inline v0::inspect
