// What is wrong with an experiment, and where: each with its line and a caret, as the assembler's.
#include "programs/experiment/experiment.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::experiment {
namespace {

constexpr size_t kMostComplaints = 20;

} // namespace

void Mistakes::add(Complaint complaint) {
    if (complaints_.size() < kMostComplaints) complaints_.push_back(std::move(complaint));
}
void Mistakes::add(const std::vector<std::string> &lines, TextPlace at, std::string message, std::string hint) {
    Complaint complaint;
    complaint.at = {static_cast<int>(at.line), static_cast<int>(at.column), std::move(message), file_};
    if (at.line != 0 && at.line <= lines.size()) complaint.line = lines[at.line - 1];
    complaint.hint = std::move(hint);
    add(std::move(complaint));
}
std::string Mistakes::report() const {
    std::string out;
    for (const Complaint &complaint : complaints_) {
        if (complaint.at.line == 0) { // of the whole text, or of the command line
            append(out, "{}: {}\n", file_, complaint.at.message);
            if (!complaint.hint.empty()) append(out, "  hint: {}\n", complaint.hint);
            continue;
        }
        Assembled one;
        one.complaints.push_back(complaint);
        out += one.report();
    }
    return out;
}

} // namespace rawbpf::inline v0::experiment
