// What programs have from the kernel: contexts, sockets, callbacks, dynptrs, kernel functions, iterators, objects, exceptions.
// Each rule by a program that is right and one that isn't.
#include "asm/assemble.h"
#include "runtime/btf/btf.h"
#include "runtime/object/unit_object.h"
#include "runtime/verifier/kernel_walk.h"
#include "runtime/verifier/kfuncs.h"
#include "runtime/verifier/verify.h"
#include "tests/support/test.h"

using namespace rawbpf;
using verifier::Outcome;
using verifier::Verdict;

namespace {

// Types of a kernel: task_struct {int pid at 0; task_struct *group_leader at 8}, and functions.
struct Kernel {
    std::vector<std::byte> bytes;
    std::optional<btf::Btf> types;

    Kernel() {
        btf::Writer w;
        const btf::TypeId number = w.add_int("int", 4, true), large = w.add_int("unsigned long", 8, false);
        const btf::TypeId task = w.next_id() + 1;
        const btf::TypeId pointer = w.add_ptr(task);
        REQUIRE(w.add_struct("task_struct", 16, {{"pid", number, 0}, {"group_leader", pointer, 64}}) == task);
        const btf::TypeId iterator = w.add_struct("bpf_iter_num", 8, {{"opaque", large, 0}});
        const btf::TypeId to_iterator = w.add_ptr(iterator), to_number = w.add_ptr(number);
        auto function = [&](std::string_view name, btf::TypeId returns,
                            std::vector<std::pair<std::string_view, btf::TypeId>> parameters) {
            w.add_func(name, w.add_func_proto(returns, parameters), 1);
        };
        function("bpf_task_acquire", pointer, {{"p", pointer}});
        function("bpf_task_from_pid", pointer, {{"pid", number}});
        function("bpf_task_release", 0, {{"p", pointer}});
        function("bpf_iter_num_new", number, {{"it", to_iterator}, {"start", number}, {"end", number}});
        function("bpf_iter_num_next", to_number, {{"it", to_iterator}});
        function("bpf_iter_num_destroy", 0, {{"it", to_iterator}});
        function("bpf_rcu_read_lock", 0, {});
        function("bpf_rcu_read_unlock", 0, {});
        function("bpf_throw", 0, {{"cookie", large}});
        function("vfs_read", number, {{"task", pointer}, {"count", number}});
        bytes = w.finish();
        Result<btf::Btf> parsed = btf::Btf::parse(bytes, "kernel");
        REQUIRE(parsed);
        types = *parsed;
    }
};

Verdict judge(std::string_view text, KernelVersion kernel = verifier::kModelled) {
    static const Kernel of_tests;
    const Assembled made = assemble(text);
    INFO(made.report());
    REQUIRE(made);
    const Result<ObjectSpec> spec = object_of(made.unit);
    REQUIRE(spec);
    verifier::VerifyOptions options;
    options.kernel = kernel;
    options.kernel_types = &*of_tests.types;
    return verifier::verify(*spec, 0, options);
}

void takes(std::string_view text) {
    const Verdict verdict = judge(text);
    INFO(text);
    INFO(verdict.insn);
    INFO(verdict.reason);
    CHECK(verdict.outcome == Outcome::accepted);
}
void refuses(std::string_view text, std::string_view why) {
    const Verdict verdict = judge(text);
    INFO(text);
    INFO(verdict.reason);
    CHECK(verdict.outcome == Outcome::refused);
    CHECK(verdict.reason.find(why) != std::string::npos);
}

std::string program(std::string_view section, std::string_view body) {
    return ".license \"GPL\"\n.program p \"" + std::string(section) + "\"\n" + std::string(body);
}

} // namespace

