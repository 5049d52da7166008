// The stacks that groups are told apart by (`--by stack`): numbers in the kernel's map, function names for the reader.
//
//      the kernel   group's key: | comm 16 | stack 8 |      the stack's hash; the first record with it goes into the ring
//      record       --add-->     hash: which functions
//      groups       --name-->    rows with the same functions become one: each process has hashes of its own
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "programs/processes/stacks.h"
#include "programs/session/stack_counting.h"
#include "programs/trace/aggregate.h"
#include "programs/trace/names.h"
#include "programs/trace/tracer.h"

namespace rawbpf::inline v0::trace {

class GroupStacks {
  public:
    explicit GroupStacks(Names &names);

    /// The kernel gives stacks their hashes from here on. The tracer must outlive this.
    [[nodiscard]] Result<void> start(Tracer &tracer);
    /// A record: a stack that is new.
    void add(const Event &event);
    /// To be called often.
    [[nodiscard]] Result<void> tick(uint64_t now_ns);
    /// Replaces hashes by numbers of get(), and joins the rows that are the same then.
    [[nodiscard]] std::vector<GroupRow> name(const AggregateOptions &options, const GroupLayout &layout,
                                             std::vector<GroupRow> rows);
    [[nodiscard]] const NamedStack &get(uint64_t number) const { return stacks_[number]; }

  private:
    [[nodiscard]] uint64_t number_of(uint64_t hash);
    [[nodiscard]] uint64_t add_named(NamedStack stack);
    void name_all();

    Names &names_;
    session::StackCounts counts_;
    std::unordered_map<uint64_t, processes::InternedSample> unnamed_; ///< by hash
    std::unordered_map<uint64_t, uint64_t> numbers_;                  ///< hash -> number
    std::map<std::string, uint64_t> known_;                           ///< the frames as text -> number
    std::vector<NamedStack> stacks_;
};

} // namespace rawbpf::inline v0::trace
