// The sideband's parser on its own, and the ring's walk over the same bytes, starting near the end so that records wrap.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <linux/perf_event.h>
#include <sys/mman.h>

#include "runtime/events/perf_ring.h"

using namespace rawbpf;

namespace {

uint64_t sum; // every byte of every view is read, for the sanitizers to judge

void read_all(const SidebandRecord &record) {
    if (auto *map = std::get_if<MapRecord>(&record.what)) {
        for (std::byte b : map->build_id) sum += static_cast<uint8_t>(b);
        for (char c : map->file) sum += static_cast<uint8_t>(c);
        if (map->build_id.size() > 20 || map->address + map->length < map->address) std::abort();
    } else if (auto *comm = std::get_if<CommRecord>(&record.what)) {
        for (char c : comm->comm) sum += static_cast<uint8_t>(c);
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const Bytes bytes = std::as_bytes(std::span(data, size));
    if (auto record = parse_record(bytes)) read_all(*record);

    const size_t page = sys::page_size(), shown = std::min(size, page);
    auto *at = static_cast<std::byte *>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    auto *control = reinterpret_cast<perf_event_mmap_page *>(at);
    const size_t start = size ? (data[0] * 16u) & (page - 1) & ~size_t{7} : 0;
    for (size_t i = 0; i < shown; ++i) at[page + ((start + i) & (page - 1))] = bytes[i];
    control->data_tail = start;
    control->data_head = start + shown;
    auto ring = SidebandRing::over(sys::Mapping(at, 2 * page));
    ring->consume(read_all);
    if (ring->available() != 0) std::abort();
    return 0;
}
