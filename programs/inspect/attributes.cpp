// union bpf_attr has some 130 fields, and the header says of few what they are for. The places and sizes are those of
// runtime/sys/bpf_fields.h, by which --syscalls shows calls; here are the words, a line a field:
//
//      NAME SINCE MEANING
//
// Text rather than an array of structs: a pointer in a table costs a relocation, and this is read once. The versions are those in
// which a release first had the field (git log of include/uapi/linux/bpf.h, Linux 3.18 to 7.2). A unit test looks that each
// field has its line and each line its field.
#include "programs/inspect/attributes.h"

#include <algorithm>

#include <linux/bpf.h>

#include "runtime/sys/bpf_fields.h"
#include "runtime/sys/names.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::inspect {
namespace {

using sys::Field;
using sys::Show;

struct Page {
    std::string_view command; ///< SINCE MEANING
    std::string_view fields;
};

#define RAWBPF_MAP "map_fd 3.18 the map\n"
#define RAWBPF_BATCH                                                                                                             \
    RAWBPF_MAP "in_batch 5.6 where to go on: what out_batch was the last time; 0: at the beginning\n"                            \
               "out_batch 5.6 the kernel writes here where to go on: as many bytes as a key has, 4 at least\n"                   \
               "keys 5.6 the keys, one behind the other\n"                                                                       \
               "values 5.6 the values; of per-CPU maps one for each possible CPU, each rounded up to 8 bytes\n"                  \
               "count 5.6 in: how many there is room for; out: how many there are\n"                                             \
               "elem_flags 5.6 as flags of the command for one element\n"                                                        \
               "flags 5.6 none so far\n"
#define RAWBPF_NEXT                                                                                                              \
    "start_id 4.13 an id; 0: the beginning\n"                                                                                    \
    "next_id 4.13 out: the smallest id above it; ENOENT: there is none\n"                                                        \
    "open_flags 4.15 none that this command uses\n"
#define RAWBPF_BY_ID(name, version)                                                                                              \
    name " " version                                                                                                             \
         " the object's id\nopen_flags 4.15 BPF_F_RDONLY, BPF_F_WRONLY: what the descriptor may be used for; maps only\n"
#define RAWBPF_ATTACH                                                                                                            \
    "target_fd 4.10 the cgroup, socket map or other thing to attach to; target_ifindex, an interface's number, for tcx and "     \
    "netkit (6.6)\n"                                                                                                             \
    "attach_bpf_fd 4.10 the program\n"                                                                                           \
    "attach_type 4.10 how\n"                                                                                                     \
    "attach_flags 4.10 BPF_F_ALLOW_OVERRIDE, BPF_F_ALLOW_MULTI (4.15), BPF_F_REPLACE (5.6), BPF_F_BEFORE, BPF_F_AFTER, "         \
    "BPF_F_ID (6.6)\n"                                                                                                           \
    "replace_bpf_fd 5.6 with BPF_F_REPLACE: the program whose place it takes\n"                                                  \
    "relative_fd 6.6 with BPF_F_BEFORE or BPF_F_AFTER: the program or link that it stands beside\n"                              \
    "expected_revision 6.6 do it only while the list of programs has this revision; 0: in any case\n"

Page page_of(uint32_t command) {
    switch (command) {
    case BPF_MAP_CREATE:
        return {"3.18 makes a map; the result is its descriptor",
                "map_type 3.18 the kind of map (enum bpf_map_type)\n"
                "key_size 3.18 bytes of a key; 0 for maps without keys\n"
                "value_size 3.18 bytes of a value; 0 for rings\n"
                "max_entries 3.18 how many entries it has or may have; of a ring its size in bytes, a power of two\n"
                "map_flags 4.6 BPF_F_NO_PREALLOC and others\n"
                "inner_map_fd 4.12 for maps of maps: a map such as those that it will hold\n"
                "numa_node 4.14 with BPF_F_NUMA_NODE: where its memory comes from\n"
                "map_name 4.15 up to 15 letters, digits, _ and .\n"
                "map_ifindex 4.16 the interface that the map is offloaded to\n"
                "btf_fd 4.18 types of keys and values\n"
                "btf_key_type_id 4.18 the key's type in them\n"
                "btf_value_type_id 4.18 the value's\n"
                "btf_vmlinux_value_type_id 5.6 struct_ops: the type in the kernel's BTF\n"
                "map_extra 5.16 bloom filters: how many hash functions; arenas (6.9): where user space maps them; rhash (7.2): "
                "how many entries to expect\n"
                "value_type_btf_obj_fd 6.9 struct_ops of a module: the BTF of that module\n"
                "map_token_fd 6.9 with BPF_F_TOKEN_FD: a token that allows it\n"
                "excl_prog_hash 6.18 the hash of the only program that may use the map\n"
                "excl_prog_hash_size 6.18 its bytes\n"};
    case BPF_MAP_LOOKUP_ELEM:
    case BPF_MAP_LOOKUP_AND_DELETE_ELEM:
        return {command == BPF_MAP_LOOKUP_ELEM ? "3.18 reads the value of a key"
                                               : "4.20 takes an element out: of queues and stacks, and since 5.14 of hash maps",
                RAWBPF_MAP "key 3.18 address of the key\n"
                           "value 3.18 where the kernel writes the value\n"
                           "flags 5.1 BPF_F_LOCK: take the lock in the value; BPF_F_CPU (7.0): of one CPU\n"};
    case BPF_MAP_UPDATE_ELEM:
        return {"3.18 writes the value of a key", RAWBPF_MAP
                "key 3.18 address of the key\n"
                "value 3.18 address of the value\n"
                "flags 3.18 BPF_ANY, BPF_NOEXIST: only a new one, BPF_EXIST: only one that is there; BPF_F_LOCK (5.1)\n"};
    case BPF_MAP_DELETE_ELEM: return {"3.18 removes a key", RAWBPF_MAP "key 3.18 address of the key\n"};
    case BPF_MAP_GET_NEXT_KEY:
        return {"3.18 finds the key behind a key",
                RAWBPF_MAP "key 3.18 address of a key; 0 (4.12), or one that isn't there: the first one is wanted\n"
                           "next_key 3.18 where the kernel writes the next one; ENOENT: there is none\n"};
    case BPF_MAP_FREEZE: return {"5.2 makes a map read-only for user space, for good", "map_fd 5.2 the map\n"};
    case BPF_MAP_LOOKUP_BATCH: return {"5.6 reads many elements", RAWBPF_BATCH};
    case BPF_MAP_LOOKUP_AND_DELETE_BATCH: return {"5.6 reads many elements, and removes them", RAWBPF_BATCH};
    case BPF_MAP_UPDATE_BATCH: return {"5.6 writes many elements", RAWBPF_BATCH};
    case BPF_MAP_DELETE_BATCH: return {"5.6 removes many elements", RAWBPF_BATCH};
    case BPF_PROG_LOAD:
        return {
            "3.18 verifies a program; the result is its descriptor",
            "prog_type 3.18 the kind of program (enum bpf_prog_type): what its context is, and what it may call\n"
            "insn_cnt 3.18 how many instructions of 8 bytes\n"
            "insns 3.18 the instructions\n"
            "license 3.18 text; \"GPL\" and what is compatible with it allow more helpers\n"
            "log_level 3.18 1: what the verifier thinks; 2: more of it; 4: sums at the end (5.2); 0: nothing\n"
            "log_size 3.18 bytes of the log's buffer\n"
            "log_buf 3.18 where the verifier writes its log\n"
            "kern_version 4.1 kprobes: LINUX_VERSION_CODE; ignored since 5.0\n"
            "prog_flags 4.12 BPF_F_SLEEPABLE and others\n"
            "prog_name 4.15 up to 15 letters, digits, _ and .\n"
            "prog_ifindex 4.15 the interface that the program is offloaded to\n"
            "expected_attach_type 4.17 how it will be attached, for types where that matters to the verifier\n"
            "prog_btf_fd 5.0 types of its functions\n"
            "func_info_rec_size 5.0 bytes of a record of func_info\n"
            "func_info 5.0 where each function begins, and its type\n"
            "func_info_cnt 5.0 how many functions\n"
            "line_info_rec_size 5.0 bytes of a record of line_info\n"
            "line_info 5.0 source lines\n"
            "line_info_cnt 5.0 how many lines\n"
            "attach_btf_id 5.5 fentry, LSM, iterators ...: the function's type in the kernel's BTF\n"
            "attach_prog_fd 5.5 freplace, and fentry of a program: that program; attach_btf_obj_fd (5.11): the BTF of a module\n"
            "core_relo_cnt 5.17 how many CO-RE relocations the kernel is to resolve\n"
            "fd_array 5.14 maps and BTF that instructions name by their index in it\n"
            "core_relos 5.17 these relocations\n"
            "core_relo_rec_size 5.17 bytes of a record of core_relos\n"
            "log_true_size 6.4 out: bytes that the log has, or would have\n"
            "prog_token_fd 6.9 with BPF_F_TOKEN_FD: a token that allows it\n"
            "fd_array_cnt 6.14 how many there are in fd_array; the program then holds all of these maps\n"
            "signature 6.18 a signature of the instructions\n"
            "signature_size 6.18 its bytes\n"
            "keyring_id 6.18 the keyring with the key that it is checked by\n"};
    case BPF_OBJ_PIN:
    case BPF_OBJ_GET:
        return {command == BPF_OBJ_PIN ? "4.4 gives a program, map or link a path in a bpf file system"
                                       : "4.4 opens what is pinned at a path",
                "pathname 4.4 the path\n"
                "bpf_fd 4.4 what is pinned; 0 for BPF_OBJ_GET\n"
                "file_flags 4.15 BPF_F_RDONLY, BPF_F_WRONLY; BPF_F_PATH_FD (6.5)\n"
                "path_fd 6.5 with BPF_F_PATH_FD: the directory that the path begins at\n"};
    case BPF_PROG_ATTACH:
        return {"4.10 attaches a program without a link: it stays until it is detached or its target goes", RAWBPF_ATTACH};
    case BPF_PROG_DETACH: return {"4.10 detaches such a program", RAWBPF_ATTACH};
    case BPF_PROG_TEST_RUN:
        return {"4.12 runs a program once or more often, on data from user space",
                "prog_fd 4.12 the program\n"
                "retval 4.12 out: what it returned, 32 bits\n"
                "data_size_in 4.12 bytes of the packet\n"
                "data_size_out 4.12 in: room for the packet afterwards; out: its size\n"
                "data_in 4.12 the packet\n"
                "data_out 4.12 where the kernel writes the packet afterwards\n"
                "repeat 4.12 how often; 0 is once\n"
                "duration 4.12 out: ns that a run took, on average\n"
                "ctx_size_in 5.2 bytes of the context\n"
                "ctx_size_out 5.2 in: room for the context afterwards; out: its size\n"
                "ctx_in 5.2 the context: struct __sk_buff, struct xdp_md (5.14), arguments of a raw tracepoint (5.10)\n"
                "ctx_out 5.2 where the kernel writes the context afterwards\n"
                "flags 5.10 BPF_F_TEST_RUN_ON_CPU; BPF_F_TEST_XDP_LIVE_FRAMES (5.18)\n"
                "cpu 5.10 with BPF_F_TEST_RUN_ON_CPU: where\n"
                "batch_size 5.18 with BPF_F_TEST_XDP_LIVE_FRAMES: packets at a time\n"};
    case BPF_PROG_GET_NEXT_ID: return {"4.13 lists programs", RAWBPF_NEXT};
    case BPF_MAP_GET_NEXT_ID: return {"4.13 lists maps", RAWBPF_NEXT};
    case BPF_BTF_GET_NEXT_ID: return {"5.4 lists loaded types", RAWBPF_NEXT};
    case BPF_LINK_GET_NEXT_ID: return {"5.8 lists links", RAWBPF_NEXT};
    case BPF_PROG_GET_FD_BY_ID: return {"4.13 opens a program by its id", RAWBPF_BY_ID("prog_id", "4.13")};
    case BPF_MAP_GET_FD_BY_ID: return {"4.13 opens a map by its id", RAWBPF_BY_ID("map_id", "4.13")};
    case BPF_BTF_GET_FD_BY_ID: return {"4.18 opens loaded types by their id", RAWBPF_BY_ID("btf_id", "4.18")};
    case BPF_LINK_GET_FD_BY_ID: return {"5.8 opens a link by its id", RAWBPF_BY_ID("link_id", "5.8")};
    case BPF_OBJ_GET_INFO_BY_FD:
        return {
            "4.13 says what is known of a program, map, link or BTF",
            "bpf_fd 4.13 the object\n"
            "info_len 4.13 in: room for the answer; out: its size\n"
            "info 4.13 where the kernel writes struct bpf_prog_info, bpf_map_info, bpf_btf_info (4.18) or bpf_link_info (5.8)\n"};
    case BPF_PROG_QUERY:
        return {"4.15 lists what is attached to a cgroup, an interface or a network namespace",
                "target_fd 4.15 where; target_ifindex, an interface's number, for tcx and netkit (6.6)\n"
                "attach_type 4.15 of which type of attachment\n"
                "query_flags 4.15 BPF_F_QUERY_EFFECTIVE: also what parent cgroups bring\n"
                "attach_flags 4.15 out: how they were attached\n"
                "prog_ids 4.15 where the kernel writes the programs' ids\n"
                "prog_cnt 4.15 in: how many there is room for; out: how many there are\n"
                "prog_attach_flags 6.0 where the kernel writes the flags of each\n"
                "link_ids 6.6 where the kernel writes the links' ids; 0 where there is none\n"
                "link_attach_flags 6.6 where the kernel writes their flags\n"
                "revision 6.6 out: grows with each change of the list\n"};
    case BPF_RAW_TRACEPOINT_OPEN:
        return {"4.17 attaches a program to a raw tracepoint, or where it was loaded for (fentry, LSM; 5.5)",
                "name 4.17 the tracepoint; 0: the program knows where\n"
                "prog_fd 4.17 the program\n"
                "cookie 6.10 a number that the program can ask for\n"};
    case BPF_BTF_LOAD:
        return {"4.18 loads types; the result is their descriptor",
                "btf 4.18 the types\n"
                "btf_log_buf 4.18 where the kernel says what is wrong with them\n"
                "btf_size 4.18 bytes of the types\n"
                "btf_log_size 4.18 bytes of the log's buffer\n"
                "btf_log_level 4.18 0: no log\n"
                "btf_log_true_size 6.4 out: bytes that the log has, or would have\n"
                "btf_flags 6.9 BPF_F_TOKEN_FD\n"
                "btf_token_fd 6.9 a token that allows it\n"};
    case BPF_TASK_FD_QUERY:
        return {"4.18 says which program a process's perf event or raw tracepoint runs",
                "pid 4.18 the process\n"
                "fd 4.18 its descriptor\n"
                "flags 4.18 none so far\n"
                "buf_len 4.18 in: room for the name; out: its length\n"
                "buf 4.18 where the kernel writes the name: the tracepoint, the function, the file\n"
                "prog_id 4.18 out: the program\n"
                "fd_type 4.18 out: enum bpf_task_fd_type: tracepoint, kprobe, uprobe ...\n"
                "probe_offset 4.18 out: behind the function's or file's beginning\n"
                "probe_addr 4.18 out: the address, of kprobes\n"};
    case BPF_LINK_CREATE:
        return {"5.7 attaches a program; the result is a link, which detaches it when its last descriptor and pin go",
                "prog_fd 5.7 the program\n"
                "map_fd 6.4 struct_ops: the map\n"
                "target_fd 5.7 the cgroup, network namespace, perf event (5.15) or program to attach to\n"
                "target_ifindex 5.9 xdp, tcx (6.6), netkit (6.7): the interface's number\n"
                "attach_type 5.7 how (enum bpf_attach_type)\n"
                "flags 5.7 XDP_FLAGS_...; BPF_F_BEFORE, BPF_F_AFTER (6.6)\n"
                "relative_fd 6.6 tcx, netkit, cgroups (6.17): the program or link that it stands beside\n"
                "expected_revision 6.6 attach only while the list has this revision; 0: in any case\n"
                "perf_event.bpf_cookie 5.15 a number that the program can ask for\n"
                "tracing.target_btf_id 5.10 freplace: the function in the target's BTF\n"
                "tracing.cookie 5.19 a number that the program can ask for\n"
                "iter_info 5.9 iterators: which map, task or cgroup (union bpf_iter_link_info)\n"
                "iter_info_len 5.9 its bytes\n"
                "kprobe_multi.flags 5.18 BPF_F_KPROBE_MULTI_RETURN: at the functions' ends\n"
                "kprobe_multi.cnt 5.18 how many functions\n"
                "kprobe_multi.syms 5.18 their names; or\n"
                "kprobe_multi.addrs 5.18 their addresses\n"
                "kprobe_multi.cookies 5.18 a number for each\n"
                "uprobe_multi.path 6.6 the file\n"
                "uprobe_multi.offsets 6.6 places in it\n"
                "uprobe_multi.ref_ctr_offsets 6.6 semaphores of USDT probes, in the file\n"
                "uprobe_multi.cookies 6.6 a number for each place\n"
                "uprobe_multi.cnt 6.6 how many places\n"
                "uprobe_multi.flags 6.6 BPF_F_UPROBE_MULTI_RETURN; BPF_F_UPROBE_MULTI_PATH_FD\n"
                "uprobe_multi.pid 6.6 in this process only; 0: in all\n"
                "uprobe_multi.path_fd 7.2 with BPF_F_UPROBE_MULTI_PATH_FD: the file as a descriptor\n"
                "tracing_multi.ids - functions, by their types in BTF\n"
                "tracing_multi.cookies - a number for each\n"
                "tracing_multi.cnt - how many functions\n"
                "netfilter.pf 6.4 NFPROTO_IPV4 or NFPROTO_IPV6\n"
                "netfilter.hooknum 6.4 NF_INET_PRE_ROUTING and others\n"
                "netfilter.priority 6.4 smaller ones run first\n"
                "netfilter.flags 6.4 BPF_F_NETFILTER_IP_DEFRAG (6.6): whole packets only\n"};
    case BPF_LINK_UPDATE:
        return {"5.7 gives a link another program", "link_fd 5.7 the link\n"
                                                    "new_prog_fd 5.7 its new program; struct_ops (6.4): new_map_fd, its new map\n"
                                                    "flags 5.7 BPF_F_REPLACE: only if old_prog_fd is what it has\n"
                                                    "old_prog_fd 5.7 what it has to have\n"};
    case BPF_LINK_DETACH: return {"5.9 detaches a link, though descriptors of it are open", "link_fd 5.9 the link\n"};
    case BPF_ITER_CREATE:
        return {"5.8 opens what an iterator prints; read(2) runs it", "link_fd 5.8 the iterator's link\nflags 5.8 none so far\n"};
    case BPF_ENABLE_STATS:
        return {"5.8 counts the runs and the time of all programs while the descriptor is open", "type 5.8 BPF_STATS_RUN_TIME\n"};
    case BPF_PROG_BIND_MAP:
        return {"5.10 makes a program hold a map that it doesn't use",
                "prog_fd 5.10 the program\nmap_fd 5.10 the map\nflags 5.10 none so far\n"};
    case uapi::BPF_TOKEN_CREATE:
        return {"6.9 makes a token of a bpf file system's mount: what its holder may do without capabilities",
                "flags 6.9 none so far\nbpffs_fd 6.9 the root of the bpf file system\n"};
    case uapi::BPF_PROG_STREAM_READ_BY_FD:
        return {"6.17 reads what a program printed for user space", "stream_buf 6.17 where the kernel writes it\n"
                                                                    "stream_buf_len 6.17 room for it\n"
                                                                    "stream_id 6.17 1: standard output, 2: standard error\n"
                                                                    "prog_fd 6.17 the program\n"};
    case uapi::BPF_PROG_ASSOC_STRUCT_OPS:
        return {"7.0 says which struct_ops a program works for", "map_fd 7.0 the struct_ops map\n"
                                                                 "prog_fd 7.0 the program\n"
                                                                 "flags 7.0 none so far\n"};
    default: return {};
    }
}

#undef RAWBPF_MAP
#undef RAWBPF_BATCH
#undef RAWBPF_NEXT
#undef RAWBPF_BY_ID
#undef RAWBPF_ATTACH

std::string_view kind_of(const Field &field) {
    switch (field.show) {
    case Show::fd: return "descriptor";
    case Show::number:
    case Show::signed_number: return "number";
    case Show::map_type:
    case Show::prog_type:
    case Show::attach_type:
    case Show::stats_type: return "enum";
    case Show::map_flags:
    case Show::prog_flags:
    case Show::update_flags:
    case Show::log_level: return "flags";
    case Show::characters: return "text";
    default: return "address";
    }
}

/// The first word of the text, which is taken off it.
std::string_view word_of(std::string_view &text) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    return word;
}

