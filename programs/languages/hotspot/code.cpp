#include "programs/languages/hotspot/code.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

#include "programs/languages/hotspot/fields.h"
#include "programs/unwind/code_patterns.h"
#include "programs/unwind/program.h"
#include "runtime/symbols/long_names.h"

namespace rawbpf::inline v0::languages::hotspot {
namespace {

constexpr uint64_t kMostHeaps = 16;
constexpr size_t kMostCode = 1 << 18;
constexpr size_t kForget = 256;                 // blocks: their pages are read once
constexpr uint64_t kMostHeapBytes = 1ull << 31; // the JVM's own limit of ReservedCodeCacheSize is 2 GB
constexpr uint64_t kMostSegmentBits = 16;
constexpr size_t kLongestBlobName = 128;
constexpr uint64_t kMostFrameWords = INT16_MAX; // a rule's numbers

Kind kind_of(std::string_view name, uint32_t frame_words) {
    if (name == "nmethod" || name == "native nmethod") return Kind::method;
    if (name == "Interpreter") return Kind::interpreter;
    if (frame_words != 0) return Kind::stub;
    for (const std::string_view begin : {"I2C/C2I adapters", "vtable chunks", "MethodHandles adapters"})
        if (name.starts_with(begin)) return Kind::frameless;
    return Kind::routine;
}

/// Reads blobs, and each name once.
class Blobs {
  public:
    Blobs(Memory &memory, const Offsets &layout) : memory_(memory), layout_(layout) {}

    /// The blob at `at`, in a block that ends at `end`; nullopt: it isn't whole yet, or makes no sense.
    std::optional<Code> read(uint64_t at, uint64_t end) {
        const auto number = [&](const Number &field) { return read_number(memory_, at, field); };
        const auto begins = number(layout_.code_begin), ends = number(layout_.code_end), frame = number(layout_.blob_frame_size),
                   complete = number(layout_.blob_frame_complete), name = number(layout_.blob_name);
        if (!begins || !ends || !frame || !complete || !name) return std::nullopt;
        const uint64_t base = layout_.code_by_offset ? at : 0;
        Code out;
        out.at = at;
        out.begin = base + *begins;
        out.end = base + *ends;
        if (out.begin < at || out.end > end || out.begin >= out.end) return std::nullopt;
        out.name = this->name(*name);
        if (out.name.empty()) return std::nullopt;
        out.frame_words = *frame <= kMostFrameWords ? static_cast<uint32_t>(*frame) : 0; // -1: none of one size
        // -1: the frame is never complete, says the JVM (CodeOffsets::frame_never_safe), and means stubs that nobody walks.
        out.complete = *complete < out.end - out.begin ? static_cast<uint32_t>(*complete) : 0;
        out.kind = kind_of(out.name, out.frame_words);
        // No table tells it (frame_x86.hpp: interpreter_frame_bcp_offset). JDK 9 has put the class's mirror in front of it.
        if (out.kind == Kind::interpreter) out.position = layout_.one_heap ? -7 : -8;
        if (out.kind != Kind::method) return out;
        const auto method = number(layout_.method), id = number(layout_.compile_id);
        if (!method || !id || *method == 0) return std::nullopt;
        out.method = *method;
        out.compile_id = static_cast<uint32_t>(*id);
        out.name.clear();
        return out;
    }

  private:
    const std::string &name(uint64_t address) {
        const auto [at, fresh] = names_.try_emplace(address);
        if (fresh) at->second = symbols::within_bound(memory_.text(address, kLongestBlobName).value_or(""));
        return at->second;
    }

