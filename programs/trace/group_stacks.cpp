#include "programs/trace/group_stacks.h"

#include <cstring>
#include <utility>

#include "programs/trace/stack_text.h"
#include "runtime/base/bytes.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::trace {

GroupStacks::GroupStacks(Names &names) : names_(names), counts_([](const processes::InternedSample *, uint64_t) {}) {
    (void)add_named({}); // 0: nobody knows it
}

Result<void> GroupStacks::start(Tracer &tracer) {
    const StackCountingOptions *counting = tracer.counting();
    if (!counting) return {};
    if (!names_.following().watching())
        return fail(Errc::unsupported,
                    "--by stack: rawbpf doesn't learn what processes map, so it can't tell whose stacks they are");
    constexpr bool kAlways = true; // a group needs its hash also where nearly all stacks are new
    return counts_.start(tracer.object(), counting->stacks, kAlways);
}

void GroupStacks::add(const Event &event) {
    const processes::InternedSample sample = names_.locate(event);
    const uint64_t hash = event.key();
    counts_.met(hash, &sample);
    if (hash != 0 && !numbers_.contains(hash)) unnamed_.emplace(hash, sample);
}

Result<void> GroupStacks::tick(uint64_t now_ns) {
    TRY(counts_.tick(now_ns, names_.following().table().remaps()));
    if (!names_.full()) return {};
    TRY(counts_.start_anew()); // its samples are numbers of the tree
    name_all();
    names_.forget();
    return {};
}

uint64_t GroupStacks::add_named(NamedStack stack) {
    const auto [at, is_new] = known_.emplace(folded(stack), stacks_.size());
    if (is_new) stacks_.push_back(std::move(stack));
    return at->second;
}

void GroupStacks::name_all() {
    names_.name_all();
    for (const auto &[hash, sample] : unnamed_) numbers_[hash] = add_named(names_.name(sample));
    unnamed_.clear();
}

uint64_t GroupStacks::number_of(uint64_t hash) {
    const auto at = numbers_.find(hash);
    return at == numbers_.end() ? 0 : at->second; // its record is still in the ring, or there was no room for it
}

std::vector<GroupRow> GroupStacks::name(const AggregateOptions &options, const GroupLayout &layout, std::vector<GroupRow> rows) {
    name_all();
    std::map<std::string, size_t> places;
    std::vector<GroupRow> out;
    for (GroupRow &row : rows) {
        for (const GroupLayout::Part &part : layout.parts) {
            if (part.kind != GroupKey::Kind::stack) continue;
            const auto hash = load<uint64_t>(reinterpret_cast<const std::byte *>(row.key.data()) + part.offset);
            const uint64_t number = number_of(hash);
            std::memcpy(row.key.data() + part.offset, &number, sizeof number);
        }
        const auto [at, is_new] = places.emplace(row.key, out.size());
        if (is_new)
            out.push_back(std::move(row));
        else
            join_groups(options, layout, out[at->second], row);
    }
    return out;
}

} // namespace rawbpf::inline v0::trace
