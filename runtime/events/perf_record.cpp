// Records of the perf ring about what processes do (PERF_RECORD_* in <linux/perf_event.h>, kernel/events/core.c).
//
//      MMAP2 (3.12)   pid tid | address | length | offset | which file, 24 bytes | prot flags | name, NUL, padded to 8
//                                                            |
//                               misc bit 14 clear: major u32, minor u32, inode u64, generation u64
//                               misc bit 14 set:   size u8, 3 bytes of nothing, build-id[20]              (5.12)
//      COMM           pid tid | name, NUL, padded to 8                       misc bit 13: because of an exec (3.16)
//      FORK, EXIT     pid ppid tid ptid | time
//      LOST           id | how many
//
// All of them end with the 24 bytes of sample_id, because the event asks for sample_id_all. Future kernels may append fields
// to a body, so bytes between a known body and the sample_id are skipped.
#include "runtime/events/perf_record.h"

#include <linux/perf_event.h>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0 {

namespace {

constexpr size_t kSampleId = 24;

Result<MapRecord> parse_map(ByteReader &body, uint16_t misc) {
    MapRecord map;
    map.pid = TRY(body.read<uint32_t>());
    map.tid = TRY(body.read<uint32_t>());
    map.address = TRY(body.read<uint64_t>());
    map.length = TRY(body.read<uint64_t>());
    map.offset = TRY(body.read<uint64_t>());
    const size_t which_at = body.offset();
    ByteReader which(TRY(body.take(24)), "perf record", 8 + which_at);
    if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
        const uint8_t size = TRY(which.read<uint8_t>());
        if (size > 20) return Unexpected(which.error_at(0, format("build-id of {} bytes", size)));
        TRY(which.skip(3));
        map.build_id = TRY(which.take(size));
    } else {
        map.device_major = TRY(which.read<uint32_t>());
        map.device_minor = TRY(which.read<uint32_t>());
        map.inode = TRY(which.read<uint64_t>());
        map.generation = TRY(which.read<uint64_t>());
    }
    map.protection = TRY(body.read<uint32_t>());
    map.flags = TRY(body.read<uint32_t>());
    map.file = TRY(body.c_string());
    if (map.address + map.length < map.address)
        return Unexpected(body.error_at(8, format("{} bytes at {:#x} go past the end of memory", map.length, map.address)));
    return map;
}

Result<CommRecord> parse_comm(ByteReader &body, uint16_t misc) {
    CommRecord comm;
    comm.pid = TRY(body.read<uint32_t>());
    comm.tid = TRY(body.read<uint32_t>());
    comm.exec = (misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
    comm.comm = TRY(body.c_string());
    return comm;
}

Result<TaskRecord> parse_task(ByteReader &body, bool exit) {
    TaskRecord task;
    task.exit = exit;
    task.pid = TRY(body.read<uint32_t>());
    task.parent_pid = TRY(body.read<uint32_t>());
    task.tid = TRY(body.read<uint32_t>());
    task.parent_tid = TRY(body.read<uint32_t>());
    TRY(body.skip(sizeof(uint64_t))); // the time again
    return task;
}

Result<LostRecord> parse_lost(ByteReader &body) {
    TRY(body.skip(sizeof(uint64_t))); // the event's id
    return LostRecord{TRY(body.read<uint64_t>())};
}

} // namespace

Result<SidebandRecord> parse_record(Bytes bytes) {
    ByteReader whole(bytes, "perf record");
    const auto header = TRY(whole.read_struct<perf_event_header>());
    if (header.size != bytes.size())
        return Unexpected(whole.error_at(6, format("says it has {} bytes, but {} are there", header.size, bytes.size())));
    if (whole.left() < kSampleId) return Unexpected(whole.error_at(8, "has no sample_id"));
    ByteReader body(TRY(whole.take(whole.left() - kSampleId)), "perf record", 8);

    SidebandRecord record;
    record.pid = TRY(whole.read<uint32_t>());
    record.tid = TRY(whole.read<uint32_t>());
    record.t_ns = TRY(whole.read<uint64_t>());
    record.cpu = TRY(whole.read<uint32_t>());
    switch (header.type) {
    case PERF_RECORD_MMAP2: record.what = TRY(parse_map(body, header.misc)); break;
    case PERF_RECORD_COMM: record.what = TRY(parse_comm(body, header.misc)); break;
    case PERF_RECORD_FORK: record.what = TRY(parse_task(body, false)); break;
    case PERF_RECORD_EXIT: record.what = TRY(parse_task(body, true)); break;
    case PERF_RECORD_LOST: record.what = TRY(parse_lost(body)); break;
    default: record.what = OtherRecord{header.type};
    }
    return record;
}

} // namespace rawbpf::inline v0
