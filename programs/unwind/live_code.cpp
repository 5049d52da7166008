// A copied stack is walked some milliseconds after the sample. A process that lives no longer is gone by then, or has executed
// another program, and its memory with it. But of a file that was mapped the bytes are those of the file, which outlives it; only
// code made at run time is nowhere else. (What differs are breakpoints, which uprobes put over code: the file doesn't have them.)
//
// Files are held open, the last ones used: a file can be deleted, and its process gone, before its next copied stack is walked.
#include "programs/unwind/live_code.h"

#include <algorithm>
#include <utility>

#include <fcntl.h>

#include "runtime/base/bytes.h"
#include "runtime/base/format.h"
#include "runtime/symbols/vdso.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::unwind {

void LiveCode::begin(uint32_t pid, std::span<const CodeMapping> mappings) {
    pid_ = pid;
    mappings_ = mappings;
    memory_ = {};
    asked_ = false;
    for (Held &one : held_)
        if (!one.file) one.taken = false; // another process may lead to it
}

const CodeMapping *LiveCode::find(uint64_t address) const {
    const auto next = std::upper_bound(mappings_.begin(), mappings_.end(), address,
                                       [](uint64_t wanted, const CodeMapping &mapping) { return wanted < mapping.start; });
    return next == mappings_.begin() || address >= (next - 1)->end ? nullptr : &*(next - 1);
}

LiveCode::Held *LiveCode::held(uint32_t module) {
    const auto at = std::find_if(held_.begin(), held_.end(), [&](const Held &one) { return one.taken && one.module == module; });
    if (at == held_.end()) return nullptr;
    at->used = ++uses_;
    return &*at;
}

LiveCode::Held &LiveCode::place(uint32_t module) {
    const auto older = [](const Held &a, const Held &b) { return std::pair(a.taken, a.used) < std::pair(b.taken, b.used); };
    Held &oldest = *std::min_element(held_.begin(), held_.end(), older);
    oldest = {true, module, {}, ++uses_};
    return oldest;
}

const Fd &LiveCode::hold(uint32_t module, Fd file) {
    Held *known = held(module);
    Held &into = known ? *known : place(module);
    into.file = std::move(file);
    return into.file;
}

bool LiveCode::from_file(const CodeMapping &mapping, uint64_t address, std::span<std::byte> into) {
    const uint64_t offset = address - mapping.start + mapping.file_offset;
    if (mapping.kind == CodeMapping::Kind::vdso) {
        const auto image = symbols::vdso_image();
        if (!image || offset > image->size() || image->size() - offset < into.size()) return false;
        std::copy_n(image->begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
        return true;
    }
    Held *file = held(mapping.module);
    if (!file) {
        auto opened = files_.open(pid_, mapping);
        file = &place(mapping.module);
        if (opened) file->file = std::move(*opened);
    }
    return file->file && sys::pread(file->file.get(), into.data(), into.size(), offset).value_or(0) == into.size();
}

bool LiveCode::from_memory(uint64_t address, std::span<std::byte> into) {
    if (!std::exchange(asked_, true))
        if (auto memory = sys::open(format("/proc/{}/mem", pid_), O_RDONLY)) memory_ = std::move(*memory);
    return memory_ && sys::pread(memory_.get(), into.data(), into.size(), address).value_or(0) == into.size();
}

bool LiveCode::read(uint64_t address, std::span<std::byte> into) {
    sys::Because why("code in a copied stack that no table describes");
    const CodeMapping *mapping = find(address);
    if (mapping && mapping->has_table() && from_file(*mapping, address, into)) return true;
    return from_memory(address, into);
}

} // namespace rawbpf::inline v0::unwind
