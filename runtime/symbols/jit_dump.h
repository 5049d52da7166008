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
//        3 close
//        4 unwinding        bytes of .eh_frame and .eh_frame_hdr, of the latter, mapped, .eh_frame, .eh_frame_hdr; of the load that
//                           follows, behind whose code (in whole words) .eh_frame would lie
//
// The code itself isn't read. Written by V8 (node --perf-prof), the JVM's agent libperf-jvmti, CPython 3.13 (-X perf_jit), PHP's
// and wasmtime's compilers, .NET.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
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
    /// What the runtime wrote of how frames are left.
    struct Unwinding {
        Bytes eh_frame;       ///< the section's bytes
        uint64_t address = 0; ///< where it would lie
    };
    /// Of the function that was the last to be made at an address; nullopt: it has none. Good until more is read.
    [[nodiscard]] std::optional<Unwinding> unwinding(uint64_t address) const;
    /// Whether any function between these addresses has it.
    [[nodiscard]] bool has_unwinding(uint64_t start, uint64_t end) const;

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
    void take_unwinding(Bytes record);
    void unwind_by(uint64_t address, uint64_t size, std::string eh_frame);
    [[nodiscard]] std::vector<CompiledCode::Line> lines_of(uint64_t address, uint64_t size, std::string_view name);

    CompiledCode code_;
    uint64_t offset_ = 0;
    bool begun_ = false, ended_ = false;
    bool own_clock_ = false;      ///< its times are the processor's, not CLOCK_MONOTONIC
    uint64_t lines_at_ = 0;       ///< whose `sources_` are
    std::vector<Source> sources_; ///< of the next function
    struct Made {
        uint64_t size;
        std::string eh_frame;
    };
    std::map<uint64_t, Made> unwinding_; ///< by address; none lies in another
    size_t unwinding_bytes_ = 0;         ///< that they take
    std::string next_unwinding_;         ///< of the next function
};

/// Whether a file of that name may be one: "jit-4711.dump".
[[nodiscard]] bool is_jit_dump_name(std::string_view path);

} // namespace rawbpf::inline v0::symbols
