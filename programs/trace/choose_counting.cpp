// A program that waits isn't waited for when its map is changed for another one (kernel/bpf/syscall.c,
// maybe_wait_bpf_programs), and nothing is to be read but the texts that a filter asks for.
#include "programs/trace/choose_counting.h"

#include <algorithm>
#include <span>

#include "programs/session/stack_counting.h"
#include "runtime/base/fail.h"
#include "runtime/sys/random.h"

namespace rawbpf::inline v0::trace {
namespace {

// Other texts than the thread's name, which is no memory of the user's.
bool asks_for_texts(const Expression &expression) {
    const auto is_name = [](const Node &node) { return node.kind == Node::Kind::name && node.text == "comm"; };
    return std::any_of(expression.nodes.begin(), expression.nodes.end(), [&](const Node &node) {
        if (node.kind != Node::Kind::binary) return node.kind == Node::Kind::text && expression.nodes.size() == 1;
        const Node &left = expression.nodes[node.left], &right = expression.nodes[node.right];
        return (left.kind == Node::Kind::text && !is_name(right)) || (right.kind == Node::Kind::text && !is_name(left));
    });
}

} // namespace

Result<void> choose_counting(ProgramOptions &program, uint32_t stacks, bool by_thread, std::vector<std::string> &notes) {
    const std::optional<Expression> &filter = program.filters.expression;
    std::optional<std::string> why_not;
    if (program.filters.most_events)
        why_not = "--max-events counts events that are sent";
    else if (program.sleepable && filter && asks_for_texts(*filter))
        why_not = "the filter reads texts of processes, for which the program may have to wait";
    if (why_not && !program.aggregate) return {};
    if (!why_not)
        if (const std::optional<std::string> why = session::why_not_counted()) why_not = format("that {}", *why);
    StackCountingOptions counting;
    counting.stacks = stacks;
    counting.by_thread = by_thread;
    if (!why_not && !sys::random_bytes(std::as_writable_bytes(std::span(&counting.seed, 1))))
        why_not = "the kernel gave no random number, and the hashes of stacks would be guessable";
    if (why_not) {
        if (program.aggregate)
            return fail(Errc::unsupported, "--by stack: stacks can't be told apart in the kernel: {}", *why_not);
        notes.push_back(format("stacks are not counted in the kernel: {}", *why_not));
        return {};
    }
    program.counting = counting;
    program.sleepable = false;
    return {};
}

} // namespace rawbpf::inline v0::trace