/// "SINCE MEANING" of a field; empty: the page has none.
std::string_view line_of(std::string_view page, std::string_view field) {
    while (!page.empty()) {
        std::string_view line = page.substr(0, page.find('\n'));
        page.remove_prefix(std::min(line.size() + 1, page.size()));
        if (word_of(line) == field) return line;
    }
    return {};
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

} // namespace

uint32_t attribute_commands() {
    uint32_t n = 0;
    while (sys::command_name(n).starts_with("BPF_")) ++n;
    return n;
}

AttributeCommand attribute_command(uint32_t command) {
    std::string_view text = page_of(command).command;
    const std::string_view since = word_of(text);
    return {since, text};
}

std::vector<AttributeField> attribute_fields(uint32_t command) {
    const Page page = page_of(command);
    std::vector<AttributeField> out;
    const uint32_t types = command == BPF_LINK_CREATE ? 128 : 1; // attach types there may be
    for (uint32_t type = 0; type < types; ++type)
        for (const Field &field : sys::fields_of(command, type)) {
            if (std::any_of(out.begin(), out.end(), [&](const AttributeField &one) { return one.name == field.name; })) continue;
            std::string_view text = line_of(page.fields, field.name);
            const std::string_view since = word_of(text);
            out.push_back({field.name, field.offset, field.size, kind_of(field), since, text});
        }
    std::stable_sort(out.begin(), out.end(),
                     [](const AttributeField &a, const AttributeField &b) { return a.offset < b.offset; });
    return out;
}

std::vector<std::string_view> attribute_words_left(uint32_t command) {
    const std::vector<AttributeField> fields = attribute_fields(command);
    std::vector<std::string_view> out;
    for (std::string_view page = page_of(command).fields; !page.empty();) {
        std::string_view line = page.substr(0, page.find('\n'));
        page.remove_prefix(std::min(line.size() + 1, page.size()));
        const std::string_view name = word_of(line);
        if (std::none_of(fields.begin(), fields.end(), [&](const AttributeField &field) { return field.name == name; }))
            out.push_back(name);
    }
    return out;
}

std::optional<uint32_t> attribute_command_named(std::string_view word) {
    for (uint32_t command = 0; command < attribute_commands(); ++command) {
        const std::string name = sys::command_name(command);
        const auto same = [&](std::string_view with) {
            return std::equal(word.begin(), word.end(), with.begin(), with.end(),
                              [](char a, char b) { return lower(a) == lower(b); });
        };
        if (same(name) || same(std::string_view(name).substr(4)) || word == std::to_string(command)) return command;
    }
    return std::nullopt;
}

} // namespace rawbpf::inline v0::inspect
