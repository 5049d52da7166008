// What the kernel room reads: the verifier's log, BTF to be made fit for an older kernel, CPU lists, and /etc/passwd.
#include <cstdlib>

#include "runtime/btf/btf.h"
#include "runtime/kernel/btf_sanitize.h"
#include "runtime/kernel/verifier_log.h"
#include "runtime/sys/cpus.h"
#include "runtime/sys/process.h"

using namespace rawbpf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const uint8_t choice = data[0];
    const std::string_view text(reinterpret_cast<const char *>(data) + 1, size - 1);
    switch (choice % 4) {
    case 0: {
        VerifierReport report = read_verifier_log(text);
        if (report.insn < -1 || report.reason.size() > 4 * text.size() + 16) abort();
        break;
    }
    case 1: {
        const auto bit = [&](int n) { return (choice >> (2 + n) & 1) == 0; };
        const BtfSupport support{bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), bit(5)};
        const Bytes bytes = bytes_of(text);
        Result<std::vector<std::byte>> out = sanitize_btf(bytes, support);
        // Sound BTF stays sound, with the same ids.
        Result<btf::Btf> before = btf::Btf::parse(bytes, "before");
        if (!before || before->first_id() != 1 || !out) break;
        Result<btf::Btf> after = btf::Btf::parse(*out, "after");
        if (!after || after->end_id() < before->end_id()) abort();
        break;
    }
    case 2:
        if (Result<std::vector<int>> cpus = parse_cpu_list(text))
            for (size_t i = 1; i < cpus->size(); ++i)
                if ((*cpus)[i - 1] >= (*cpus)[i]) abort();
        break;
    case 3: {
        const size_t half = text.size() / 2;
        (void)sys::user_from("1000", "1000", text.substr(0, half), text.substr(half));
        break;
    }
    }
    return 0;
}
