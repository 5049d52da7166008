// Probes against a kernel that answers as it is told.
#include <cerrno>
#include <cstring>
#include <optional>

#include "asm/helpers.h"
#include "runtime/base/format.h"
#include "runtime/kernel/probe_helpers.h"
#include "runtime/kernel/probes.h"
#include "runtime/kernel/refused_helper.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {
// A verifier that refuses every program with these words.
void refuse_programs(test::FakeKernel &kernel, int os, const char *words) {
    kernel.script = [=](const sys::Call &call) -> std::optional<long> {
        if (call.number != __NR_bpf || call.args[0] != BPF_PROG_LOAD) return {};
        auto &attr = *reinterpret_cast<sys::ProgLoadAttr *>(call.args[1]);
        if (attr.log_buf) std::strcpy(reinterpret_cast<char *>(attr.log_buf), words);
        return -os;
    };
}
struct Forget {
    Forget() { forget_features(); }
    ~Forget() { forget_features(); }
};
} // namespace

TEST_CASE("probes: what the verifier's words say of a helper") {
    CHECK(read_helper_log("") == HelperAnswer::silence);
    CHECK(read_helper_log("0: (85) call unknown#209\ninvalid func unknown#209\n") == HelperAnswer::unknown);
    CHECK(read_helper_log("0: (85) call bpf_get_stack#67\nunknown func bpf_get_stack#67\n") == HelperAnswer::not_here);
    CHECK(read_helper_log("program of this type cannot use helper bpf_get_stack#67\n") == HelperAnswer::not_here);
    CHECK(read_helper_log("helper call is not allowed in probe\n") == HelperAnswer::not_here);
    // A program of struct_ops or of tracing that names no type: nothing was looked at.
    CHECK(read_helper_log("processed 0 insns (limit 1000000) max_states_per_insn 0\n") == HelperAnswer::silence);
    CHECK(read_helper_log("Tracing programs must provide btf_id\nprocessed 0 insns (limit 1000000)\n") == HelperAnswer::silence);
    CHECK(read_helper_log("invalid func unknown#209\nprocessed 1 insns (limit 1000000)\n") == HelperAnswer::unknown);
    CHECK(read_helper_log("R1 type=ctx expected=map_ptr\n") == HelperAnswer::yes);
    CHECK(read_helper_log("R2 !read_ok\n") == HelperAnswer::yes);
}

TEST_CASE("probes: a program type is known when the verifier speaks") {
    Forget forget;
    test::FakeKernel kernel;
    refuse_programs(kernel, EINVAL, "Tracing programs must provide btf_id");
    CHECK(probe_program_type(BPF_PROG_TYPE_TRACING).support == Support::yes);
    refuse_programs(kernel, EINVAL, "");
    CHECK(probe_program_type(BPF_PROG_TYPE_TRACING).support == Support::no);
    refuse_programs(kernel, EPERM, "");
    CHECK(probe_program_type(BPF_PROG_TYPE_TRACING).support == Support::refused);
    CHECK(probe_program_type(9999).support == Support::no);
    CHECK(kernel.leaks() == "");
}

TEST_CASE("probes: an attach type is known by its errno") {
    Forget forget;
    test::FakeKernel kernel;
    int answer = EBADF;
    kernel.script = [&](const sys::Call &call) -> std::optional<long> {
        if (call.number == __NR_bpf && (call.args[0] == BPF_LINK_CREATE || call.args[0] == BPF_PROG_ATTACH)) return -answer;
        return {};
    };
    const uint32_t ingress = static_cast<uint32_t>(AttachType::TCX_INGRESS),
                   bind = static_cast<uint32_t>(AttachType::CGROUP_INET4_BIND);
    CHECK(probe_attach_type(bind).support == Support::yes);
    CHECK(probe_attach_type(ingress).support == Support::no); // for a device EBADF is no proof
    forget_features();
    answer = ENODEV;
    CHECK(probe_attach_type(ingress).support == Support::yes);
    CHECK(probe_attach_type(bind).support == Support::no);
    forget_features();
    answer = EPERM;
    CHECK(probe_attach_type(bind).support == Support::refused);
    CHECK(kernel.leaks() == "");
}

TEST_CASE("probes: struct_ops answers with an error of its own") {
    Forget forget;
    test::FakeKernel kernel;
    kernel.refuse(BPF_MAP_CREATE, 524);
    CHECK(probe_map_type(BPF_MAP_TYPE_STRUCT_OPS).support == Support::yes);
    CHECK(probe_map_type(BPF_MAP_TYPE_ARRAY).support == Support::no);
    forget_features();
    kernel.refuse(BPF_MAP_CREATE, EPERM);
    CHECK(probe_map_type(BPF_MAP_TYPE_ARRAY).support == Support::refused);
    CHECK(probe_feature(Feature::ring_buffer).support == Support::refused);
    CHECK_FALSE(has_feature(Feature::ring_buffer));
}

TEST_CASE("probes: no program type that loads leaves helpers unasked") {
    Forget forget;
    test::FakeKernel kernel;
    kernel.refuse(BPF_PROG_LOAD, EPERM);
    CHECK(probe_helper(1).support == Support::unasked);
}

