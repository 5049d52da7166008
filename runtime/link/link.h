// SPDX-License-Identifier: MIT
// A Link keeps a program attached.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "asm/kinds.h"
#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// What the kernel says of a BPF link.
struct LinkInfo {
    LinkType type = LinkType::UNSPEC; ///< BPF_LINK_TYPE_*
    uint32_t id = 0,                  ///< the kernel's number for it, unique among the links that exist
        program_id = 0;               ///< 0 for struct_ops
};

/// One attachment, of one program or struct_ops map, to one place or many. Dropping it detaches, and so does the end of the
/// process, kill -9 included: what holds the attachment is a descriptor (the few places that know no links say so in notes()).
/// Only a pin outlives it.
class [[nodiscard]] Link {
  public:
    Link() = default;
    /// The one moved from is attached to nothing. What was assigned to is dropped first.
    ///@{
    Link(Link &&other) noexcept { *this = std::move(other); }
    Link &operator=(Link &&other) noexcept;
    ///@}
    ~Link();

    /// What is attached to what, for people: "kprobe vfs_read", "xdp on eth0".
    [[nodiscard]] const std::string &what() const { return what_; }
    /// How many places it runs at: functions of a multi attachment, sites of a USDT probe.
    [[nodiscard]] size_t places() const { return places_; }
    /// What was passed over, and why; what was done in another way because this kernel lacks the usual one.
    [[nodiscard]] const std::vector<std::string> &notes() const { return notes_; }
    /// The BPF link's descriptor; -1 where this kernel has no link for it (perf events before 5.15, sockmaps before 6.10 ...).
    [[nodiscard]] int fd() const { return parts_.empty() ? -1 : parts_.front().link.get(); }
    /// False for a Link() that nobody attached, and after detach() or a move.
    [[nodiscard]] bool attached() const { return !parts_.empty() || undo_; }

    /// Puts another program in the place of the one that runs, without a moment in which none does (BPF_LINK_UPDATE: cgroup, xdp,
    /// netns 5.7-5.9, tcx, netkit, sockmap, and struct_ops with a map's descriptor). `expected`: only if that program runs now;
    /// -1: whatever runs. Errors: unsupported where the kernel has no update (perf events, trampolines, multi), busy when another
    /// runs.
    [[nodiscard]] Result<void> update(int program_fd, int expected = -1) const;
    /// The attachment outlives this process, under a path on a bpf file system. Errors: unsupported without a BPF link, or with
    /// several; not_found, busy and permission as the file system says.
    [[nodiscard]] Result<void> pin(const std::string &path);
    /// Takes the pin away; the attachment goes on while this Link lives. Errors: invalid_argument when it isn't pinned.
    [[nodiscard]] Result<void> unpin();
    /// Detaches now, pin included, and says whether that worked; dropping can't.
    [[nodiscard]] Result<void> detach();
    /// Drops them all, pinned ones excepted, and waits for the kernel once rather than for each, where it can do that.
    static void drop_together(std::vector<Link> links);
    /// The first, short half of it: when this returns, none of their programs runs any more. What takes the kernel its time with
    /// each, though nobody sees it, stays in `links` for drop_together().
    static void stop_together(std::vector<Link> &links);
    /// BPF_OBJ_GET_INFO_BY_FD (5.8). Errors: unsupported without a BPF link.
    [[nodiscard]] Result<LinkInfo> info() const;
    /// Adopts what somebody pinned. Errors: not_found, permission.
    [[nodiscard]] static Result<Link> open_pinned(const std::string &path);

    // For those who attach.
    /// One place, by a BPF link. `what`: as what().
    Link(std::string what, Fd link);
    /// One more place: a BPF link, or an event that the program was given to by ioctl, or both. `runs_by_link`: closing the link
    /// is enough for the program to run no more, once wait_for_programs() has returned; the event may go later.
    void add(Fd link, Fd event = {}, bool runs_by_link = false);
    /// Attached without a descriptor: how it is undone.
    void undo_by(std::function<Result<void>()> undo) { undo_ = std::move(undo); }
    /// Something that has to live as long as the attachment, and is let go of after it; not when a pin outlives this Link.
    struct Held {
        virtual ~Held() = default;
        bool stays = false; ///< the attachment goes on without this Link: leave everything as it is
    };
    /// Takes it over; there is one at most.
    void hold(std::unique_ptr<Held> held) { held_ = std::move(held); }
    /// Adds a sentence to notes().
    void note(std::string text) { notes_.push_back(std::move(text)); }
    /// Sets what() and places().
    void name(std::string what, size_t places) { what_ = std::move(what), places_ = places; }

  private:
    struct Part {
        Fd link, event;
        bool runs_by_link = false;
    };
    std::string what_, pin_;
    size_t places_ = 1;
    std::unique_ptr<Held> held_; // above parts_: destroyed after them
    std::vector<Part> parts_;
    std::function<Result<void>()> undo_;
    std::vector<std::string> notes_;
};

} // namespace rawbpf::inline v0
