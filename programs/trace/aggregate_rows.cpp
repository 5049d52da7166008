// What the map of groups holds, as rows: the CPUs' numbers put together, the largest group first.
//
// Nothing is ever taken out of the map while programs run: one that has just found its group would add to what is gone. So what
// came within an interval (--every) is the difference of two readings. Least and most have no difference.
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "programs/trace/aggregate.h"
#include "runtime/base/bytes.h"
#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/kernel/map.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr uint64_t kSign = uint64_t{1} << 63;

bool keeps_most(const Measure &m) { return m.kind == Measure::Kind::least || m.kind == Measure::Kind::most; }

// What the programs keep of least and most, as the value itself.
uint64_t plain(const Measure &m, const GroupLayout::Cell &cell, uint64_t kept) {
    if (m.kind == Measure::Kind::least) kept = ~kept;
    return cell.is_signed ? kept ^ kSign : kept;
}

uint64_t in_all(const std::vector<uint64_t> &buckets) {
    uint64_t out = 0;
    for (const uint64_t n : buckets) out += n;
    return out;
}

} // namespace

std::vector<GroupRow> group_rows(const AggregateOptions &options, const GroupLayout &layout, std::string_view keys,
                                 std::string_view values, size_t cpus) {
    const size_t stride = (size_t{layout.value_bytes} + 7) / 8 * 8;
    const size_t entries = layout.key_bytes ? keys.size() / layout.key_bytes : 0;
    std::vector<GroupRow> out;
    out.reserve(entries);
    const auto word = [&](size_t entry, size_t cpu, size_t offset) {
        uint64_t value = 0;
        const size_t at = (entry * cpus + cpu) * stride + offset;
        if (at + 8 <= values.size()) std::memcpy(&value, values.data() + at, 8);
        return value;
    };
    for (size_t entry = 0; entry < entries; ++entry) {
        GroupRow row;
        row.key = keys.substr(entry * layout.key_bytes, layout.key_bytes);
        row.cells.resize(options.measures.size());
        for (size_t cpu = 0; layout.counted && cpu < cpus; ++cpu) row.count += word(entry, cpu, 0);
        bool known = layout.counted;
        for (size_t i = 0; i < options.measures.size(); ++i) {
            const Measure &m = options.measures[i];
            std::vector<uint64_t> &cell = row.cells[i];
            cell.resize(m.words());
            for (size_t cpu = 0; cpu < cpus; ++cpu)
                for (size_t w = 0; w < cell.size(); ++w) {
                    const uint64_t here = word(entry, cpu, layout.cells[i].offset + 8 * w);
                    cell[w] = keeps_most(m) ? std::max(cell[w], here) : cell[w] + here;
                }
            if (m.is_histogram() && !known) row.count = in_all(cell), known = true;
            if (keeps_most(m)) cell[0] = plain(m, layout.cells[i], cell[0]);
        }
        out.push_back(std::move(row));
    }
    return out;
}

void join_groups(const AggregateOptions &options, const GroupLayout &layout, GroupRow &into, const GroupRow &more) {
    if (more.count == 0) return;
    const bool first = std::exchange(into.count, into.count + more.count) == 0;
    for (size_t i = 0; i < options.measures.size(); ++i) {
        const Measure &m = options.measures[i];
        const uint64_t turned = layout.cells[i].is_signed ? kSign : 0; // so that numbers compare as they are ordered
        for (size_t w = 0; w < into.cells[i].size(); ++w) {
            uint64_t &kept = into.cells[i][w];
            const uint64_t other = more.cells[i][w];
            if (!keeps_most(m))
                kept += other;
            else if (first || ((other ^ turned) < (kept ^ turned)) == (m.kind == Measure::Kind::least))
                kept = other;
        }
    }
}

Result<std::vector<GroupRow>> read_groups(const Map &map, const AggregateOptions &options, const GroupLayout &layout) {
    const Map::Entries entries = TRY_IN(map.read_all(), "the groups");
    const size_t stride = (size_t{layout.value_bytes} + 7) / 8 * 8;
    const size_t cpus = map.per_cpu() && stride != 0 ? map.lookup_size() / stride : 1;
    const auto text = [](const std::vector<std::byte> &bytes) {
        return std::string_view(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    };
    return group_rows(options, layout, text(entries.keys), text(entries.values), cpus);
}

std::vector<GroupRow> groups_since(const AggregateOptions &options, const std::vector<GroupRow> &before,
                                   const std::vector<GroupRow> &now) {
    std::map<std::string_view, const GroupRow *> known;
    for (const GroupRow &row : before) known.emplace(row.key, &row);
    std::vector<GroupRow> out;
    for (const GroupRow &row : now) {
        GroupRow left = row;
        if (const auto at = known.find(row.key); at != known.end()) {
            const GroupRow &old = *at->second;
            left.count -= old.count;
            for (size_t i = 0; i < options.measures.size(); ++i)
                for (size_t w = 0; !keeps_most(options.measures[i]) && w < left.cells[i].size(); ++w)
                    left.cells[i][w] -= old.cells[i][w];
        }
        if (left.count != 0) out.push_back(std::move(left));
    }
    return out;
}

void sort_groups(const AggregateOptions &options, const GroupLayout &layout, bool by_count, std::vector<GroupRow> &rows) {
    // Numbers of keys are little-endian on all machines that this runs on; groups that are equal stand in their keys' order.
    const auto key_before = [&](const GroupRow &a, const GroupRow &b) {
        for (const GroupLayout::Part &part : layout.parts) {
            const int differ = std::memcmp(a.key.data() + part.offset, b.key.data() + part.offset, part.bytes);
            if (differ == 0) continue;
            if (part.text) return differ < 0;
            const auto left = load<uint64_t>(reinterpret_cast<const std::byte *>(a.key.data()) + part.offset),
                       right = load<uint64_t>(reinterpret_cast<const std::byte *>(b.key.data()) + part.offset);
            return part.type.is_signed ? static_cast<int64_t>(left) < static_cast<int64_t>(right) : left < right;
        }
        return false;
    };
    const bool measured = !by_count && !options.measures.empty() && !options.measures[0].is_histogram();
    const auto size = [&](const GroupRow &row) -> long double {
        if (!measured) return static_cast<long double>(row.count);
        const uint64_t raw = row.cells[0][0];
        const long double value =
            layout.cells[0].is_signed ? static_cast<long double>(static_cast<int64_t>(raw)) : static_cast<long double>(raw);
        return options.measures[0].kind == Measure::Kind::average && row.count ? value / static_cast<long double>(row.count)
                                                                               : value;
    };
    stable_sort(rows, [&](const GroupRow &a, const GroupRow &b) {
        const long double left = size(a), right = size(b);
        return left != right ? left > right : key_before(a, b);
    });
}

} // namespace rawbpf::inline v0::trace
