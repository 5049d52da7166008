// From a dentry up to the process's root, as the kernel's d_path() goes, but from any probe: bpf_d_path() may only be called from
// a few.
//
//      dentry "passwd" --d_parent--> "etc" --d_parent--> "/"  is the root of this mount
//                                                         |   mount --mnt_parent--> the mount below, mnt_mountpoint in it
//                                                         v
//      written:  passwd\0 etc\0                           ... on from there, until task->fs->root, or a mount is its own parent
//
// Renames and unmounts may happen meanwhile: then a name is old, as it may be with any other tool. Every pointer is read by
// bpf_probe_read_kernel(), so nothing worse can happen. Names go leaf first, since that is how they are met; user space turns
// them round. A file that lies outside of the process's root (a descriptor from before its chroot) has its path from the
// namespace's root, where the kernel's own would say "(unreachable)".
#include "programs/trace/path.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "runtime/base/format.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr int kMostSteps = 32;
constexpr int kNamesAt = 4;                  // behind the length
constexpr int kWritten = 2 * kPathBytes - 1; // bits of the length that are a number, while there is more to come
static_assert(kPathCapacity <= kWritten);

// r1 = *(u64 *)(base + offset), or away
void read_or(Code &f, Slot got, Reg base, uint32_t offset, Label away) {
    f.mov(r3, base);
    if (offset) f.add(r3, runtime(offset));
    f.address(r1, got);
    f.mov(r2, 8);
    f.call(helper::probe_read_kernel);
    f.jump_if(r0 != 0, away);
    f.load<uint64_t>(r1, got);
}

// The root directory of the process that runs, as a dentry and a mount; both 0 where it has none any more.
void find_root(Code &f, const PathOffsets &o, Slot got, Mem dentry, Mem mount) {
    const Label none = f.label("no root");
    f.store<uint64_t>(dentry, 0);
    f.store<uint64_t>(mount, 0);
    f.call(helper::get_current_task);
    read_or(f, got, r0, o.task_fs, none);
    f.jump_if(r1 == 0, none);
    f.add(r1, runtime(o.fs_root));
    f.store<uint64_t>(dentry, r1);
    read_or(f, got, r1, o.path_mnt, none);
    f.store<uint64_t>(mount, r1);
    f.load<uint64_t>(r1, dentry);
    read_or(f, got, r1, o.path_dentry, none);
    f.store<uint64_t>(dentry, r1);
    f.bind(none);
}

// One step of the walk, in a function where r6 is the dentry, r7 the vfsmount, r8 where to write (the length, and behind it the
// names), and r9 how many bytes have been.
struct Step {
    Code &f;
    const PathOffsets &o;
    Slot got;
    Label more, done, longer, unread; // where it goes on: r9 is the result, the last two add to it

    void read(WritableReg base, uint32_t offset) const { read_or(f, got, base, offset, unread); }
    // the text at r1, behind what has been written
    void write_name() const {
        f.mov(r3, r1);
        f.mov(r1, r8);
        f.add(r1, kNamesAt);
        f.add(r1, r9);
        f.mov(r2, kComponentBytes);
        f.call(helper::probe_read_kernel_str);
        f.jump_if(as_signed(static_cast<Reg>(r0)) <= 0, unread);
        f.jump_if(r0 > kComponentBytes, unread); // for older verifiers, who forget what the helper promises
        f.add(r9, r0);
    }

    // r1 and r2 are the root's dentry and mount: no further than there
    void end_at_root() const {
        const Label below = f.label("below");
        f.jump_if(r6 != r1, below);
        f.jump_if(r7 == r2, done);
        f.bind(below);
    }
    void emit(Slot parent) const {
        const Label inside = f.label("inside"), detached = f.label("detached");
        f.jump_if(r9 >= kPathBytes, longer);
        f.jump_if(r7 == 0, inside); // no mount is known
        read(r7, o.mnt_root);
        f.jump_if(r1 != r6, inside);
        // The root of this mount: on from where it is mounted.
        f.sub(r7, runtime(o.mount_mnt));
        read(r7, o.mnt_parent);
        f.jump_if(r1 == r7, done); // the mount of everything
        read(r7, o.mnt_mountpoint);
        f.mov(r6, r1);
        read(r7, o.mnt_parent);
        f.mov(r7, r1);
        f.add(r7, runtime(o.mount_mnt));
        f.jump(more);

        f.bind(inside);
        read(r6, o.d_parent);
        f.jump_if(r1 == r6, detached);
        f.store<uint64_t>(parent, r1);
        read(r6, o.d_name);
        write_name();
        f.load<uint64_t>(r6, parent);
        f.jump(more);

        f.bind(detached);
        read(r6, o.d_name);
        write_name();
        f.jump_if(r9 >= kPathBytes, longer);
        read(r6, o.d_sb);
        f.mov(r6, r1);
        read(r6, o.s_type);
        f.mov(r6, r1);
        read(r6, o.type_name);
        write_name();
        f.or_(r9, kDetached);
        f.jump(done);
    }
};

// What the rounds of bpf_loop share. How many bytes have been written is in the length, in front of the names: from there the
// verifier reads any number, so that each round is to it as the first one was.
struct PathWalk {
    uint64_t dentry, mount, where;
    uint64_t root_dentry, root_mount;
};

