// Names of the kernel's numbers.
//
// Types of maps, programs, attachments and links are those of asm/map_types.h and asm/kinds.h. The commands are one text, in the
// kernel's order, separated by blanks: an array of pointers would cost a relocation a name in a position-independent binary, and
// nobody looks them up in a hurry. The order is that of include/uapi/linux/bpf.h of Linux 7.2; a new name is added at the end.
#include "runtime/sys/names.h"

#include "asm/kinds.h"
#include "runtime/base/format.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::sys {
namespace {

constexpr std::string_view kCommands =
    "MAP_CREATE MAP_LOOKUP_ELEM MAP_UPDATE_ELEM MAP_DELETE_ELEM MAP_GET_NEXT_KEY PROG_LOAD OBJ_PIN OBJ_GET "
    "PROG_ATTACH PROG_DETACH PROG_TEST_RUN PROG_GET_NEXT_ID MAP_GET_NEXT_ID PROG_GET_FD_BY_ID MAP_GET_FD_BY_ID "
    "OBJ_GET_INFO_BY_FD PROG_QUERY RAW_TRACEPOINT_OPEN BTF_LOAD BTF_GET_FD_BY_ID TASK_FD_QUERY "
    "MAP_LOOKUP_AND_DELETE_ELEM MAP_FREEZE BTF_GET_NEXT_ID MAP_LOOKUP_BATCH MAP_LOOKUP_AND_DELETE_BATCH "
    "MAP_UPDATE_BATCH MAP_DELETE_BATCH LINK_CREATE LINK_UPDATE LINK_GET_FD_BY_ID LINK_GET_NEXT_ID ENABLE_STATS "
    "ITER_CREATE LINK_DETACH PROG_BIND_MAP TOKEN_CREATE PROG_STREAM_READ_BY_FD PROG_ASSOC_STRUCT_OPS";
// A number that the table doesn't have is shown as it is.
std::string named(std::string_view prefix, std::string_view name, uint32_t number) {
    return name == "?" ? format("{}", number) : format("{}{}", prefix, name);
}

std::string nth(std::string_view prefix, std::string_view words, uint32_t n) {
    std::string_view rest = words;
    for (uint32_t i = 0; i < n && !rest.empty(); ++i) {
        size_t blank = rest.find(' ');
        rest = blank == std::string_view::npos ? std::string_view() : rest.substr(blank + 1);
    }
    if (rest.empty()) return format("{}", n);
    std::string out(prefix);
    out += rest.substr(0, rest.find(' '));
    return out;
}

// As numbers, not by the headers' names: the same bits on every header.
constexpr FlagName kMapFlags[] = {
    {1U << 0, "BPF_F_NO_PREALLOC"},   {1U << 1, "BPF_F_NO_COMMON_LRU"},
    {1U << 2, "BPF_F_NUMA_NODE"},     {1U << 3, "BPF_F_RDONLY"},
    {1U << 4, "BPF_F_WRONLY"},        {1U << 5, "BPF_F_STACK_BUILD_ID"},
    {1U << 6, "BPF_F_ZERO_SEED"},     {1U << 7, "BPF_F_RDONLY_PROG"},
    {1U << 8, "BPF_F_WRONLY_PROG"},   {1U << 9, "BPF_F_CLONE"},
    {1U << 10, "BPF_F_MMAPABLE"},     {1U << 11, "BPF_F_PRESERVE_ELEMS"},
    {1U << 12, "BPF_F_INNER_MAP"},    {1U << 13, "BPF_F_LINK"},
    {1U << 14, "BPF_F_PATH_FD"},      {1U << 15, "BPF_F_VTYPE_BTF_OBJ_FD"},
    {1U << 16, "BPF_F_TOKEN_FD"},     {1U << 17, "BPF_F_SEGV_ON_FAULT"},
    {1U << 18, "BPF_F_NO_USER_CONV"}, {1U << 19, "BPF_F_RB_OVERWRITE"},
};
constexpr FlagName kUpdateFlags[] = {
    {1, "BPF_NOEXIST"}, {2, "BPF_EXIST"}, {4, "BPF_F_LOCK"}, {8, "BPF_F_CPU"}, {16, "BPF_F_ALL_CPUS"}};
constexpr FlagName kProgFlags[] = {
    {1U << 0, "BPF_F_STRICT_ALIGNMENT"},   {1U << 1, "BPF_F_ANY_ALIGNMENT"},       {1U << 2, "BPF_F_TEST_RND_HI32"},
    {1U << 3, "BPF_F_TEST_STATE_FREQ"},    {1U << 4, "BPF_F_SLEEPABLE"},           {1U << 5, "BPF_F_XDP_HAS_FRAGS"},
    {1U << 6, "BPF_F_XDP_DEV_BOUND_ONLY"}, {1U << 7, "BPF_F_TEST_REG_INVARIANTS"}, {1U << 16, "BPF_F_TOKEN_FD"},
};

} // namespace

std::string command_name(uint32_t command) { return nth("BPF_", kCommands, command); }
std::string map_type_name(uint32_t type) { return named("BPF_MAP_TYPE_", v0::map_type_name(type), type); }
std::string prog_type_name(uint32_t type) { return named("BPF_PROG_TYPE_", v0::program_type_name(type), type); }
std::string attach_type_name(uint32_t type) { return named("BPF_", v0::attach_type_name(type), type); }
std::string link_type_name(uint32_t type) { return named("BPF_LINK_TYPE_", v0::link_type_name(type), type); }

std::string flag_names(uint64_t flags, std::span<const FlagName> names) {
    if (flags == 0) return "0";
    std::string out;
    for (const FlagName &flag : names) {
        if ((flags & flag.value) != flag.value) continue;
        if (!out.empty()) out += '|';
        out += flag.name;
        flags &= ~flag.value;
    }
    if (flags != 0) append(out, "{}{:#x}", out.empty() ? "" : "|", flags);
    return out;
}

std::string map_flag_names(uint64_t flags) { return flag_names(flags, kMapFlags); }
std::string update_flag_names(uint64_t flags) { return flags == 0 ? "BPF_ANY" : flag_names(flags, kUpdateFlags); }
std::string prog_flag_names(uint64_t flags) { return flag_names(flags, kProgFlags); }

} // namespace rawbpf::inline v0::sys
