// SPDX-License-Identifier: MIT
// The walk: every instruction that the verifier looked at, in order, with what it changed. PURE.
//
//      step 7: instruction 4, after step 6          r0 = map_value_or_null
//      step 8: instruction 5, after step 7          splits: r0 is 0 on one side
//      step 12: instruction 9, after step 8         the other side, taken up later
//
// Steps are a tree: following `parent` from any of them back gives the path that led there.
//
// Memory: 20 bytes a step, of which there are a million at most, 16 a node, and some 180 for each value that a step has changed;
// of these the last kKept are kept, so that all of it stays below 100 MB. A path longer than that has values only at its end.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "runtime/verifier/value.h"

namespace rawbpf::inline v0::verifier {

/// How a step ended.
enum class StepEnd : uint8_t {
    next,    ///< went on
    split,   ///< went on in two directions
    decided, ///< a comparison that can only go one way
    pruned,  ///< what is known here was known before: `other` is the step that was here then
    exit,    ///< the program's end
    refused, ///< the verdict
};

/// One instruction, looked at once.
struct Step {
    uint32_t insn;               ///< counted in slots of 8 bytes
    uint32_t parent;             ///< a step, from 1; 0: the start
    uint32_t other = 0;          ///< split: 1 if this is the side where the jump is taken
    uint32_t changes = 0;        ///< number of the first change (Walk::change)
    uint16_t change_count = 0;   ///< how many changes
    uint8_t frame = 0;           ///< how deep: 0 is the program itself
    StepEnd end = StepEnd::next; ///< how it went on
};

/// What a step has changed.
struct Change {
    int16_t place; ///< 0 to 10: a register; below 0: of the stack, the slot's lowest byte from r10
    uint8_t frame; ///< of which frame
    Value value;   ///< what stands there now
};

/// Where a value came from: the step that made it and the values that it was made of. Nodes are also how the verifier finds out
/// which numbers matter (`precise`): see prune.cpp.
struct Node {
    uint32_t step;        ///< from 1; 0: it was there at the start
    uint32_t a = kNoNode; ///< the node of the first value that it was made of
    uint32_t b = kNoNode; ///< of the second
    bool precise = false; ///< whether the number itself matters
};

/// All steps.
struct Walk {
    static constexpr size_t kKept = 1 << 17; ///< changes that are kept

    std::vector<Step> steps{Step{0, 0}}; ///< from 1 on
    std::vector<Node> nodes{Node{0}};    ///< from 1 on
    std::deque<Change> changes;          ///< the last ones
    uint32_t first_change = 0;           ///< the number of changes[0]
    std::vector<uint32_t> visits;        ///< how often each instruction was looked at

    /// Appends a change; the oldest goes where there are kKept.
    void add_change(Change &&change) {
        if (changes.size() == kKept) {
            changes.pop_front();
            ++first_change;
        }
        changes.push_back(std::move(change));
    }
    /// The number behind the last change.
    [[nodiscard]] uint32_t change_end() const { return first_change + static_cast<uint32_t>(changes.size()); }
    /// Forgets the changes from that number on.
    void drop_changes(uint32_t from) {
        while (!changes.empty() && change_end() > from) changes.pop_back();
        if (changes.empty()) first_change = from;
    }
    /// By number; nullptr: no longer kept.
    [[nodiscard]] const Change *change(uint32_t number) const {
        return number < first_change || number >= change_end() ? nullptr : &changes[number - first_change];
    }
    /// The steps that lead to this one, first to last, it included.
    [[nodiscard]] std::vector<uint32_t> path_to(uint32_t step) const;
    /// Marks a node, and all that it was made of, as one whose number matters.
    void need(uint32_t node);
};

} // namespace rawbpf::inline v0::verifier
