// Probes against a kernel that answers as it is told.
#include "runtime/kernel/probe_helpers.h"
#include "runtime/kernel/probes.h"
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