    Memory &memory_;
    const Offsets &layout_;
    std::unordered_map<uint64_t, std::string> names_;
};

} // namespace

std::optional<Offsets> layout_of(const VmStructs &structs, std::string &why) {
    Offsets out;
    Fields fields(structs, why);
    const auto heaps = structs.variable("CodeCache", "_heaps"), only = structs.variable("CodeCache", "_heap");
    if (!heaps && !only) {
        fields.missing("CodeCache", "_heaps");
        return std::nullopt;
    }
    out.heaps = heaps ? *heaps : *only;
    out.one_heap = !heaps;
    // An array of pointers lies as one of int does, which is the one that is told of.
    const bool array =
        (structs.offset("GrowableArrayBase", "_len") ? fields.take(out.heap_count, "GrowableArrayBase", {"_len"})
                                                     : fields.take(out.heap_count, "GenericGrowableArray", {"_len"})) &&
        fields.take(out.heap_array, "GrowableArray<int>", {"_data"});
    const bool heap =
        fields.take_offset(out.memory, "CodeHeap", {"_memory"}) && fields.take_offset(out.segments, "CodeHeap", {"_segmap"}) &&
        fields.take(out.segment_bits, "CodeHeap", {"_log2_segment_size"}) && fields.take(out.low, "VirtualSpace", {"_low"}) &&
        fields.take(out.high, "VirtualSpace", {"_high"}) && fields.take(out.reserved_low, "VirtualSpace", {"_low_boundary"}) &&
        fields.take(out.reserved_high, "VirtualSpace", {"_high_boundary"}) &&
        fields.take(out.block_length, "HeapBlock::Header", {"_length"}) &&
        fields.take(out.block_used, "HeapBlock::Header", {"_used"}) && fields.take_size(out.block_bytes, "HeapBlock");
    out.code_by_offset = !structs.offset("CodeBlob", "_code_begin").has_value();
    const bool blob = fields.take(out.blob_name, "CodeBlob", {"_name"}) &&
                      fields.take(out.blob_frame_size, "CodeBlob", {"_frame_size"}) &&
                      fields.take(out.blob_frame_complete, "CodeBlob", {"_frame_complete_offset"}) &&
                      fields.take(out.code_begin, "CodeBlob", {"_code_begin", "_code_offset"}) &&
                      fields.take(out.code_end, "CodeBlob", {"_code_end", "_data_offset"});
    const bool own_method = structs.offset("nmethod", "_method").has_value(); // CompiledMethod is of JDK 9 to 22
    const bool names = fields.take(out.method, own_method ? "nmethod" : "CompiledMethod", {"_method"}) &&
                       fields.take(out.compile_id, "nmethod", {"_compile_id"});
    if (!array || !heap || !blob || !names) return std::nullopt;
    auto methods = methods_of(structs, why);
    if (!methods) return std::nullopt;
    out.methods = std::move(*methods);
    out.scopes = scopes_of(structs);
    return out;
}

std::optional<std::vector<Heap>> read_heaps(Memory &memory, const Offsets &layout) {
    const auto array = memory.word(layout.heaps);
    if (!array || *array == 0) return std::nullopt;
    const auto count = layout.one_heap ? std::optional<uint64_t>(1) : read_number(memory, *array, layout.heap_count),
               first = layout.one_heap ? std::optional(layout.heaps) : read_number(memory, *array, layout.heap_array);
    if (!count || !first || *count == 0 || *count > kMostHeaps) return std::nullopt;
    std::vector<Heap> out;
    for (uint64_t i = 0; i < *count; ++i) {
        const auto list = memory.word(*first + i * sizeof(uint64_t));
        if (!list || *list == 0) return std::nullopt;
        const uint64_t space = *list + layout.memory;
        const auto begin = read_number(memory, space, layout.reserved_low),
                   end = read_number(memory, space, layout.reserved_high), low = read_number(memory, space, layout.low),
                   high = read_number(memory, space, layout.high),
                   segments = read_number(memory, *list + layout.segments, layout.low),
                   bits = read_number(memory, *list, layout.segment_bits);
        if (!begin || !end || !low || !high || !segments || !bits) return std::nullopt;
        const bool sane = *begin <= *low && *low <= *high && *high <= *end && *end - *begin <= kMostHeapBytes &&
                          *bits <= kMostSegmentBits && *begin != 0;
        if (!sane) return std::nullopt;
        out.push_back({*begin, *end, *low, *high, *list, *segments, static_cast<uint32_t>(*bits)});
    }
    return out;
}

// The heaps change meanwhile. A block that isn't a beginning by the map of segments ends the walk: behind the last one there is
// whatever lay there before.
std::vector<Code> read_code(Memory &memory, const Offsets &layout, const std::vector<Heap> &heaps) {
    std::vector<Code> out;
    Blobs blobs(memory, layout);
    size_t blocks = 0;
    for (const Heap &heap : heaps) {
        const uint64_t segment = 1ull << heap.segment_bits;
        for (uint64_t at = heap.low; at < heap.high && out.size() < kMostCode;) {
            if (++blocks % kForget == 0) memory.forget();
            const auto length = read_number(memory, at, layout.block_length), used = read_number(memory, at, layout.block_used);
            if (!length || !used || *length == 0 || *length > (heap.high - at) >> heap.segment_bits) break;
            const uint64_t next = at + *length * segment;
            if (*used != 0) {
                std::byte begins{};
                if (!memory.read(heap.segments + ((at - heap.low) >> heap.segment_bits), std::span(&begins, 1)) ||
                    begins != std::byte{0})
                    break;
                if (auto code = blobs.read(at + layout.block_bytes, next)) out.push_back(std::move(*code));
            }
            at = next;
        }
    }
    std::sort(out.begin(), out.end(), [](const Code &a, const Code &b) { return a.begin < b.begin; });
    return out;
}

// From a segment within a block the map leads back, by its value at a time, to the block's first, which has 0.
std::optional<Code> read_code_at(Memory &memory, const Offsets &layout, const std::vector<Heap> &heaps, uint64_t pc) {
    constexpr int kMostSteps = 1 << 12; // values go up to 254
    constexpr auto kFree = std::byte{0xff};
    const auto heap = std::find_if(heaps.begin(), heaps.end(), [&](const Heap &one) { return pc >= one.low && pc < one.high; });
    if (heap == heaps.end()) return std::nullopt;
    uint64_t segment = (pc - heap->low) >> heap->segment_bits;
    for (int step = 0; step < kMostSteps; ++step) {
        std::byte back{};
        if (!memory.read(heap->segments + segment, std::span(&back, 1)) || back == kFree) return std::nullopt;
        if (back != std::byte{0}) {
            if (std::to_integer<uint64_t>(back) > segment) return std::nullopt;
            segment -= std::to_integer<uint64_t>(back);
            continue;
        }
        const uint64_t block = heap->low + (segment << heap->segment_bits);
        const auto length = read_number(memory, block, layout.block_length), used = read_number(memory, block, layout.block_used);
        if (!length || !used || *used == 0 || *length > (heap->high - block) >> heap->segment_bits) return std::nullopt;
        auto code = Blobs(memory, layout).read(block + layout.block_bytes, block + (*length << heap->segment_bits));
        return code && pc >= code->begin && pc < code->end ? code : std::nullopt;
    }
    return std::nullopt;
}

bool is_there(Memory &memory, const Offsets &layout, const Code &code) {
    const auto method = read_number(memory, code.at, layout.method), id = read_number(memory, code.at, layout.compile_id);
    return method && id && *method == code.method && static_cast<uint32_t>(*id) == code.compile_id;
}

// The virtual machine's tables don't tell of the barrier's address (StubRoutines::cont_returnBarrier()). The same piece of code
// calls the virtual machine for frames, and such a call's return address is none.
bool is_return_barrier(Memory &memory, const Code &code, uint64_t address) {
    if (code.kind != Kind::routine || code.name.find("continuation") == std::string::npos) return false;
    const auto before = memory.word(address - sizeof(uint64_t));
    const auto calls = unwind::call_forms(Arch::x86_64);
    return before && std::none_of(calls.begin(), calls.end(),
                                  [&](const unwind::CallForm &form) { return (*before >> form.shift & form.mask) == form.bits; });
}

void put_code(std::vector<Code> &list, Code code) {
    const auto first = std::upper_bound(list.begin(), list.end(), code.begin,
                                        [](uint64_t begin, const Code &other) { return begin < other.end; });
    const auto last = std::find_if(first, list.end(), [&](const Code &other) { return other.begin >= code.end; });
    list.insert(list.erase(first, last), std::move(code));
}

unwind::ListedRule rule_at(const Code &code, uint64_t pc) {
    switch (code.kind) {
    case Kind::interpreter: {
        // Offsets that no table tells (frame_x86.hpp: interpreter_frame_sender_sp_offset, interpreter_frame_method_offset).
        constexpr int16_t kSendersSp = -1, kMethod = -3;
        return {{UNWIND_FP, 0, 2, -2, -1}, kSendersSp, kMethod, code.position};
    }
    case Kind::frameless: return {unwind::kNoFrame};
    case Kind::routine: return {kGuess};
    case Kind::method:
    case Kind::stub: break;
    }
    if (code.frame_words == 0) return {kGuess};
    unwind::ListedRule out;
    out.rule = {UNWIND_SP, 0, static_cast<int16_t>(code.frame_words), -2, -1};
    if (pc - code.begin < code.complete) out.rule = unwind::kNoFrame;
    out.roughly = true;
    return out;
}

const Code *find_code(const std::vector<Code> &list, uint64_t pc) {
    const auto next =
        std::upper_bound(list.begin(), list.end(), pc, [](uint64_t at, const Code &code) { return at < code.begin; });
    return next == list.begin() || pc >= (next - 1)->end ? nullptr : &*(next - 1);
}

} // namespace rawbpf::inline v0::languages::hotspot