TEST_CASE("probes: what the machine was short of is no answer, and is asked again") {
    Forget forget;
    const uint32_t multi = static_cast<uint32_t>(AttachType::TRACE_UPROBE_MULTI);
    for (const int os : {ENOMEM, EMFILE, ENFILE, EIO, EAGAIN, ENOSPC}) {
        CAPTURE(os);
        forget_features();
        test::FakeKernel kernel;
        kernel.refuse(BPF_MAP_CREATE, os);
        CHECK(probe_map_type(BPF_MAP_TYPE_RINGBUF).support == Support::unasked);
        CHECK(probe_feature(Feature::batch).support == Support::unasked);
        const Result<void> needed = need(Feature::ring_buffer);
        REQUIRE_FALSE(needed);
        CHECK(needed.error().message() ==
              format("needs ring buffers, 5.8, and rawbpf couldn't find out whether this kernel has that: {}", errno_name(os)));
        kernel.refuse(BPF_LINK_CREATE, os);
        CHECK(probe_attach_type(multi).support == Support::unasked);
        refuse_programs(kernel, os, "");
        CHECK(probe_program_type(BPF_PROG_TYPE_KPROBE).support == Support::unasked);
        CHECK(probe_attach_type(static_cast<uint32_t>(AttachType::SK_REUSEPORT_SELECT)).support == Support::unasked);
        CHECK(probe_helper(181).support == Support::unasked);
        CHECK(probe_feature(Feature::bpf_loop).support == Support::unasked);
        test::FakeKernel at_ease;
        at_ease.refuse(BPF_LINK_CREATE, EBADF);
        CHECK(probe_map_type(BPF_MAP_TYPE_RINGBUF).support == Support::yes);
        CHECK(probe_attach_type(multi).support == Support::yes);
    }
}

TEST_CASE("probes: a refused helper is explained by what the kernel says of it, and no further") {
    const HelperInfo &helper = *find_helper(58); // override_return, for kprobes only
    constexpr const char *kOld = "unknown func bpf_override_return#58",
                         *kNew = "program of this type cannot use helper bpf_override_return#58";
    const auto says = [&](const char *reason, uint32_t type = BPF_PROG_TYPE_XDP) {
        Forget forget;
        return explain_helper(reason, helper, type);
    };
    // Each kernel answers all programs, or those of one type, so.
    const auto answers = [](test::FakeKernel &kernel, uint32_t of_type, const char *words, const char *others) {
        kernel.script = [=](const sys::Call &call) -> std::optional<long> {
            if (call.number != __NR_bpf || call.args[0] != BPF_PROG_LOAD) return {};
            auto &attr = *reinterpret_cast<sys::ProgLoadAttr *>(call.args[1]);
            if (attr.log_buf) std::strcpy(reinterpret_cast<char *>(attr.log_buf), attr.prog_type == of_type ? words : others);
            return -EINVAL;
        };
    };
    test::FakeKernel kernel;
    answers(kernel, BPF_PROG_TYPE_KPROBE, "R1 !read_ok", kNew);
    for (const char *reason : {kOld, kNew}) {
        CHECK(says(reason) == "this kernel has bpf_override_return() for kprobe, but not for programs of type BPF_PROG_TYPE_XDP");
        CHECK(says(reason, BPF_PROG_TYPE_KPROBE).find("other programs of type BPF_PROG_TYPE_KPROBE") != std::string::npos);
    }
    const int before = kernel.calls();
    CHECK(says("invalid func unknown#58") == "this kernel has no bpf_override_return(), which came with Linux 4.16");
    CHECK(says("R1 !read_ok").empty());
    CHECK(kernel.calls() == before); // the verifier's words leave no question
    // It may be none's here, or nobody knows.
    answers(kernel, UINT32_MAX, "", kNew);
    const std::string none = says(kNew);
    CHECK((none.find("no type of program may call it") != std::string::npos ||
           none.find("rawbpf couldn't find out") != std::string::npos));
    CHECK(none.find("this kernel has no") == std::string::npos);
    answers(kernel, UINT32_MAX, "", "");
    CHECK(says(kOld).find("rawbpf couldn't find out") != std::string::npos);
    const Probed no{Support::no}, unasked{Support::unasked, "why"};
    CHECK(helper_words(HelperRefusal::not_here, helper, "T", false, no).find("no type of program may call it") !=
          std::string::npos);
    CHECK(helper_words(HelperRefusal::not_here, helper, "T", false, unasked)
              .ends_with("rawbpf couldn't find out whether other programs may call it: why"));
}

TEST_CASE("probes: a number that is no helper's in any kernel") {
    CHECK(no_helper_words(0).starts_with("no helper has the number 0"));
    const HelperInfo &last = all_helpers().back();
    for (const HelperInfo &helper : all_helpers()) {
        CHECK(helper.id <= last.id);
        CHECK(no_helper_words(helper.id).empty());
    }
    for (const int64_t number : {int64_t{last.id} + 1, int64_t{99999}, int64_t{-7}}) {
        const std::string words = no_helper_words(number);
        CHECK(words.starts_with(format("no kernel has a helper {}: the last one is {}, ", number, last.id)));
        CHECK(words.find("this kernel") == std::string::npos); // it isn't this kernel's fault
    }
}
