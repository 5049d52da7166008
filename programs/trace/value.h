// What a name in an expression stands for at a place: where the bytes come from, and their type. PURE.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/trace/expression.h"
#include "programs/trace/probe.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::trace {

/// One value that a program can get at.
struct Value {
    enum class From : uint8_t { argument, result, duration, comm, pid, tid, uid, gid, cpu, goroutine };
    From from = From::argument;
    uint32_t argument = 0;
    /// Pointers to follow: each is a distance from where the one before leads to. The last says where the value itself lies.
    std::vector<uint64_t> reads;
    uint8_t bit_offset = 0, bit_size = 0; ///< a bitfield's place in what the last read gives; bit_size 0: none
    Type type;

    [[nodiscard]] bool is_text() const {
        return type.show == Show::text || type.show == Show::characters || type.show == Show::data_text;
    }
};

/// Names: arg0 to arg5, the parameters' and fields' own, ret, duration, comm, pid, tid, uid, gid, cpu. Members through `kernel`'s
/// types, where the place's signature comes from them (nullptr: none can be). Errors: invalid_argument with a caret, and the
/// names that there are; not_found for a member, with the nearest.
[[nodiscard]] Result<Value> resolve_value(const Expression &expression, const Node &name, const ProbeSite &place,
                                          const btf::Btf *kernel);

} // namespace rawbpf::inline v0::trace
