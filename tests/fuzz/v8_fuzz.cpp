// What a process with V8 in it says of its code: tables of positions, of inlinings, of bytecodes, and a heap of such objects.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "programs/languages/memory.h"
#include "programs/languages/v8/code.h"
#include "programs/languages/v8/exits.h"
#include "programs/languages/v8/heap.h"
#include "programs/languages/v8/layout.h"
#include "programs/languages/v8/positions.h"

using namespace rawbpf;
using namespace rawbpf::languages;

namespace {

constexpr uint64_t kBase = 0x10000;

/// The input again and again, so that each address has something.
class Repeated final : public Pages {
  public:
    explicit Repeated(Bytes bytes) : bytes_(bytes) {}
    bool read(uint64_t address, std::span<std::byte> page) override {
        if (address < kBase || address >= kBase * 2 || bytes_.empty()) return false;
        for (size_t i = 0; i < page.size(); ++i) page[i] = bytes_[(address - kBase + i) % bytes_.size()];
        return true;
    }

  private:
    Bytes bytes_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const Bytes bytes(reinterpret_cast<const std::byte *>(data), size);
    const v8::Limits limits{1 << 16, 1 << 16, 4};
    if (const auto positions = v8::read_positions(bytes, limits))
        for (const v8::Position &position : *positions)
            if (position.code >= 1 << 16 || position.text > 1 << 30 || position.inlined >= 4) std::abort();
    if (const auto inlinings = v8::read_inlinings(bytes))
        for (size_t i = 0; i < inlinings->size(); ++i)
            if ((*inlinings)[i].inlined >= static_cast<int32_t>(i)) std::abort();
    const auto sizes = v8::BytecodeSizes::find(bytes);
    const v8::BytecodeSizes some(bytes.first(std::min<size_t>(size, 300)));
    if (const auto at = v8::bytecode_at(bytes, bytes, sizes ? *sizes : some, 40);
        at && (*at < -1 || *at >= static_cast<int32_t>(size)))
        std::abort();

    std::vector<uint64_t> words(size / sizeof(uint64_t));
    if (!words.empty()) std::memcpy(words.data(), data, words.size() * sizeof(uint64_t));
    if (const auto exits = v8::read_exits(words)) {
        const v8::Exit *exit = v8::exit_of_call(bytes, *exits, 7);
        if (exit && (exit < exits->data() || exit >= exits->data() + exits->size())) std::abort();
    }
    const std::vector<v8::Exit> some_exits = {{0, 0, 40}, {3, static_cast<int32_t>(size) / 2, 44}};
    if (const v8::Exit *exit = v8::exit_of_call(bytes, some_exits, 7)) (void)v8::has_one_frame(bytes, exit->translation);

    Repeated pages(bytes);
    Memory memory(pages, 64);
    v8::Layout objects;
    objects.instance_type = 12, objects.array_length = 8, objects.array_data = 16, objects.name_or_scope = 24,
    objects.script = 40;
    for (const bool apart : {true, false}) {
        v8::CodeLayout layout;
        layout.bytecodes_data = 54, layout.begin = apart ? 32 : 128, layout.bytes_type = 1, layout.trusted_bytes_type = 2;
        layout.bytecodes_type = 3, layout.code_size = 48;
        (apart ? layout.code_type : layout.container_type) = 4;
        v8::Heap heap(memory, objects);
        v8::CodeReader reader(memory, heap, layout, objects, &some);
        (void)reader.interpreted({.at = kBase + 0x401}, kBase + 1, uint64_t{60} << 32, 1 << 16);
        if (const auto code = reader.code_at(kBase + 0x800)) (void)reader.spots(*code, kBase + 0x800, {}, 1 << 16);
    }
    return 0;
}
