// An object of the kernel as a person names it: by its id, by a pin, or by its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/sys/bpf.h"

namespace rawbpf::inline v0 {

/// "program", "map", "BTF", "link", for messages.
[[nodiscard]] std::string_view object_word(sys::ObjectKind kind);

/// As the kernel has it; empty: it has none, as every link. Errors: the kernel's.
[[nodiscard]] Result<std::string> object_name(sys::ObjectKind kind, int fd);

/// Its id ("47"), where it is pinned (anything with a slash), or its name, of which the kernel keeps 15 characters; of BTF
/// "vmlinux" or a module's. Links have no names. Errors: not_found; invalid_argument where several have the name (the text lists
/// their ids) or the path holds something else; permission.
[[nodiscard]] Result<Fd> find_object(sys::ObjectKind kind, const std::string &which);

/// What a descriptor is.
struct ObjectId {
    sys::ObjectKind kind{};
    uint32_t id = 0;
};
/// By what /proc/PID/fd/N links to and the text of /proc/PID/fdinfo/N; nullopt: no program, map, BTF or link. PURE.
[[nodiscard]] std::optional<ObjectId> object_in_fdinfo(std::string_view link, std::string_view fdinfo);
/// What such a link says; nullopt: no program, map, BTF or link. PURE.
[[nodiscard]] std::optional<sys::ObjectKind> kind_of_link(std::string_view link);
/// What a descriptor of our own is: one system call, without walking a path where `own_fds` is an open /proc/self/fd. Errors: the
/// kernel's, without /proc; invalid_argument: none of these.
[[nodiscard]] Result<sys::ObjectKind> object_kind(int fd, int own_fds = -1);
/// The id of a descriptor of our own that is of this kind. Errors: the kernel's; unsupported when fdinfo doesn't say the id
/// (links 5.7, BTF 5.4).
[[nodiscard]] Result<uint32_t> object_id(sys::ObjectKind kind, int fd);
/// The number behind "NAME:" at the start of a line of fdinfo; nullopt: there is none. PURE.
[[nodiscard]] std::optional<uint64_t> fdinfo_number(std::string_view fdinfo, std::string_view name);

} // namespace rawbpf::inline v0
