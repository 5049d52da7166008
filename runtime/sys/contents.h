// Memory of this process as text: the data that system calls get by address. Part of describe.cpp.
//
// An address may be wrong on purpose (probes of features pass such addresses), so nothing is read through a pointer:
// process_vm_readv(2) on this process says how much of the memory exists. If that call is forbidden or unknown, the bytes are
// written to a pipe: write(2) says it, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::sys {

/// How much of it is shown.
struct Bounds {
    size_t text = 96, bytes = 32, items = 4;
    bool lines = false; ///< instructions and logs one to a line
};
inline constexpr Bounds kFew{}, kAll{1 << 20, 1 << 20, 1 << 20, true};

/// So many of the bytes at `address` as can be read: all, or those up to the first page that can't.
[[nodiscard]] std::vector<std::byte> own_memory(uint64_t address, size_t size);
/// The same by write(2) to a pipe and read(2), for where process_vm_readv(2) can't be had: how many bytes, or -errno.
[[nodiscard]] long own_memory_by_pipe(uint64_t address, std::span<std::byte> out);
/// The text there, up to its NUL; `most` bytes of it at most.
[[nodiscard]] std::string own_string(uint64_t address, size_t most);

/// [a, b, ... 8 in all]: `item(i)` for each of `count`, or for the first ones. PURE, as `item` is.
[[nodiscard]] std::string list_text(size_t count, std::string_view between, const Bounds &bounds,
                                    const std::function<std::string(size_t)> &item);
/// Without anything that would disturb a terminal, and at most `most` bytes of it: x\"y\x1b. PURE.
[[nodiscard]] std::string escaped(std::string_view text, size_t most);
/// The same in quotes; behind them "..." where it was cut. PURE.
[[nodiscard]] std::string quoted(std::string_view text, size_t most = kFew.text);
/// [3], of one number of 1, 2, 4 or 8 bytes; "\x01\x00..." of anything else. PURE.
[[nodiscard]] std::string bytes_text(Bytes bytes, const Bounds &bounds);
/// [1, 2, 3, 4, ... 8 in all], of numbers of 4 or 8 bytes. PURE.
[[nodiscard]] std::string numbers_text(Bytes bytes, size_t size, bool hex, const Bounds &bounds);
/// [{0, 7}, {3, 9}], of records that consist of numbers of 4 bytes. PURE.
[[nodiscard]] std::string records_text(Bytes bytes, size_t record, const Bounds &bounds);
/// [r6 = r1; r0 = 0; exit], in LLVM's notation. PURE.
[[nodiscard]] std::string instructions_text(Bytes bytes, const Bounds &bounds);
/// The verifier's log: quoted, or a line for each of its own. PURE.
[[nodiscard]] std::string log_text(std::string_view log, const Bounds &bounds);
/// {types=4711 bytes, strings=815 bytes}, from the header of BTF. PURE.
[[nodiscard]] std::string btf_text(Bytes bytes);

} // namespace rawbpf::inline v0::sys
