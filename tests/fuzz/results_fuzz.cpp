// Results that somebody hands in: lines of JSON for `rawbpf compare`, recordings for `rawbpf run --replay`.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "programs/compare/chart.h"
#include "programs/compare/compare.h"
#include "programs/experiment/tape.h"

using namespace rawbpf;

namespace {

void results(std::string_view text) {
    const Result<compare::Document> read = compare::read_document(text, "input");
    if (!read) {
        if (read.error().message().empty()) std::abort();
        return;
    }
    // With itself nothing differs, whatever it is.
    const std::vector<compare::Document> twice = {*read, *read};
    for (const compare::Row &row : compare::with_first(twice).rows)
        if (!row.before || !row.after || row.verdict == compare::Verdict::differs) std::abort();
    const std::string chart = compare::chart(twice, {});
    if (chart.find("nan\"") != chart.npos || chart.find("inf\"") != chart.npos) std::abort();
    const std::vector<compare::Document> parts = compare::parts_of(*read);
    if (parts.size() > 1) (void)compare::with_first(parts);
}

void recordings(Bytes bytes) {
    const Result<experiment::Tape> tape = experiment::read_tape(bytes, "input");
    if (!tape) return;
    const std::string written = experiment::write_tape(*tape);
    if (!experiment::read_tape(bytes_of(written), "output")) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 4096) return 0; // a comparison draws thousands of times
    results(std::string_view(reinterpret_cast<const char *>(data), size));
    recordings(Bytes(reinterpret_cast<const std::byte *>(data), size));
    return 0;
}
