// Finds a program, map, BTF or link by what people and scripts have of it.
//
//      47                   BPF_*_GET_FD_BY_ID
//      /sys/fs/bpf/x        BPF_OBJ_GET, which opens pins of every kind: so the descriptor is asked what it is
//      on_exec              every object is opened and asked for its name
//
// What a descriptor is stands in /proc: the link's text says the kind, fdinfo the id.
#include "runtime/kernel/find_object.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/fail.h"
#include "runtime/base/numbers.h"
#include "runtime/kernel/each_object.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0 {
namespace {

using sys::ObjectKind;

struct KindRow {
    ObjectKind kind;
    std::string_view link, id;
};
constexpr KindRow kKinds[] = {
    {ObjectKind::program, "anon_inode:bpf-prog", "prog_id"}, {ObjectKind::map, "anon_inode:bpf-map", "map_id"},
    {ObjectKind::btf, "anon_inode:btf", "btf_id"},           {ObjectKind::link, "anon_inode:bpf_link", "link_id"},
    {ObjectKind::link, "anon_inode:bpf-link", "link_id"}, // 5.7
};

std::string text_of(const char (&name)[16]) { return std::string(name, strnlen(name, sizeof name)); }

Result<std::string> own_link(int fd) { return sys::read_link(format("/proc/self/fd/{}", fd)); }

Result<Fd> find_pinned(ObjectKind kind, const std::string &path) {
    Fd pinned = TRY(sys::obj_get(path));
    const std::string link = TRY(own_link(pinned.get()));
    if (kind_of_link(link) == kind) return pinned;
    // Another kind would answer the next question in its own struct.
    return fail(Errc::invalid_argument, "{}: isn't a {}, but {}", path, object_word(kind), link);
}

std::string_view lister(ObjectKind kind) {
    constexpr std::string_view kWords[] = {"prog", "map", "btf", "link"};
    return kWords[static_cast<int>(kind)];
}

} // namespace

std::string_view object_word(ObjectKind kind) {
    constexpr std::string_view kWords[] = {"program", "map", "BTF", "link"};
    return kWords[static_cast<int>(kind)];
}

Result<std::string> object_name(ObjectKind kind, int fd) {
    if (kind == ObjectKind::link) return std::string();
    if (kind == ObjectKind::program) return text_of(TRY(sys::prog_info(fd)).name);
    if (kind == ObjectKind::map) return text_of(TRY(sys::map_info(fd)).name);
    char name[64] = {};
    sys::BtfInfo info;
    info.name = sys::reg(name);
    info.name_len = sizeof name;
    TRY(sys::obj_get_info(fd, &info, sizeof info));
    return std::string(name, strnlen(name, sizeof name));
}

Result<Fd> find_object(ObjectKind kind, const std::string &which) {
    const std::string_view word = object_word(kind);
    if (which.find('/') != std::string::npos) return find_pinned(kind, which);
    const std::string ways = format("give its name, its id (rawbpf {} list) or the path of a pin", lister(kind));
    if (uint32_t id = 0; parse_whole(which, id)) {
        Result<Fd> found = sys::fd_by_id(kind, id);
        if (!found && found.error().os == ENOENT)
            return Unexpected(make_error(Errc::not_found, format("no {} has the id {}", word, id),
                                         format("rawbpf {} list shows which there are", lister(kind))));
        return found;
    }
    if (kind == ObjectKind::link)
        return Unexpected(make_error(Errc::invalid_argument, format("a link has no name, so {} can't name one", which),
                                     "give the id of a link (rawbpf link list) or the path of a pin"));
    char legal[16];
    sys::legal_name(which, legal);
    const std::string wanted = kind == ObjectKind::btf ? which : text_of(legal);
    std::vector<std::pair<uint32_t, Fd>> found;
    TRY(each_object(kind, [&](uint32_t number, Fd object) -> Result<bool> {
        if (!wanted.empty() && TRY(object_name(kind, object.get())) == wanted) found.emplace_back(number, std::move(object));
        return true;
    }));
    if (found.empty()) return Unexpected(make_error(Errc::not_found, format("no {} called {} is loaded", word, which), ways));
    if (found.size() == 1) return std::move(found.front().second);
    std::string ids;
    for (const auto &[number, fd] : found) append(ids, "{}{}", ids.empty() ? "" : ", ", number);
    return fail(Errc::invalid_argument, "{} {}s are called {}; name one by its id: {}", found.size(), word, which, ids);
}

std::optional<uint64_t> fdinfo_number(std::string_view fdinfo, std::string_view name) {
    for (size_t at = 0; at < fdinfo.size();) {
        const size_t end = std::min(fdinfo.find('\n', at), fdinfo.size());
        std::string_view line = fdinfo.substr(at, end - at);
        at = end + 1;
        if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':') continue;
        line.remove_prefix(name.size() + 1);
        while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
        uint64_t out = 0;
        if (std::from_chars(line.data(), line.data() + line.size(), out).ec != std::errc()) return std::nullopt;
        return out;
    }
    return std::nullopt;
}

std::optional<ObjectKind> kind_of_link(std::string_view link) {
    for (const KindRow &row : kKinds)
        if (row.link == link) return row.kind;
    return std::nullopt;
}

std::optional<ObjectId> object_in_fdinfo(std::string_view link, std::string_view fdinfo) {
    for (const KindRow &row : kKinds)
        if (row.link == link)
            if (const std::optional<uint64_t> id = fdinfo_number(fdinfo, row.id))
                return ObjectId{row.kind, static_cast<uint32_t>(*id)};
    return std::nullopt;
}

Result<ObjectKind> object_kind(int fd, int own_fds) {
    const std::string link = TRY(own_fds < 0 ? own_link(fd) : sys::read_link_at(own_fds, std::to_string(fd).c_str()));
    if (const std::optional<ObjectKind> kind = kind_of_link(link)) return *kind;
    return fail(Errc::invalid_argument, "{} is no program, map, BTF or link", link);
}

Result<uint32_t> object_id(ObjectKind kind, int fd) {
    // The structs that the kernel fills begin with type and id, but for BTF's. To ask for these alone takes a fourth of the time
    // that fdinfo takes, which is opened, written by the kernel line by line, and read.
    if (kind != ObjectKind::btf) {
        uint32_t type_and_id[2] = {};
        if (sys::obj_get_info(fd, type_and_id, sizeof type_and_id) && type_and_id[1] != 0) return type_and_id[1];
    }
    const std::string info = TRY(sys::read_file(format("/proc/self/fdinfo/{}", fd)));
    if (const std::optional<ObjectId> object = object_in_fdinfo(TRY(own_link(fd)), info)) return object->id;
    return fail(Errc::unsupported, "this kernel doesn't tell the id of a {}", object_word(kind));
}

} // namespace rawbpf::inline v0
