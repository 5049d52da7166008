// What can be done with a link: update, pin, detach.
//
//      BPF link ---- holds ---> program            close(link): detached
//         ^                                        pinned: detached when the file goes, too
//         |  (perf events, kprobes, uprobes)
//      perf event                                  before 5.15 the event itself holds the program: ioctl, no link, no pin
//
// The kernel has links for most attachments. The others (sockmaps before 6.10, infrared devices, tc filters) are undone by a
// call, which nobody makes after kill -9. Their notes say so.
//
// To remove an event of a tracepoint the kernel waits for a grace period of RCU, 35 ms, in which it holds event_mutex
// (kernel/trace/trace_event_perf.c, perf_trace_event_unreg): 350 of them take 12 s, however many threads close them. Closing
// the link alone already detaches the program, and links that are closed at the same time share a grace period: 350 in 0.25 s.
//
// The kernel's bpf_link_ops::update_prog and update_map decide which links can be updated.
#include "runtime/link/link.h"

#include <cerrno>

#include "runtime/base/fail.h"
#include "runtime/base/long_step.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/close_together.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/membarrier.h"
#include "runtime/sys/names.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0 {

Link::Link(std::string what, Fd link) : what_(std::move(what)) { add(std::move(link)); }

Link &Link::operator=(Link &&other) noexcept {
    if (this == &other) return *this;
    if (undo_) (void)undo_();
    if (held_) held_->stays = !pin_.empty();
    what_ = std::move(other.what_);
    pin_ = std::move(other.pin_);
    places_ = other.places_;
    parts_ = std::move(other.parts_);
    held_ = std::move(other.held_);
    undo_ = std::exchange(other.undo_, nullptr);
    notes_ = std::move(other.notes_);
    return *this;
}

Link::~Link() {
    if (undo_) (void)undo_(); // nobody is left to be told; detach() tells
    if (held_) held_->stays = !pin_.empty();
}

void Link::add(Fd link, Fd event, bool runs_by_link) {
    const bool outlasted = runs_by_link && link;
    parts_.push_back({std::move(link), std::move(event), outlasted});
}

Result<void> Link::update(int program_fd, int expected) const {
    if (fd() < 0 || parts_.size() > 1)
        return fail(Errc::unsupported, "{}: the program of {} can't be replaced: attach the new one, then drop this link", what_,
                    parts_.size() > 1 ? "several links" : "an attachment that isn't a BPF link");
    sys::LinkUpdateAttr attr;
    attr.link_fd = static_cast<uint32_t>(fd());
    attr.new_prog_fd = static_cast<uint32_t>(program_fd);
    if (expected >= 0) {
        attr.flags = BPF_F_REPLACE;
        attr.old_prog_fd = static_cast<uint32_t>(expected);
    }
    sys::Because why("another program in its place, without a gap");
    Result<void> done = sys::link_update(attr);
    if (done) return {};
    Error error = std::move(done).error();
    if (error.os == EOPNOTSUPP || error.os == EINVAL || error.os == 524) { // 524: ENOTSUPP, which is no errno of user space
        Result<LinkInfo> kind = info();
        if (error.os != EINVAL) error.kind = Errc::unsupported;
        error.hint = kind ? format("{} links can't change their program, or the new one is of another type: attach the new one, "
                                   "then drop this link",
                                   sys::link_type_name(static_cast<uint32_t>(kind->type)))
                          : "this link can't change its program";
    } else if (error.os == EPERM && expected >= 0) {
        error.kind = Errc::busy;
        error.hint = "another program than the expected one runs there";
    }
    return Unexpected(in_context(std::move(error), what_));
}

Result<void> Link::pin(const std::string &path) {
    if (!pin_.empty()) return fail(Errc::invalid_argument, "{} is already pinned at {}", what_, pin_);
    if (parts_.size() > 1)
        return fail(Errc::unsupported, "{}: it has {} links, one for each place, and one pin holds one link", what_,
                    parts_.size());
    if (fd() < 0)
        return Unexpected(make_error(Errc::unsupported,
                                     format("{}: can't be pinned, because on this kernel it isn't a BPF link", what_),
                                     "links of perf events, kprobes, uprobes and tracepoints need Linux 5.15"));
    sys::Because why("the attachment outlives this process");
    TRY_IN(sys::obj_pin(fd(), path), "{}", what_);
    pin_ = path;
    return {};
}

Result<void> Link::unpin() {
    if (pin_.empty()) return fail(Errc::invalid_argument, "{}: isn't pinned", what_);
    TRY_IN(sys::remove_file(pin_), "{}: unpinning", what_);
    pin_.clear();
    return {};
}

Result<void> Link::detach() {
    Result<void> outcome;
    if (undo_) {
        outcome = undo_();
        undo_ = nullptr;
    }
    if (!pin_.empty()) {
        sys::Because why("it is pinned, so closing it would not end it");
        (void)sys::link_detach(fd()); // 5.9, and not for every type: the pin goes in any case, and with it the last holder
        if (Result<void> gone = unpin(); !gone && gone.error().os != ENOENT) outcome = std::move(gone);
    }
    parts_.clear();
    held_.reset();
    if (!outcome) return Unexpected(in_context(std::move(outcome).error(), format("{}: detaching", what_)));
    return {};
}

void Link::drop_together(std::vector<Link> links) {
    stop_together(links);
    size_t left = 0;
    for (const Link &link : links) left += link.pin_.empty() ? link.parts_.size() : 0;
    LongStep step("detaching", "places", left);
    for (Link &link : links) {
        if (!link.pin_.empty()) continue;
        for (Part &part : link.parts_) {
            part.event.reset();
            step.advance();
        }
    }
}

void Link::stop_together(std::vector<Link> &links) {
    std::vector<Fd> files;
    bool wait = false;
    for (Link &link : links) {
        if (!link.pin_.empty()) continue;
        if (link.undo_) (void)std::exchange(link.undo_, nullptr)();
        for (Part &part : link.parts_) {
            wait |= part.runs_by_link && part.link;
            if (!part.runs_by_link) files.push_back(std::move(part.event));
            files.push_back(std::move(part.link));
        }
        std::erase_if(link.parts_, [](const Part &part) { return !part.event; });
    }
    std::erase_if(files, [](const Fd &file) { return !file; });
    sys::close_together(std::move(files));
    if (wait) sys::wait_for_programs();
    std::erase_if(links, [](const Link &link) { return link.pin_.empty() && link.parts_.empty(); });
}

Result<LinkInfo> Link::info() const {
    if (fd() < 0) return fail(Errc::unsupported, "{}: on this kernel it isn't a BPF link", what_);
    sys::LinkInfo info;
    TRY_IN(sys::obj_get_info(fd(), &info, sizeof info), "{}", what_);
    return LinkInfo{LinkType{info.type}, info.id, info.prog_id};
}

Result<Link> Link::open_pinned(const std::string &path) {
    Link link(format("the link pinned at {}", path), TRY(sys::obj_get(path)));
    link.pin_ = path;
    // A pinned map or program opens just as well, and BPF_OBJ_GET_INFO_BY_FD would answer in its own struct.
    std::string kind = TRY(sys::read_link(format("/proc/self/fd/{}", link.fd())));
    if (kind.find("bpf_link") == std::string::npos && kind.find("bpf-link") == std::string::npos)
        return fail(Errc::invalid_argument, "{}: isn't a link, but {}", path, kind);
    return link;
}

} // namespace rawbpf::inline v0
