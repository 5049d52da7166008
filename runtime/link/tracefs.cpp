// Tracepoints have numbers, which only tracefs knows. If it isn't mounted (containers, small systems), rawbpf doesn't mount it
// visibly, since nothing may be left behind: fsopen(2) and fsmount(2) make a mount that no path leads to except
// /proc/self/fd/N, and that ends with its descriptor.
//
//      tracefs/events/sched/sched_switch/id           "318\n"
//      tracefs/events/sched/sched_process_fork/format "...field:pid_t child_pid;	offset:44;	size:4;..."
//      tracefs/available_filter_functions             what ftrace can be put on: for kprobe.multi
#include "runtime/link/tracefs.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "runtime/base/fail.h"
#include "runtime/base/remembering.h"
#include "runtime/link/names.h"
#include "runtime/sys/facts.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0 {
namespace {

struct Found {
    std::string path;
    Fd own; ///< the mount that `path` goes through
};
Found found;

Result<std::string> look() {
    std::string closed; // there may be one, behind a door that these privileges don't open
    for (const char *path : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
        const Result<struct stat> events = sys::stat_file(format("{}/events", path));
        if (events) return std::string(path);
        if (events.error().os != ENOENT && closed.empty()) closed = format("{}: {}", path, errno_name(events.error().os));
    }
    sys::Because why("tracefs, which has the tracepoints' numbers, isn't mounted where we look: mount it for this process alone");
    Result<Fd> own = sys::mount_detached("tracefs");
    if (!own) {
        Error error = std::move(own).error();
        error.hint = error.os == ENODEV               ? std::string("the kernel doesn't know tracefs (CONFIG_TRACING)")
                     : error.kind == Errc::permission ? sys::refusal_hint({sys::Capability::sys_admin})
                                                      : "mount -t tracefs tracefs /sys/kernel/tracing";
        return Unexpected(in_context(std::move(error), closed.empty() ? "no tracefs at /sys/kernel/tracing or /sys/kernel/debug"
                                                                      : format("tracefs can't be read at {}", closed)));
    }
    found.own = std::move(*own);
    return format("/proc/self/fd/{}", found.own.get());
}

// The nearest in the same category, and the category where that is what's wrong.
std::string nearest(const std::string &events, const std::string &category, const std::string &event) {
    NearestNames near(event);
    for (const std::string &name : sys::list_directory(events + "/" + category).value_or(std::vector<std::string>{}))
        near.see(name);
    if (std::string hint = near.hint(); !hint.empty()) return hint;
    // Often the event is right and its category isn't.
    NearestNames elsewhere(category + "/" + event), categories(category);
    for (const std::string &other : sys::list_directory(events).value_or(std::vector<std::string>{})) {
        categories.see(other);
        if (sys::exists(events + "/" + other + "/" + event + "/id")) return format("did you mean {}/{}?", other, event);
    }
    return categories.hint();
}

} // namespace

Result<std::string> tracefs() {
    const Remembering lock;
    if (found.path.empty()) found.path = TRY(look());
    return found.path;
}

Result<uint64_t> tracepoint_id(const std::string &name) {
    size_t slash = name.find('/');
    if (slash == std::string::npos || slash == 0 || slash + 1 == name.size() || name.find('/', slash + 1) != std::string::npos ||
        name.find("..") != std::string::npos)
        return Unexpected(make_error(Errc::invalid_argument, format("tracepoint \"{}\": not of the form CATEGORY/NAME", name),
                                     "for example sched/sched_switch"));
    std::string events = TRY_IN(tracefs(), "tracepoint {}", name) + "/events";
    Result<std::string> text = sys::read_file(format("{}/{}/id", events, name), 64);
    if (!text) {
        Error error = std::move(text).error();
        if (error.os != ENOENT) return Unexpected(in_context(std::move(error), format("tracepoint {}", name)));
        return Unexpected(make_error(Errc::not_found, format("tracepoint {}: not in this kernel", name),
                                     nearest(events, name.substr(0, slash), name.substr(slash + 1))));
    }
    uint64_t id = 0;
    if (std::from_chars(text->data(), text->data() + text->size(), id).ec != std::errc())
        return fail(Errc::bad_input, "tracepoint {}: its id file says \"{}\"", name, *text);
    return id;
}

uint64_t tracepoint_record_size(const std::string &name) {
    const Result<std::string> directory = tracefs();
    const Result<std::string> text = directory ? sys::read_file(format("{}/events/{}/format", *directory, name), 64 << 10)
                                               : Result<std::string>(std::string());
    if (!text) return 0;
    uint64_t end = 0;
    constexpr std::string_view kOffset = "\toffset:", kSize = "\tsize:"; // "\tfield:int pid;\toffset:24;\tsize:4;\tsigned:1;"
    for (size_t at = text->find(kOffset); at != std::string::npos; at = text->find(kOffset, at + 1)) {
        const size_t then = text->find(kSize, at);
        if (then == std::string::npos) break;
        uint64_t offset = 0, size = 0;
        const char *last = text->data() + text->size();
        std::from_chars(text->data() + at + kOffset.size(), last, offset);
        std::from_chars(text->data() + then + kSize.size(), last, size);
        end = std::max(end, offset + size);
    }
    return end;
}

Result<uint16_t> forked_child_offset() {
    const std::string path = TRY(tracefs()) + "/events/sched/sched_process_fork/format";
    const std::string text = TRY_IN(sys::read_file(path, 64 << 10), "following what the command starts");
    constexpr std::string_view kField = " child_pid;", kOffset = "offset:";
    if (const size_t field = text.find(kField); field != std::string::npos) {
        const size_t line_end = std::min(text.find('\n', field), text.size()), at = text.find(kOffset, field);
        uint16_t offset = 0;
        if (at < line_end && std::from_chars(text.data() + at + kOffset.size(), text.data() + line_end, offset).ec == std::errc())
            return offset;
    }
    return fail(Errc::unsupported, "sched:sched_process_fork has no child_pid in this kernel");
}

} // namespace rawbpf::inline v0
