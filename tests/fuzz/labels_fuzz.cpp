// OpenTelemetry's contexts: a process's payload, and a thread's record, of whatever bytes the process put there; and instructions
// of whatever bytes a file has.
#include <cstdint>
#include <cstdlib>

#include "programs/labels/layout.h"
#include "programs/labels/process_context.h"
#include "programs/labels/thread_context.h"
#include "programs/labels/x86_code.h"

using namespace rawbpf;
using namespace rawbpf::labels;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const Bytes bytes(reinterpret_cast<const std::byte *>(data), size);
    if (const auto process = parse_context(bytes)) {
        if (process->keys.size() > kMostKeys) std::abort();
        for (const auto &[key, value] : process->attributes)
            if (key.size() > kMostValue || value.size() > kMostValue) std::abort();
    }
    for (const uint64_t address : context_mappings({reinterpret_cast<const char *>(data), size})) (void)address;
    if (const auto thread = parse_thread_context(bytes)) {
        size_t total = 0;
        for (const auto &[key, value] : thread->attributes) total += 2 + value.size();
        if (total > size - LABEL_HEAD_BYTES) std::abort();
        (void)hex_id(thread->trace_id);
    }
    for (size_t at = 0; at < size;) {
        const auto one = decode_x86(bytes.subspan(at));
        if (!one) break;
        if (one->length == 0 || one->length > size - at || one->reg > 15 || one->rm > 15 || one->base > 15 || one->index > 15)
            std::abort();
        at += one->length;
    }
    return 0;
}
