// From a table to bytes in the pools. Rows of neighbouring pages go together into pieces of 64 KiB or so: that fills pools well
// and leaves few pieces to keep track of. The numbers of rules, which a table has for itself, become those of the map on the way.
//
//      Table   pages | 0 | 1 | 2 | 3 |          rows | ........ | ... | ...... |
//                      |                               \_ piece _/ \_ piece _/
//      pool    directory: 1 MiB at most,  { position of the first row, how many }, one a page
//
// Table or frame pointers? A file without rows goes by frame pointers: what was compiled without tables. In one with rows they
// are tried wherever no row says anything: V8's built-in functions, assembly. Whether they lead anywhere is looked at as the
// stack is walked (code_patterns.h).
#include "programs/unwind/tables.h"

#include <algorithm>
#include <cstring>
#include <elf.h>

#include "programs/unwind/program.h"
#include "runtime/base/format.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::unwind {

namespace {

constexpr uint64_t kPageBytes = uint64_t{1} << UNWIND_PAGE_BITS;
constexpr uint32_t kPieceRows = 16 << 10;
constexpr uint64_t kMostPages = UINT16_MAX;
constexpr uint64_t kUniformCode = 256 << 20;   // of code whose frames are alike: what YJIT and opcache take at most
constexpr uint64_t kMostTableBytes = 32 << 20; // of .eh_frame: five times libLLVM's, a second of work

bool is_go(const elf::Elf &file) { return file.find_section(".gopclntab") || file.find_section(".go.buildinfo"); }

std::vector<Tables::Segment> code_of(const elf::Elf &file) {
    std::vector<Tables::Segment> out;
    for (const elf::Segment &segment : file.segments())
        if (segment.type == PT_LOAD && (segment.flags & PF_X) && segment.file_size != 0)
            out.push_back({segment.offset, segment.address, segment.file_size});
    return out;
}

} // namespace

uint32_t Tables::find(const std::string &identity) const {
    for (uint32_t i = 0; i < modules_.size(); ++i)
        if (modules_[i].identity == identity) return i;
    return kNone;
}

uint32_t Tables::slot(std::string identity) {
    uint32_t at = find(identity);
    if (at != kNone) return at;
    at = static_cast<uint32_t>(modules_.size());
    modules_.emplace_back();
    modules_.back().identity = std::move(identity);
    return at;
}

uint32_t Tables::add_without_rows(std::string identity) {
    const uint32_t at = slot(std::move(identity));
    modules_[at].state = State::by_fp;
    return at;
}

uint32_t Tables::refuse(std::string identity, std::string why) {
    const uint32_t at = slot(std::move(identity));
    modules_[at].state = State::refused;
    modules_[at].why = std::move(why);
    return at;
}

uint32_t Tables::load(const elf::Elf &file, std::string identity, uint64_t now_ns) {
    if (const uint32_t known = find(identity); known != kNone && modules_[known].state == State::resident) return known;
    uint64_t table_bytes = 0;
    for (const char *name : {".eh_frame", ".debug_frame"})
        if (const elf::Section *section = file.find_section(name)) table_bytes += section->size;
    if (table_bytes > kMostTableBytes)
        return refuse(std::move(identity),
                      format("{}: {} MB of unwind information are too many", file.name(), table_bytes >> 20));
    auto table = build_table(file);
    if (!table) return refuse(std::move(identity), table.error().message());
    const bool by_fp = is_go(file) || table->stats.functions == 0; // of the latter only the vdso has a table
    return add(*table, code_of(file), by_fp ? Gaps::by_fp : Gaps::tried, std::move(identity), now_ns);
}

uint32_t Tables::add(const Table &table, std::vector<Segment> code, Gaps gaps, std::string identity, uint64_t now_ns) {
    const bool rows = !table.rows.empty() && !code.empty();
    const UnwindRule &elsewhere = gaps == Gaps::by_fp ? kByFramePointer : kGuess;
    return add(table, std::move(code), rows ? &elsewhere : nullptr, std::move(identity), now_ns);
}

uint32_t Tables::add_uniform(const UniformFrame &frame, uint64_t now_ns) {
    const UnwindRule rule = rule_of(frame);
    return add({}, {{0, 0, kUniformCode}}, &rule, format("frames of {} words, fp at {}", frame.words, frame.fp), now_ns);
}

uint32_t Tables::add(const Table &table, std::vector<Segment> code, const UnwindRule *elsewhere, std::string identity,
                     uint64_t now_ns) {
    const uint32_t at = slot(std::move(identity));
    Module &module = modules_[at];
    module.used_ns = now_ns;
    if (module.state == State::resident) return at;
    module.state = State::refused;
    module.segments = std::move(code);
    module.stats = table.stats;
    if (!elsewhere) {
        module.state = State::by_fp;
    } else if (place(module, table, *elsewhere)) {
        module.state = State::resident;
    } else {
        release(module);
        module.state = State::dropped;
    }
    return at;
}