// The verifier verifies a round once, whichever function calls the walk, and however often: 0.1 ms in place of 45 for all the
// ways that 32 rounds can go.
void walk_by_helper(Code &f, const PathOffsets &o) {
    const SlotOf<PathWalk> walk = f.stack<PathWalk>("walk");
    const Label nowhere = f.label("nowhere");
    f.jump_if(r1 == 0, nowhere); // as far as the verifier knows
    f.mov(r6, r1);
    f.store<uint64_t>(walk + offsetof(PathWalk, dentry), r2);
    f.store<uint64_t>(walk + offsetof(PathWalk, mount), r3);
    f.store<uint64_t>(walk + offsetof(PathWalk, where), r6);
    f.store<uint32_t>(r6 + 0, 0);
    find_root(f, o, f.stack<uint64_t>("got"), walk + offsetof(PathWalk, root_dentry), walk + offsetof(PathWalk, root_mount));
    f.bpf_loop(kMostSteps, walk, [&](Code &g) {
        const Slot shared = g.stack<uint64_t>("walk"), parent = g.stack<uint64_t>("parent");
        const Label end = g.label("end");
        const Step step{g, o, g.stack<uint64_t>("got"), g.label("more"), g.label("done"), g.label("longer"), g.label("unread")};
        g.store<uint64_t>(shared, r2);
        g.load<uint64_t>(r6, r2 + offsetof(PathWalk, dentry));
        g.load<uint64_t>(r7, r2 + offsetof(PathWalk, mount));
        g.load<uint64_t>(r8, r2 + offsetof(PathWalk, where));
        g.load<uint32_t>(r9, r8 + 0);
        g.and_(r9, kWritten);
        g.load<uint64_t>(r1, r2 + offsetof(PathWalk, root_dentry));
        g.load<uint64_t>(r2, r2 + offsetof(PathWalk, root_mount));
        step.end_at_root();
        step.emit(parent);
        g.bind(step.more);
        g.load<uint64_t>(r1, shared);
        g.store<uint64_t>(r1 + offsetof(PathWalk, dentry), r6);
        g.store<uint64_t>(r1 + offsetof(PathWalk, mount), r7);
        g.or_(r9, kLonger); // if this was the last round
        g.store<uint32_t>(r8 + 0, r9);
        g.ret(0);
        g.bind(step.longer);
        g.or_(r9, kLonger);
        g.jump(end);
        g.bind(step.unread);
        g.mov(r9, -EFAULT);
        g.jump(end);
        g.bind(step.done);
        g.if_(r9 == 0, [&] { g.mov(r9, kRoot); });
        g.bind(end);
        g.store<uint32_t>(r8 + 0, r9);
        g.ret(1);
    });
    f.load<uint32_t>(r0, r6 + 0);
    f.exit();
    f.bind(nowhere);
    f.ret(0);
}

void walk_by_jumps(Code &f, const PathOffsets &o) {
    const Slot steps = f.stack<uint64_t>("steps"), parent = f.stack<uint64_t>("parent");
    const Slot root_dentry = f.stack<uint64_t>("root"), root_mount = f.stack<uint64_t>("root mount");
    const Step step{f, o, f.stack<uint64_t>("got"), f.label("more"), f.label("done"), f.label("longer"), f.label("unread")};
    f.mov(r6, r2);
    f.mov(r7, r3);
    f.mov(r8, r1);
    f.mov(r9, 0);
    find_root(f, o, step.got, root_dentry, root_mount);
    f.mov(r1, 0);
    f.store<uint64_t>(steps, r1);

    f.bind(step.more);
    f.load<uint64_t>(r1, steps);
    f.jump_if(r1 >= kMostSteps, step.longer);
    f.add(r1, 1);
    f.store<uint64_t>(steps, r1);
    f.load<uint64_t>(r1, root_dentry);
    f.load<uint64_t>(r2, root_mount);
    step.end_at_root();
    step.emit(parent);

    f.bind(step.done);
    f.if_(r9 == 0, [&] { f.mov(r9, kRoot); });
    f.mov(r0, r9);
    f.exit();
    f.bind(step.longer);
    f.mov(r0, r9);
    f.or_(r0, kLonger);
    f.exit();
    f.bind(step.unread);
    f.mov(r0, -EFAULT);
    f.exit();
}

} // namespace

Code &path_walk(Builder &builder, const PathOffsets &offsets, bool by_helper) {
    Code &f = by_helper ? builder.global_function("trace_path", 3, kNamesAt + kPathCapacity) : builder.function("trace_path", 3);
    by_helper ? walk_by_helper(f, offsets) : walk_by_jumps(f, offsets);
    return f;
}

std::string path_text(Bytes names, int32_t length) {
    std::vector<std::string_view> parts;
    const size_t bytes = path_bytes(length);
    std::string_view rest(reinterpret_cast<const char *>(names.data()), std::min(bytes, names.size()));
    while (!rest.empty()) {
        const size_t end = rest.find('\0');
        parts.push_back(rest.substr(0, end));
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    std::string out;
    if (length & kDetached) { // up to a root that no mount is known of: its name, and the file system's
        if (parts.size() < 2) return out;
        const std::string_view root = parts[parts.size() - 2], system = parts.back();
        parts.resize(parts.size() - 2);
        if (parts.empty() && root != "/") return format("{}:{}", system, root); // a pipe, a socket
    }
    if (length & kLonger) out = "...";
    for (size_t i = parts.size(); i-- > 0;) append(out, "/{}", parts[i]);
    return out.empty() ? "/" : out;
}

} // namespace rawbpf::inline v0::trace
