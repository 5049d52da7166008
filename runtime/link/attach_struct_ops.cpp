// struct_ops: a map whose value is a struct of the kernel's with our programs as its functions (a TCP congestion control, say).
//
//      BPF_MAP_UPDATE_ELEM key 0, the struct      ready; without BPF_F_LINK (before 6.4) registered as well
//      BPF_LINK_CREATE, the map's descriptor      registered while the link lives (6.4)
//
// Registered by the update alone, the struct stays until the element is deleted: after kill -9 it is there still, and says so.
#include <cerrno>

#include "runtime/base/fail.h"
#include "runtime/link/attaching.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/uapi.h"

#ifndef BPF_F_LINK
#define BPF_F_LINK (1U << 13) // 6.4
#endif

namespace rawbpf::inline v0 {

Result<Link> attach_struct_ops(const ObjectSpec & /*spec*/, LoadedObject &object, const std::string &name) {
    const std::string what = format("struct_ops {}", name);
    const LoadedObject::StructOps *ops = nullptr;
    for (const LoadedObject::StructOps &one : object.struct_ops)
        if (one.map == name) ops = &one;
    Map *map = object.find_map(name);
    if (!ops || !map) return fail(Errc::not_found, "{}: the object has loaded no struct_ops map of that name", what);
    const bool by_link = (map->flags() & BPF_F_LINK) != 0; // the section's wish, where this kernel has such links

    const uint32_t key = 0;
    {
        sys::Because why(by_link ? "the struct with our programs in it; a link registers it"
                                 : "the struct with our programs in it is registered");
        // EBUSY: it was filled before, by an earlier link that has gone; it is as ready as it was then.
        Result<void> filled = map->update(&key, ops->value.data());
        if (!filled && !(by_link && filled.error().os == EBUSY)) {
            Error error = std::move(filled).error();
            if (error.os == EEXIST) error.hint = "something of that name is registered already";
            if (error.os == EINVAL)
                error.hint = "the kernel refuses the struct: a function that must be there is missing, or a name is too long";
            return Unexpected(in_context(std::move(error), what));
        }
    }
    if (!by_link) {
        auto held = std::make_shared<Fd>(TRY(sys::duplicate(map->fd())));
        Link link;
        link.undo_by([held]() -> Result<void> {
            const uint32_t only = 0;
            return sys::map_delete_elem(held->get(), &only);
        });
        link.name(what, 1);
        link.note(format("{}: registered without a link (its map lacks BPF_F_LINK, 6.4: section .struct_ops.link); if the "
                         "process is killed, it stays registered",
                         what));
        return link;
    }
    sys::LinkCreateAttr attr;
    attr.prog_fd = static_cast<uint32_t>(map->fd());
    attr.attach_type = uapi::BPF_STRUCT_OPS;
    sys::Because why("registered as long as this link lives");
    Result<Fd> link = sys::link_create(attr);
    if (link) return Link(what, std::move(*link));
    Error error = std::move(link).error();
    if (error.os == EEXIST) error.hint = "something of that name is registered already";
    if (error.os == EBUSY) error.hint = "only one of this kind can be registered, and there is one";
    return Unexpected(in_context(std::move(error), what));
}

} // namespace rawbpf::inline v0