bool Tables::place(Module &module, const Table &table, const UnwindRule &elsewhere) {
    // The table's pages, and all others that hold code.
    uint64_t first = table.base / kPageBytes, last = first + table.pages.size();
    for (const Segment &segment : module.segments) {
        if (segment.address + segment.size < segment.address) return false;
        first = std::min(first, segment.address / kPageBytes);
        last = std::max(last, (segment.address + segment.size + kPageBytes - 1) / kPageBytes);
    }
    last = std::min(last, first + kMostPages);
    const uint64_t skipped = table.base / kPageBytes - first; // pages in front of the table's
    if (skipped >= kMostPages) return false;

    std::vector<uint16_t> numbers;
    uint16_t guess = 0;
    const auto intern = [&](const UnwindRule &rule, uint16_t &into) {
        auto number = rules_.intern(rule);
        if (number) into = *number;
        return number.has_value();
    };
    if (!intern(elsewhere, guess)) return false;
    for (const UnwindRule &rule : table.rules) {
        numbers.push_back(0);
        if (!intern(rule, numbers.back())) return false;
    }
    if (!numbers.empty()) numbers[0] = guess;

    const auto allocate = [&](uint64_t bytes) -> std::optional<uint32_t> {
        if (bytes > UNWIND_POOL_BYTES) return std::nullopt;
        const auto size = static_cast<uint32_t>(bytes);
        auto position = pools_.allocate(size);
        while (!position && make_room_()) position = pools_.allocate(size);
        if (position) {
            module.pieces.emplace_back(*position, size);
            module.bytes += size;
        }
        return position;
    };
    const auto count = static_cast<uint32_t>(last - first);
    const auto directory = allocate(uint64_t{count} * sizeof(UnwindPage));
    if (!directory) return false;
    std::vector<UnwindPage> pages(count);

    const size_t known = std::min<size_t>(table.pages.size(), count - skipped);
    for (size_t from = 0; from < known;) {
        size_t to = from;
        uint64_t rows = 0;
        do rows += table.pages[to++].rows;
        while (to < known && rows + table.pages[to].rows <= kPieceRows);
        if (rows != 0) {
            const auto piece = allocate(rows * sizeof(uint32_t));
            if (!piece) return false;
            auto *out = reinterpret_cast<uint32_t *>(pools_.at(*piece));
            uint32_t at = 0;
            for (size_t i = from; i < to; ++i) {
                const TablePage &page = table.pages[i];
                pages[skipped + i] = {*piece + at * uint32_t{sizeof(uint32_t)}, page.rows};
                for (uint32_t row = page.first; row < page.first + page.rows; ++row)
                    out[at++] = UNWIND_ROW(UNWIND_ROW_LOW(table.rows[row]), numbers[UNWIND_ROW_RULE(table.rows[row])]);
            }
        }
        from = to;
    }

    std::optional<uint32_t> one_row; // for whole pages of code without any
    for (uint32_t i = 0; i < count; ++i) {
        const uint64_t begin = (first + i) * kPageBytes;
        const bool code = std::any_of(module.segments.begin(), module.segments.end(), [&](const Segment &s) {
            return begin < s.address + s.size && s.address < begin + kPageBytes;
        });
        if (pages[i].rows != 0 || !code) continue;
        if (!one_row) {
            one_row = allocate(sizeof(uint32_t));
            if (!one_row) return false;
            const uint32_t row = UNWIND_ROW(0, guess);
            std::memcpy(pools_.at(*one_row), &row, sizeof row);
        }
        pages[i] = {*one_row, 1};
    }
    std::memcpy(pools_.at(*directory), pages.data(), pages.size() * sizeof(UnwindPage));
    module.base = first * kPageBytes;
    module.directory = *directory;
    module.pages = count;
    return true;
}

void Tables::release(Module &module) {
    for (const auto &[position, bytes] : module.pieces) pools_.release(position, bytes);
    module.pieces.clear();
    module.bytes = module.pages = 0;
}

void Tables::drop(uint32_t module) {
    release(modules_[module]);
    modules_[module].state = State::dropped;
    ++drops_;
}

uint32_t Tables::least_used(uint64_t before_ns) const {
    uint32_t best = kNone;
    for (uint32_t i = 0; i < modules_.size(); ++i) {
        const Module &module = modules_[i];
        if (module.state != State::resident || module.used_ns >= before_ns) continue;
        if (best == kNone || module.used_ns < modules_[best].used_ns) best = i;
    }
    return best;
}

UnwindMapping Tables::mapping(uint32_t number, uint64_t start, uint64_t end, uint64_t file_offset) const {
    UnwindMapping out{};
    out.start = start;
    out.end = end;
    out.kind = UNWIND_BY_NONE;
    if (number == kNone) return out;
    const Module &module = modules_[number];
    if (module.state == State::by_fp) out.kind = UNWIND_BY_FP;
    if (module.state != State::resident) return out;
    const uint64_t page = sys::page_size(); // a mapping begins where the segment's first page does
    for (const Segment &segment : module.segments) {
        if (file_offset < segment.offset / page * page || file_offset >= segment.offset + segment.size) continue;
        const uint64_t address = segment.address + (file_offset - segment.offset);
        out.bias = start - (address - module.base);
        out.pages = module.directory;
        out.page_count = static_cast<uint16_t>(module.pages);
        out.kind = UNWIND_BY_TABLE;
        return out;
    }
    return out;
}

} // namespace rawbpf::inline v0::unwind
