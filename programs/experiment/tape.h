// A recorded run: what the kernel and the commands returned, so that the user-space part can be repeated elsewhere, without
// privileges. PURE.
//
//      run --record FILE     Lab --> Moment, Moment, ...          everything that came, between the steps that it came at
//      run --replay FILE     Moment, Moment, ... --> Lab          steps, tables, expectations again; no wait takes time
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "programs/experiment/evaluate.h"
#include "programs/experiment/parse.h"
#include "programs/experiment/plan.h"
#include "runtime/base/bytes.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::experiment {

/// Something that came.
struct Moment {
    enum class Kind : uint8_t {
        step,    ///< a step begins; name: its line
        number,  ///< set_number(); name, number
        reading, ///< a map was read; spec, name, keys, values, count, cpus
        record,  ///< of a ring; spec, name, values
        symbol,  ///< an address of the kernel; name, count: the address
    };
    Kind kind = Kind::step;
    std::string name;
    Number number = 0;
    uint32_t spec = 0;
    std::string keys{}, values{};
    uint64_t count = 0, cpus = 0;
};

struct Tape {
    std::string name, text; ///< of the experiment's file
    std::vector<Setting> settings;
    std::string kernel, when; ///< where and when: "6.12.9", RFC 3339
    Plan plan;                ///< maps, events and types of it; its programs have names alone
    std::vector<std::string> attached;
    bool refused = false; ///< the kernel refused the programs
    std::string reason{}, log{};
    std::vector<Moment> moments{};
};

/// The bytes of a file.
[[nodiscard]] std::string write_tape(const Tape &tape);
/// Errors: bad_input for what is no recording, one of another version, and one that is cut or damaged, with the offset.
[[nodiscard]] Result<Tape> read_tape(Bytes bytes, std::string_view name);

} // namespace rawbpf::inline v0::experiment
