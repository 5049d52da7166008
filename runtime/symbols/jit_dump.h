// SPDX-License-Identifier: MIT
// jit-PID.dump: what a just-in-time compiler has made, with times and lines.
//
// A runtime that writes one maps its first page as code, only so that profilers learn of the file (linux:
// tools/perf/Documentation/jitdump-specification.txt). It appends a record for each function:
//
//      header 40 bytes   magic, version, size, machine, pad, pid, time, flags
//      record            type u32 | bytes u32 | time u64 | ...
//        0 load          pid, tid, address, code address, size, index, name NUL, the code itself
//        1 move          ..., old address, new address, size, index
//        2 lines         address, count, { address, line, column, file NUL } ...; of the load that follows
//        3 close, 4 unwinding information
//
// The code itself isn't read. Written by V8 (node --perf-prof), the JVM's agent libperf-jvmti, CPython 3.13 (-X perf_jit), PHP's
// and wasmtime's compilers, .NET.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/symbols/compiled_code.h"

namespace rawbpf::inline v0::symbols {

/// A jitdump, read as far as it was written.
class JitDump {
  public:
    /// Takes what the runtime has appended since the last call, which was at `since_ns` (0: this is the first one; asked for
    /// where the file's times are the processor's own). True: there was something new. Errors: bad_input where the file is no
    /// jitdump of this machine's byte order, is damaged (the message says at which byte), or its names take more than 48 MiB;
    /// then nothing more is read of it, and what was read stays.
    [[nodiscard]] Result<bool> read_more(const Fd &file, uint64_t since_ns);
    /// The same of bytes that begin at offset() (PURE). Those that belong to a record which isn't whole are left: read again with
    /// more behind them.
    [[nodiscard]] Result<void> take(Bytes bytes, uint64_t since_ns);
    [[nodiscard]] uint64_t offset() const { return offset_; } ///< of the file: up to there it was taken
    /// What was read.
    [[nodiscard]] const CompiledCode &code() const { return code_; }

    static constexpr size_t kPiece = 256 << 10; ///< bytes; lines of one function that take more are passed over

  private:
    struct Source {
        uint64_t address;
        uint32_t line;
        std::string file; ///< empty: not known
    };
    [[nodiscard]] Result<void> header(Bytes bytes);
    void load_function(Bytes record, uint64_t since_ns);
    void move_function(Bytes record, uint64_t since_ns);
    void take_lines(Bytes record);
    [[nodiscard]] std::vector<CompiledCode::Line> lines_of(uint64_t address, uint64_t size, std::string_view name);

    CompiledCode code_;
    uint64_t offset_ = 0;
    bool begun_ = false, ended_ = false;
    bool own_clock_ = false;      ///< its times are the processor's, not CLOCK_MONOTONIC
    uint64_t lines_at_ = 0;       ///< whose `sources_` are
    std::vector<Source> sources_; ///< of the next function
};

/// Whether a file of that name may be one: "jit-4711.dump".
[[nodiscard]] bool is_jit_dump_name(std::string_view path);

} // namespace rawbpf::inline v0::symbols
