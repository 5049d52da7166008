// The record of one firing, written straight into the ring: its size is known before, so nothing is copied twice.
#include <linux/bpf.h>

#include "programs/trace/emit.h"
#include "programs/usdt/fetch.h"

namespace rawbpf::inline v0::trace {
namespace {

// Whether r0 says, when an argument has been loaded, that it couldn't be.
bool is_in_memory(const Emitting &e, uint32_t argument) {
    if (e.call) return false; // it is in ours
    if (e.place.go_call) return e.place.go_call->arguments[argument].in == GoWord::In::stack;
    if (is_on_stack(e.place, argument)) return true;
    return e.place.kind == ProbeKind::usdt && usdt::is_in_memory(e.place.arguments[argument]);
}

// r3 = what the column holds: where its text, its file is.
void load_source(const Emitting &e, const Column &column) {
    const Value &value = column.value;
    if (value.reads.empty() && value.from == Value::From::argument) return load_raw(e, r3, value.argument);
    load_value(e, value);
    e.f.mov(r3, r0);
}

// r0 = what path_walk() says of the struct path in e.path.
void walk(const Emitting &e, Mem length) {
    Shared &s = e.shared;
    if (!s.walk) s.walk = &path_walk(s.b, *s.paths, s.options.bpf_loop);
    e.f.load<uint64_t>(r2, e.path + runtime(s.paths->path_mnt));
    e.f.load<uint64_t>(r0, e.path + runtime(s.paths->path_dentry));
    e.f.if_(r0 != 0, [&] { e.f.call(*s.walk, {length, Reg(r0), Reg(r2)}); });
}

// The same for the path at r3; 0 where there is no dentry yet, as in a file that is being opened.
void copy_path(const Emitting &e, Mem length) {
    e.f.address(r1, e.path);
    e.f.mov(r2, 16);
    e.f.call(helper::probe_read_kernel);
    walk(e, length);
}

// The file behind a descriptor of this process: r0 = as above, 0 where there is none.
void copy_descriptor(const Emitting &e, const Column &column, Mem length) {
    Code &f = e.f;
    const FileOffsets &o = *e.shared.files;
    const Label none = f.label("none");
    // r3 = *(u64 *)(r3 + offset)
    const auto follow = [&](uint32_t offset) {
        if (offset) f.add(r3, runtime(offset));
        f.mov(r2, 8);
        f.address(r1, e.path);
        f.call(helper::probe_read_kernel);
        f.load<uint64_t>(r3, e.path);
    };
    load_source(e, column);
    f.lsh(r3, 32); // an int, whatever is above it
    f.rsh(r3, 32);
    f.store<uint64_t>(e.scratch, r3);
    f.call(helper::get_current_task);
    f.mov(r3, r0);
    follow(o.task_files);
    follow(o.files_table);
    f.store<uint64_t>(e.path + 8, r3);
    f.add(r3, runtime(o.most_fd));
    f.mov(r2, 4);
    f.address(r1, e.path);
    f.call(helper::probe_read_kernel);
    f.load<uint32_t>(r1, e.path);
    f.load<uint64_t>(r2, e.scratch);
    f.mov(r0, 0);
    f.jump_if(r2 >= r1, none);
    f.load<uint64_t>(r3, e.path + 8);
    follow(o.table_fd);
    f.load<uint64_t>(r2, e.scratch);
    f.lsh(r2, 3);
    f.add(r3, r2);
    follow(0);
    f.mov(r0, 0);
    f.jump_if(r3 == 0, none);
    f.add(r3, runtime(e.shared.paths->file_path));
    copy_path(e, length);
    f.bind(none);
}

// r0 = the text's length with its zero, or a negative error.
void copy_kernel_text(Code &f, Mem bytes, uint32_t capacity) {
    f.mov(r2, runtime(capacity));
    f.address(r1, bytes);
    f.call(helper::probe_read_kernel_str);
}

// A text whose length is the next argument: r0 = how many bytes of it are here, or a negative error.
void copy_counted(const Emitting &e, const Column &column, Mem bytes, uint32_t capacity) {
    Code &f = e.f;
    if (e.place.go_call)
        load_go_value(e, r0, column.value, 1);
    else
        load_raw(e, r0, column.value.argument + 1);
    f.store<uint64_t>(e.scratch, r0);
    load_source(e, column);
    f.load<uint64_t>(r2, e.scratch);
    f.if_(r2 > runtime(capacity), [&] { f.mov(r2, runtime(capacity)); });
    f.store<uint64_t>(e.scratch, r2);
    f.address(r1, bytes);
    if (e.sleepable)
        f.call(helper::copy_from_user);
    else
        f.call(helper::probe_read_user);
    f.if_(r0 == 0, [&] { f.load<uint64_t>(r0, e.scratch); });
}

void copy(const Emitting &e, const Column &column, const Blob &blob) {
    Code &f = e.f;
    const Mem length = r9 + runtime(blob.offset), bytes = r9 + runtime(blob.offset + 4);
    switch (blob.show) {
    case Show::characters:
        if (column.value.from == Value::From::comm) {
            f.address(r3, e.comm);
        } else if (column.value.reads.empty()) {
            f.address(r3, r6 + runtime(e.place.offsets[column.value.argument]));
        } else {
            load_address(e, column.value);
            f.mov(r3, r0);
        }
        copy_kernel_text(f, bytes, blob.capacity);
        break;
    case Show::data_text:
        f.load<uint32_t>(r3, r6 + runtime(e.place.offsets[column.value.argument]));
        f.and_(r3, 0xffff);
        f.add(r3, r6);
        copy_kernel_text(f, bytes, blob.capacity);
        break;
    case Show::file:
        load_source(e, column);
        f.add(r3, runtime(e.shared.paths->file_path));
        copy_path(e, length);
        break;
    case Show::path:
        load_source(e, column);
        copy_path(e, length);
        break;
    case Show::dentry: // without its mount: the path below that
        load_source(e, column);
        f.mov(r1, 0);
        f.store<uint64_t>(e.path + runtime(e.shared.paths->path_mnt), r1);
        f.store<uint64_t>(e.path + runtime(e.shared.paths->path_dentry), r3);
        walk(e, length);
        break;
    case Show::counted: copy_counted(e, column, bytes, blob.capacity); break;
    case Show::go_slice:
        if (column.value.type.element == Show::counted)
            copy_go_strings(e, column.value, bytes, blob.capacity);
        else
            copy_go_slice(e, column.value, bytes, blob.capacity);
        break;
    case Show::go_interface:
    case Show::go_any: copy_go_interface(e, column.value, bytes, blob.capacity); break;
    case Show::descriptor: copy_descriptor(e, column, length); break;
    default: load_source(e, column); read_memory(e, bytes, blob.capacity, blob.show == Show::text);
    }
    f.store<uint32_t>(length, r0);
}

// The running request's: how many bytes, and its record behind that.
void copy_labels(const Emitting &e, const Layout &layout) {
    e.f.address(r1, r9 + runtime(layout.labels + sizeof(uint64_t)));
    e.shared.labels->take(e.f, e.ids + 4);
    e.f.store<uint64_t>(r9 + runtime(layout.labels), r0);
}

// Before the walk's registers are overwritten.
void keep_start(const Emitting &e, Mem registers) {
    Code &f = e.f;
    const auto keep = [&](size_t from, size_t to) {
        f.load<uint64_t>(r3, registers + runtime(from));
        f.store<uint64_t>(*e.start + runtime(to), r3);
    };
    keep(offsetof(UnwindRegisters, pc), offsetof(StackStart, pc));
    keep(offsetof(UnwindRegisters, fp), offsetof(StackStart, fp));
    keep(offsetof(UnwindRegisters, sp), offsetof(StackStart, sp));
    f.address(r1, *e.start + runtime(offsetof(StackStart, top)));
    f.mov(r2, sizeof(uint64_t));
    f.call(helper::probe_read_user); // zero where there is nothing
}

// Both stacks of this thread, innermost first.
//
// The walk by tables works in the record itself: it belongs to this firing alone, whichever program runs in between (a uprobe's
// program may be preempted, a sleepable one waits, a tracepoint fires within either), where a place that each CPU has would need
// a lock. What the walk keeps from frame to frame lies where the kernel's stack comes afterwards. r8 is gone.
void copy_stacks(const Emitting &e, const Layout &layout) {
    Code &f = e.f;
    const Mem head = r9 + runtime(layout.stack);
    if (e.language)
        f.load<uint64_t>(r1, e.language->number);
    else
        f.mov(r1, 0);
    f.store<uint64_t>(head + runtime(offsetof(StackHead, language)), r1);
    constexpr uint32_t kKernelAt = sizeof(StackHead), kKernelBytes = kMostFrames * 8, kUserAt = kKernelAt + kKernelBytes;
    using Scratch = UnwindScratch<128, 0>; // what there is room for
    static_assert(sizeof(Scratch) <= kKernelBytes);
    if (e.shared.unwinder) {
        const Slot record = f.stack<uint64_t>("record");
        f.store<uint64_t>(record, r9);
        f.address(r8, head);
        f.mov(r9, 0);
        Unwinder::WalkPlace place{has_registers(e.place.kind) ? UnwindContext::registers : UnwindContext::other, *e.process};
        place.state = kKernelAt;
        place.shape = Scratch::kShape;
        place.frames = kUserAt;
        place.room = layout.user_frames;
        e.shared.unwinder->walk(f, place);
        if (e.copying) {
            const Slot user_bytes = f.stack<uint64_t>("user bytes");
            const Label walked = f.label("walked");
            f.store<uint64_t>(user_bytes, r0);
            f.load<uint64_t>(r1, *e.size);
            f.jump_if(r1 == runtime(layout.size), walked);
            e.shared.unwinder->jump_if_walked(f, place, walked);
            f.jump(*e.copying);
            f.bind(walked);
            f.load<uint64_t>(r0, user_bytes);
        } else if (e.size)
            e.shared.unwinder->copy_stack(f, place, [&](Label none) {
                f.load<uint64_t>(r1, *e.size);
                f.jump_if(r1 == runtime(layout.size), none);
            });
        f.mov(r1, r9);
        f.load<uint64_t>(r9, record);
        f.store<uint32_t>(head + runtime(offsetof(StackHead, user_bytes)), r0);
        f.store<uint32_t>(head + runtime(offsetof(StackHead, copied_to)), r1);
        if (e.start) keep_start(e, head + runtime(kKernelAt + offsetof(UnwindState, leaf)));
        f.load<uint32_t>(r1, head + runtime(kKernelAt + offsetof(UnwindState, ending)));
        f.store<uint32_t>(head + runtime(offsetof(StackHead, ending)), r1);
    } else {
        f.call(helper::get_stack, r6, head + runtime(kUserAt), layout.user_frames * 8, BPF_F_USER_STACK);
        f.store<uint32_t>(head + runtime(offsetof(StackHead, user_bytes)), r0);
        f.store<uint32_t>(head + runtime(offsetof(StackHead, ending)), 0);
    }
    f.call(helper::get_stack, r6, head + runtime(kKernelAt), kKernelBytes, 0);
    f.store<uint32_t>(head + runtime(offsetof(StackHead, kernel_bytes)), r0);
}

// e.size = what the record is to have: with room for a copy of the stack where nothing, or nothing recent, is known of the
// process, unless the ring is half full: one takes the place of thirty records, which come first.
void choose_size(Emitting &e, const Layout &layout) {
    Code &f = e.f;
    const Slot size = f.stack<uint64_t>("size");
    const Label known = f.label("known");
    f.mov(r1, runtime(layout.size));
    f.store<uint64_t>(size, r1);
    e.shared.unwinder->jump_if_known(f, *e.process, known);
    f.call(helper::ringbuf_query, *e.shared.ring, BPF_RB_AVAIL_DATA);
    f.jump_if(r0 > runtime(e.shared.options.ring_bytes / 2), known);
    f.mov(r1, runtime(layout.size + Unwinder::kCopyBytes));
    f.store<uint64_t>(size, r1);
    f.bind(known);
    e.size = size;
}

// An interpreter's frames: before the record is reserved, which they stand in front of.
void begin_language(Emitting &e) {
    Code &f = e.f;
    e.language = LanguageWalk::Apart{*e.process,
                                     f.stack<uint32_t>("zero"),
                                     e.ids,
                                     f.stack<uint64_t>("frames"),
                                     f.stack<uint32_t>("state's number"),
                                     f.stack<uint64_t>("context"),
                                     f.stack<uint64_t>("counts"),
                                     f.stack<uint64_t>("state"),
                                     &*e.shared.rings};
    f.store<uint32_t>(e.language->zero, 0);
    e.shared.languages->begin(f, *e.language);
}

} // namespace

void fill_record(Emitting &e, const Layout &layout) {
    Code &f = e.f;
    f.call(helper::ktime_get_ns);
    f.store<uint64_t>(r9 + offsetof(Header, time), r0);
    f.load<uint64_t>(r1, e.ids);
    f.store<uint64_t>(r9 + offsetof(Header, tid), r1);
    f.store<uint32_t>(r9 + offsetof(Header, place), r7);
    f.call(helper::get_smp_processor_id);
    f.store<uint32_t>(r9 + offsetof(Header, cpu), r0);
    f.store<uint64_t>(r9 + offsetof(Header, what), runtime(e.is_result ? What::result : What::call));
    if (e.duration)
        f.load<uint64_t>(r1, *e.duration);
    else
        f.mov(r1, 0);
    f.store<uint64_t>(r9 + offsetof(Header, duration), r1);
    if (layout.key == 0)
        load_frame(e, r1);
    else
        f.mov(r1, 0);
    f.store<uint64_t>(r9 + offsetof(Header, frame), r1);
    if (layout.key != 0) {
        f.mov(r1, 0);
        f.store<uint64_t>(r9 + runtime(layout.key), r1);
    }
    f.call(helper::get_current_comm, r9 + offsetof(Header, comm), 16);
    f.mov(r1, 0);
    f.store<uint32_t>(r9 + offsetof(Header, unreadable), r1);
    for (uint32_t i = 0; i < layout.columns.size(); ++i) {
        const Value &value = layout.columns[i].value;
        if (value.from == Value::From::comm) {
            f.mov(r1, 0);
        } else if (value.is_text() && !value.reads.empty() && value.type.show == Show::characters) {
            load_address(e, value);
            f.mov(r1, r0);
        } else if (value.from == Value::From::argument && value.reads.empty()) {
            load_raw(e, r1, value.argument);
            if (is_in_memory(e, value.argument))
                f.if_(r0 != 0, [&] {
                    f.load<uint32_t>(r2, r9 + offsetof(Header, unreadable));
                    f.or_(r2, runtime(1u << i));
                    f.store<uint32_t>(r9 + offsetof(Header, unreadable), r2);
                });
        } else {
            load_value(e, value);
            f.mov(r1, r0);
        }
        f.store<uint64_t>(r9 + runtime(sizeof(Header) + 8 * i), r1);
    }
    if (layout.is_result) {
        load_result(e, r1);
        f.store<uint64_t>(r9 + runtime(sizeof(Header) + 8 * layout.columns.size()), r1);
    }
    if (layout.goroutine) {
        load_goroutine(e, r1);
        f.store<uint64_t>(r9 + runtime(sizeof(Header) + 8 * (layout.values() - 1)), r1);
    }
    for (const Column &column : layout.columns)
        if (column.blob >= 0) copy(e, column, layout.blobs[static_cast<size_t>(column.blob)]);
    if (layout.labels != 0) copy_labels(e, layout);
    if (layout.stack != 0) copy_stacks(e, layout);
    if (e.written) {
        f.load<uint64_t>(r2, *e.written);
        f.mov(r1, 1);
        f.atomic_add<uint64_t>(r2 + 0, r1);
    }
}

void begin_walk(Emitting &e, const Layout &layout) {
    Code &f = e.f;
    e.process = f.stack<uint32_t>("process");
    f.load<uint32_t>(r1, e.ids + 4);
    f.store<uint32_t>(*e.process, r1);
    if (e.shared.languages) begin_language(e);
    if (e.shared.options.unwind->copies) choose_size(e, layout);
}

void end_walk(const Emitting &e) {
    if (e.language) e.shared.languages->end(e.f, *e.language);
}

void emit_record(Emitting &e, const Layout &layout) {
    Code &f = e.f;
    const Label done = f.label("sent or counted");
    if (layout.stack != 0 && e.shared.unwinder) begin_walk(e, layout);
    if (e.shared.counting) count_record(e, layout, done);
    if (e.language) e.shared.languages->send(f, *e.language);
    if (e.size)
        f.load<uint64_t>(r2, *e.size);
    else
        f.mov(r2, runtime(layout.size));
    f.reserve(r9, *e.shared.ring, r2, [&] { fill_record(e, layout); }).else_([&] { bump(e, offsetof(Counts, lost)); });
    f.bind(done);
    end_walk(e);
}

} // namespace rawbpf::inline v0::trace