TEST_CASE("verify: each type of program has its own context") {
    takes(program("sk_lookup", "r0 = *(u32 *)(r1 + 8)\nr0 = *(u16 *)(r1 + 36)\nr0 = 1\nexit\n"));
    refuses(program("sk_lookup", "r0 = *(u64 *)(r1 + 8)\nr0 = 1\nexit\n"), "invalid bpf_context access off=8 size=8");
    refuses(program("sk_lookup", "*(u32 *)(r1 + 8) = 0\nr0 = 1\nexit\n"), "invalid bpf_context access");
    refuses(program("sk_lookup", "r0 = 2\nexit\n"),
            "At program exit the register R0 has smin=2 smax=2 should have been in [0, 1]");
    takes(program("sockops", "*(u32 *)(r1 + 4) = 1\nr0 = 1\nexit\n"));
    refuses(program("sockops", "*(u32 *)(r1 + 8) = 1\nr0 = 1\nexit\n"), "invalid bpf_context access");
    // The address belongs to the family that the program is attached for.
    takes(program("cgroup/connect4", "r0 = *(u32 *)(r1 + 4)\nr0 = 1\nexit\n"));
    refuses(program("cgroup/connect6", "r0 = *(u32 *)(r1 + 4)\nr0 = 1\nexit\n"), "invalid bpf_context access");
    takes(program("cgroup/getsockopt", "*(u32 *)(r1 + 36) = 0\nr0 = 1\nexit\n"));
    refuses(program("cgroup/setsockopt", "*(u32 *)(r1 + 36) = 0\nr0 = 1\nexit\n"), "invalid bpf_context access");
    takes(program("syscall", "*(u64 *)(r1 + 1000) = 1\nr0 = 7\nexit\n"));
}

TEST_CASE("verify: a socket in the context may be missing; one that was looked up has to be given back") {
    takes(program("tc", "r2 = *(u64 *)(r1 + 168)\nif r2 == 0 goto +1\nr0 = *(u32 *)(r2 + 4)\nr0 = 0\nexit\n"));
    refuses(program("tc", "r2 = *(u64 *)(r1 + 168)\nr0 = *(u32 *)(r2 + 4)\nr0 = 0\nexit\n"),
            "R2 invalid mem access 'sock_common_or_null'");
    // Not every socket has a mark.
    refuses(program("tc", "r2 = *(u64 *)(r1 + 168)\nif r2 == 0 goto +1\nr0 = *(u32 *)(r2 + 16)\nr0 = 0\nexit\n"),
            "invalid sock_common access");
    const std::string look_up =
        "r2 = r10\nr2 += -16\n*(u64 *)(r10 - 8) = 0\n*(u64 *)(r10 - 16) = 0\nr3 = 12\nr4 = 0\nr5 = 0\ncall bpf_sk_lookup_tcp\n";
    takes(program("tc", look_up + "if r0 == 0 goto +2\nr1 = r0\ncall bpf_sk_release\nr0 = 0\nexit\n"));
    refuses(program("tc", look_up + "r0 = 0\nexit\n"), "Unreleased reference");
    refuses(program("tc", look_up + "r1 = r0\ncall bpf_sk_release\nr0 = 0\nexit\n"), "R1 type=sock_or_null expected=");
    refuses(program("tc",
                    look_up + "if r0 == 0 goto +4\nr6 = r0\nr1 = r0\ncall bpf_sk_release\nr0 = *(u32 *)(r6 + 4)\nr0 = 0\nexit\n"),
            "R6 invalid mem access 'scalar'");
}

TEST_CASE("verify: callbacks are followed until nothing new is known") {
    const auto loop = [](std::string_view body, std::string_view callback) {
        return program("tc", "*(u64 *)(r10 - 8) = 0\nr1 = 100\nr2 = f ll\nr3 = r10\nr3 += -8\nr4 = 0\ncall bpf_loop\n" +
                                 std::string(body) + "r0 = 0\nexit\n.function f\n" + std::string(callback));
    };
    takes(loop("", "r0 = 0\nexit\n"));
    takes(loop("", "r1 = *(u64 *)(r2 + 0)\nr1 += 1\n*(u64 *)(r2 + 0) = r1\nr0 = 0\nexit\n"));
    refuses(loop("", "r0 = 2\nexit\n"), "At callback return the register R0 has smin=2 smax=2 should have been in [0, 1]");
    refuses(loop("", "r0 = *(u64 *)(r2 + 16)\nr0 = 0\nexit\n"), "invalid read from stack");
    // What a callback changes matters behind the call: here an index.
    refuses(loop("r1 = *(u64 *)(r10 - 8)\nr2 = r10\nr2 += r1\nr2 += -16\n*(u8 *)(r2 + 0) = 1\n",
                 "r1 = *(u64 *)(r2 + 0)\nr1 += 8\n*(u64 *)(r2 + 0) = r1\nr0 = 0\nexit\n"),
            "");
    CHECK(judge(loop("", "r0 = 0\nexit\n"), {5, 16}).reason == "invalid func unknown#181");
    CHECK(judge(loop("", "r0 = 0\nexit\n"), {6, 1}).outcome == Outcome::undecided);
}

