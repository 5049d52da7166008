// jit-PID.dump: whatever a process has mapped under that name.
#include <cstdint>
#include <cstdlib>

#include "runtime/symbols/jit_dump.h"
#include "runtime/unwind/made_code.h"

using namespace rawbpf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const Bytes bytes(reinterpret_cast<const std::byte *>(data), size);
    symbols::JitDump dump;
    if (!dump.take(bytes, 1)) return 0;
    if (dump.offset() < size && dump.offset() > 0)
        (void)dump.take(bytes.subspan(dump.offset()), 2); // what is left: no whole record
    symbols::CompiledCode code = dump.code();
    code.settle();
    for (uint64_t address : {uint64_t{0}, uint64_t{0x1000}, uint64_t{0x1010}, uint64_t{0x7f0000000000}, UINT64_MAX})
        for (uint64_t t : {uint64_t{0}, uint64_t{15}, UINT64_MAX})
            if (auto name = code.find(address, code.layer_at(address, t)); name && name->name.offset > address) std::abort();
    for (uint64_t address : {uint64_t{0x1000}, uint64_t{0x1010}, uint64_t{0x7f0000000000}})
        if (const auto told = dump.unwinding(address))
            (void)unwind::rule_of_made_code(Arch::x86_64, told->eh_frame, told->address, address);
    return 0;
}
