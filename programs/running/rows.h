// The kernel's objects as rows: everything that listings show of one, asked once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "programs/render/json_line.h"
#include "programs/running/holders.h"
#include "programs/running/names.h"
#include "runtime/base/result.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/link_info.h"

namespace rawbpf::inline v0::running {

/// A program.
struct ProgramRow {
    sys::ProgInfo info;
    std::string name;                ///< whole; empty: it has none
    std::vector<uint32_t> maps;      ///< ids
    std::optional<uint64_t> memlock; ///< bytes that it takes, by fdinfo
    std::string target;              ///< the function that it was loaded for (fentry, LSM, freplace), if any
    bool orphaned = false;           ///< the device that it was loaded into has gone: the kernel says nothing more of it
};
/// A map.
struct MapRow {
    sys::MapInfo info;
    std::string name;
    std::optional<uint64_t> memlock;
    std::optional<uint64_t> owner_type, owner_jited; ///< of a prog array that has an owner
    bool frozen = false;
};
/// A link.
struct LinkRow {
    sys::LinkDetails details;
    std::string program;             ///< its name
    uint32_t program_type = 0;       ///< of tracing and raw tracepoint links
    std::vector<std::string> places; ///< .multi kprobes: the functions' names
    std::string target;              ///< tracing: the function; cgroup: its path; xdp, tcx, netkit: the interface's name
    std::string what;                ///< one phrase: "xdp on eth0"
};
/// Loaded BTF.
struct BtfRow {
    sys::BtfInfo info;
    std::string name;                     ///< of the kernel's own: "vmlinux" or a module's
    std::vector<uint32_t> programs, maps; ///< that use it: ids
};

/// The row of one object. `fdinfo`: also what only /proc/self/fdinfo says, which takes as long as all the rest. Errors: the
/// kernel's.
///@{
[[nodiscard]] Result<ProgramRow> program_row(int fd, Names &names, bool fdinfo);
[[nodiscard]] Result<MapRow> map_row(int fd, bool fdinfo);
[[nodiscard]] Result<LinkRow> link_row(int fd, Names &names);
[[nodiscard]] Result<BtfRow> btf_row(int fd);
///@}
/// Fills in who uses each BTF: one pass over all programs and maps.
[[nodiscard]] Result<void> find_users(std::vector<BtfRow> &rows);

/// What stands beside the rows in a listing.
struct Around {
    Names names;
    Holders holders;
    PinnedPaths pins;
};

/// Who holds it, in a few words: "rawbpf[123], /sys/fs/bpf/x".
[[nodiscard]] std::string held_by(const Around &around, sys::ObjectKind kind, uint32_t id);
/// The same whole, as the fields "pinned" and "pids".
void append_holders_json(render::JsonObject &line, const Around &around, sys::ObjectKind kind, uint32_t id);

/// Rows as text: a line each, in columns with a heading.
///@{
[[nodiscard]] std::string as_list(const std::vector<ProgramRow> &rows, Around &around);
[[nodiscard]] std::string as_list(const std::vector<MapRow> &rows, Around &around);
[[nodiscard]] std::string as_list(const std::vector<LinkRow> &rows, Around &around);
[[nodiscard]] std::string as_list(const std::vector<BtfRow> &rows, Around &around);
///@}
/// One object with all that is known of it, a line a property.
///@{
void append_details(std::string &out, const ProgramRow &row, Around &around);
void append_details(std::string &out, const MapRow &row, Around &around);
void append_details(std::string &out, const LinkRow &row, Around &around);
void append_details(std::string &out, const BtfRow &row, Around &around);
///@}
/// {"type":"prog"|"map"|"link"|"btf","id",...}: bpftool's field names where they mean the same; its "type" is prog_type, map_type
/// and link_type here. Unknown is null.
///@{
void append_json(std::string &out, const ProgramRow &row, Around &around);
void append_json(std::string &out, const MapRow &row, Around &around);
void append_json(std::string &out, const LinkRow &row, Around &around);
void append_json(std::string &out, const BtfRow &row, Around &around);
///@}

} // namespace rawbpf::inline v0::running