TEST_CASE("verify: dynptrs are made, used and given back by helpers alone") {
    const std::string ring = ".map ring ringbuf entries 4096\n";
    const std::string reserve = "r1 = ring ll\nr2 = 64\nr3 = 0\nr4 = r10\nr4 += -16\ncall bpf_ringbuf_reserve_dynptr\n";
    const std::string submit = "r1 = r10\nr1 += -16\nr2 = 0\ncall bpf_ringbuf_submit_dynptr\n";
    const std::string data = "r1 = r10\nr1 += -16\nr2 = 0\nr3 = 8\ncall bpf_dynptr_data\n";
    const std::string end = "r0 = 0\nexit\n";
    takes(ring + program("tc", reserve + submit + end));
    takes(ring + program("tc", reserve + data + "if r0 == 0 goto +1\n*(u64 *)(r0 + 0) = 1\n" + submit + end));
    refuses(ring + program("tc", reserve + end), "Unreleased reference");
    refuses(ring + program("tc", reserve + submit + submit + end), "arg 1 is an unacquired reference");
    refuses(ring + program("tc", reserve + "*(u64 *)(r10 - 8) = 0\n" + submit + end), "cannot overwrite referenced dynptr");
    refuses(ring + program("tc", reserve + "r1 = *(u64 *)(r10 - 8)\n" + submit + end), "invalid read from stack");
    refuses(ring + program("tc", reserve + data + "if r0 == 0 goto +1\n*(u64 *)(r0 + 8) = 1\n" + submit + end),
            "invalid access to memory");
    // A slice is gone with its dynptr.
    refuses(ring + program("tc", reserve + data + "r6 = r0\n" + submit + "if r6 == 0 goto +1\n*(u64 *)(r6 + 0) = 1\n" + end),
            "R6 invalid mem access");
}

TEST_CASE("verify: objects of the kernel are read by their types, and kernel functions are called by theirs") {
    const auto from_pid = [](std::string_view rest) {
        return program("tp_btf/none", "r1 = 1\ncall kfunc bpf_task_from_pid\n" + std::string(rest));
    };
    const std::string release = "r1 = r6\ncall kfunc bpf_task_release\n";
    takes(from_pid("if r0 == 0 goto out\nr6 = r0\nr0 = *(u32 *)(r6 + 0)\n" + release + "out: r0 = 0\nexit\n"));
    refuses(from_pid("if r0 == 0 goto out\nout: r0 = 0\nexit\n"), "Unreleased reference");
    refuses(from_pid("r6 = r0\n" + release + "r0 = 0\nexit\n"), "Possibly NULL pointer passed to trusted arg0");
    refuses(from_pid("if r0 == 0 goto out\nr6 = r0\nr0 = *(u32 *)(r6 + 6)\n" + release + "out: r0 = 0\nexit\n"),
            "struct task_struct doesn't have field");
    refuses(from_pid("if r0 == 0 goto out\nr6 = r0\n*(u32 *)(r6 + 0) = 1\n" + release + "out: r0 = 0\nexit\n"),
            "only read is supported");
    // A member's pointer can be followed, but not passed on as one that is surely there.
    takes(from_pid("if r0 == 0 goto out\nr6 = r0\nr1 = *(u64 *)(r6 + 8)\nr0 = *(u32 *)(r1 + 0)\n" + release +
                   "out: r0 = 0\nexit\n"));
    refuses(program("tc", "call kfunc bpf_none\nr0 = 0\nexit\n"), "kernel function bpf_none: not in ");
    refuses(program("sk_lookup", "r1 = 1\ncall kfunc bpf_task_from_pid\nr0 = 1\nexit\n"),
            "calling kernel function bpf_task_from_pid is not allowed");
}

TEST_CASE("verify: a loop with an iterator ends where nothing new is known; it has to be destroyed") {
    const auto loop = [](std::string_view body, std::string_view behind) {
        return program("tc", "r7 = 0\nr1 = r10\nr1 += -8\nr2 = 0\nr3 = 10\ncall kfunc bpf_iter_num_new\nl: r1 = r10\nr1 += -8\n"
                             "call kfunc bpf_iter_num_next\nif r0 == 0 goto out\n" +
                                 std::string(body) + "goto l\nout:\n" + std::string(behind) + "r0 = 0\nexit\n");
    };
    const std::string destroy = "r1 = r10\nr1 += -8\ncall kfunc bpf_iter_num_destroy\n";
    takes(loop("r1 = *(u32 *)(r0 + 0)\nr7 += r1\n", destroy));
    refuses(loop("", ""), "Unreleased reference");
    refuses(loop("*(u32 *)(r0 + 0) = 1\n", destroy), "R0 cannot write into rdonly_mem");
    refuses(loop("*(u64 *)(r10 - 8) = 1\n", destroy), "expected an initialized iter_num as arg #0");
    // The counter chooses a place in memory behind the loop: any number.
    refuses(loop("r7 += 1\n", destroy + "r2 = r10\nr2 += r7\n*(u8 *)(r2 - 16) = 1\n"), "");
}

TEST_CASE("verify: RCU sections and exceptions are ended before the program is") {
    takes(program("tc", "call kfunc bpf_rcu_read_lock\ncall kfunc bpf_rcu_read_unlock\nr0 = 0\nexit\n"));
    refuses(program("tc", "call kfunc bpf_rcu_read_lock\nr0 = 0\nexit\n"), "bpf_rcu_read_lock-ed region");
    refuses(program("tc", "call kfunc bpf_rcu_read_unlock\nr0 = 0\nexit\n"), "unmatched rcu read unlock");
    refuses(program("tc", "call kfunc bpf_rcu_read_lock\ncall kfunc bpf_rcu_read_lock\nr0 = 0\nexit\n"), "nested rcu read lock");
    takes(program("tc", "r1 = 1\ncall kfunc bpf_throw\nr0 = 0\nexit\n"));
    refuses(program("tc", "r1 = 1\ncall kfunc bpf_task_from_pid\nr1 = 1\ncall kfunc bpf_throw\nr0 = 0\nexit\n"),
            "bpf_throw would lead to reference leak");
}

TEST_CASE("verify: the arguments of the function that a program is attached to are its context") {
    takes(program("fentry/vfs_read", "r2 = *(u64 *)(r1 + 0)\nr0 = *(u32 *)(r2 + 0)\nr3 = *(u32 *)(r1 + 8)\nr0 = 0\nexit\n"));
    refuses(program("fentry/vfs_read", "r2 = *(u64 *)(r1 + 16)\nr0 = 0\nexit\n"), "func 'vfs_read' doesn't have 3-th argument");
    takes(program("fexit/vfs_read", "r2 = *(u32 *)(r1 + 16)\nr0 = 0\nexit\n"));
    refuses(program("fentry/vfs_read", "r0 = 1\nexit\n"), "should have been in [0, 0]");
    CHECK(judge(program("fentry/none", "r2 = *(u64 *)(r1 + 0)\nr0 = 0\nexit\n")).outcome == Outcome::undecided);
}

TEST_CASE("verify: structs of the kernel, walked") {
    const Kernel kernel;
    const btf::Btf &types = *kernel.types;
    const btf::TypeId task = *types.find("task_struct", btf::Kind::struct_);
    using What = verifier::Walked::What;
    CHECK(verifier::walk_struct(types, task, 0, 4, true).what == What::number);
    CHECK(verifier::walk_struct(types, task, 8, 8, true).what == What::pointer);
    CHECK(verifier::walk_struct(types, task, 8, 8, true).type == task);
    CHECK(verifier::walk_struct(types, task, 8, 4, true).what == What::nothing);
    CHECK(verifier::walk_struct(types, task, 16, 1, true).refusal == "access beyond struct task_struct at off 16 size 1");
    CHECK(verifier::is_a(types, task, 0, "task_struct", true));
    CHECK_FALSE(verifier::is_a(types, task, 8, "task_struct", false));
    CHECK(verifier::find_kernel_function("bpf_task_acquire")->has(verifier::kfunc::acquires));
    CHECK(verifier::find_kernel_function("bpf_no") == nullptr);
}
