// Two questions with different answers. A stack's addresses are all of code: each gets a frame. An argument that is an address
// points at data nearly always: it is asked about only where code can be (an executable mapping of its process; the kernel's
// image), and a pass over the kernel's symbols, some tens of milliseconds, is made for one only when none was made for long.
#include "programs/trace/names.h"

#include <algorithm>
#include <cstring>

#include "asm/machines.h"
#include "programs/render/text.h"
#include "programs/trace/event_sample.h"
#include "runtime/base/format.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr size_t kMostPlaces = 100'000; // a few MB
constexpr size_t kMostNodes = 1 << 20;  // of interned stacks, about 20 MB
constexpr size_t kMostProcesses = 2000;
constexpr size_t kMostKernel = 10'000;

// Where the kernel's functions can be: x86_64's image and modules have a place of their own
// (Documentation/arch/x86/x86_64/mm.rst); arm64's share one with all that vmalloc() gives.
bool may_be_function(uint64_t address) {
#if defined(__riscv)
    return address >= 0xffffffff00000000 && address % 2 == 0; // Documentation/arch/riscv/vm-layout.rst
#elif defined(__arm__)
    return address >= kHost.kernel_from && address % 2 == 0;
#elif defined(__x86_64__)
    return address >= 0xffffffff80000000 && address < 0xffffffffff000000;
#else
    return address >= 0xffff800000000000 && address % 4 == 0;
#endif
}
constexpr unsigned kKnownBits = 10;
constexpr size_t kKnown = size_t{1} << kKnownBits;
constexpr uint64_t kGoodForNs = 10'000'000;
constexpr uint64_t kFarthest = 4096; // from a function's beginning; kallsyms doesn't say where one ends
constexpr uint64_t kLowest = 4096;   // nothing is mapped below
constexpr uint64_t kKernel = kHost.kernel_from;

// At raw tracepoints, fentry and fexit the kernel's walk begins in the program that asks for it, and comes to what is traced
// through the kernel's way there, which depends on the kind of probe.
void begin_at_what_is_traced(std::vector<FramePtr> &frames) {
    constexpr std::string_view kWay[] = {"bpf_prog_", "bpf_trampoline_", "bpf_trace_run", "__bpf_trace_", "__traceiter_"};
    if (frames.empty() || !frames.front()->symbol.starts_with(kWay[0])) return;
    frames.erase(frames.begin(), std::find_if(frames.begin(), frames.end(), [&](const FramePtr &frame) {
                     return std::none_of(std::begin(kWay), std::end(kWay),
                                         [&](std::string_view way) { return frame->symbol.starts_with(way); });
                 }));
}

std::string with_offset(const std::string &symbol, uint64_t offset) {
    return offset ? format("{}+{:#x}", symbol, offset) : symbol;
}

} // namespace

std::string frame_name(const Frame &frame) {
    if (!frame.symbol.empty()) return with_offset(frame.symbol, frame.symbol_offset);
    std::string label = render::frame_label(frame);
    return label.empty() ? "[unknown]" : label;
}

bool shows_functions(const std::vector<ProbeSite> &places) {
    return std::any_of(places.begin(), places.end(), [](const ProbeSite &place) {
        const auto &all = place.signature.parameters;
        return is_user_function(place.kind) &&
               (!place.signature.known ||
                std::any_of(all.begin(), all.end(), [](const Parameter &p) { return p.type.show == Show::address; }));
    });
}

std::string function_name(const Frame &frame) {
    return frame.symbol.empty() || (frame.kernel && frame.symbol_offset >= kFarthest) ? std::string() : frame_name(frame);
}

processes::InternedSample Names::locate(const Event &event) {
    const Header &header = event.header;
    const Event::Stack kernel = event.kernel_stack(), user = event.user_stack();
    processes::Following &following = tables_->following;
    following.apply(header.time);
    processes::UserStack sent{header.pid,    header.time, user.ending, user.frames, unwind::read_copy(event.copied_stack()),
                              event.language};
    const bool walked = following.walk(sent);
    const session::LocatedStacks located = tables_->locator.locate({sent, kernel.frames});
    processes::InternedSample out = sample_of(header);
    out.kernel = located.kernel;
    out.user = located.user;
    out.kernel_bytes = static_cast<int32_t>(kernel.frames.size() * 8);
    out.user_bytes = user.error != 0 && !walked ? user.error : static_cast<int32_t>(sent.frames.size_bytes());
    ends_.add(out.ending = located.ending);
    return out;
}

uint32_t Names::labels_of(const Event &event) {
    processes::Following &following = tables_->following;
    if (!following.labels().on()) return processes::LabelSets::kEmpty;
    following.apply(event.header.time);
    return following.labels().of(event.header.pid, event.labels());
}

NamedStack EventNames::name(const processes::InternedSample &sample, uint64_t count) {
    const Parts with = parts();
    NamedStack out;
    with.tree.walk(sample.kernel, [&](uint32_t place) { out.kernel.push_back(with.namer.frame(place)); });
    begin_at_what_is_traced(out.kernel);
    size_t frames = 0;
    with.tree.walk(sample.user, [&](uint32_t place) {
        with.namer.add_frames(place, out.user);
        ++frames;
    });
    if (!session::is_cut(sample.ending, frames, most_frames_))
        with.early.add(with.namer, with.tree, sample.user, sample.ending, count);
    out.user_error = std::min(sample.user_bytes, 0);
    out.user_end = processes::user_end(sample.ending);
    return out;
}

std::vector<render::StackAdvice> EventNames::advice(UnwindBy chosen, Arch arch) const {
    const Parts with = parts();
    return with.early.advice(with.modules, processes::remedy_of(chosen, arch));
}

void Names::seen_again(const processes::InternedSample &sample, uint64_t more) {
    processes::Following &following = tables_->following;
    if (following.unwinds() && sample.user != processes::kNone) ends_.add(sample.ending, more);
    following.seen_again(tables_->tree, sample.user, sample.pid, sys::monotonic_ns());
}

bool Names::full() const { return tables_->tree.nodes().size() > kMostNodes || label_sets().full(); }

void Names::forget() {
    tables_->tree.clear();
    tables_->namer.clear();
    tables_->following.labels().sets().clear();
}

// Who isn't told of processes' ends keeps them all.
bool Names::outgrown() const {
    processes::Following &following = tables_->following;
    return !following.watching() && !following.unwinds() && !following.labels().on() &&
           following.table().sampled() >= kMostProcesses;
}

bool Names::wants_trim() const { return outgrown() || tables_->tree.places().size() >= kMostPlaces || full(); }

void Names::trim() {
    if (outgrown()) tables_ = std::make_unique<Tables>(*this), user_.clear();
    if (wants_trim()) forget();
}

std::string_view Names::kernel_symbol(uint64_t address) {
    if (!may_be_function(address)) return {};
    if (const auto at = kernel_.find(address); at != kernel_.end()) return at->second;
    const uint64_t now = sys::monotonic_ns();
    session::PassBudget &budget = tables_->kernel_names.budget();
    if (!budget.affordable(now)) return {};
    if (kernel_.size() >= kMostKernel) kernel_.clear();
    std::string &name = kernel_[address];
    for (const symbols::KernelName &one : tables_->following.symbols().kernel({address}))
        if (one.address == address && !one.symbol.empty() && one.offset < kFarthest) name = with_offset(one.symbol, one.offset);
    budget.passed(now, sys::monotonic_ns());
    return name;
}

processes::FrameLocation Names::user_place(uint32_t pid, uint64_t address, uint64_t t_ns) {
    processes::Following &following = tables_->following;
    // Without news /proc tells what is there now, and is asked at times of now.
    return following.table().locate(pid, address, false, following.watching() ? t_ns : sys::monotonic_ns());
}

// `lasts`: the answer is the same until the process changes. Code that is made at run time gets its names as it goes.
std::string Names::user_symbol(uint32_t pid, uint64_t address, uint64_t t_ns, bool &lasts) {
    const processes::FrameLocation place = user_place(pid, address, t_ns);
    lasts = place.pid == 0;
    return place.module == processes::kNone ? std::string()
                                            : function_name(*tables_->namer.frame(tables_->tree.intern_place(place)));
}

uint32_t Names::locate_function(uint32_t pid, uint64_t address, uint64_t t_ns) {
    processes::FrameLocation place;
    if (address >= kKernel) {
        if (!may_be_function(address)) return processes::kNone;
        place.address = address;
        place.kernel = true;
    } else {
        if (address < kLowest) return processes::kNone;
        tables_->following.apply(t_ns);
        place = user_place(pid, address, t_ns);
        if (place.module == processes::kNone) return processes::kNone;
    }
    return tables_->tree.intern_place(place);
}

std::string_view Names::symbol(uint32_t pid, uint64_t address, uint64_t t_ns) {
    if (address >= kKernel) return kernel_symbol(address);
    if (address < kLowest) return {};
    processes::Following &following = tables_->following;
    following.apply(t_ns);
    if (user_.empty()) user_.resize(kKnown);
    Known &known = user_[((address ^ uint64_t{pid} << 32) * 0x9e3779b97f4a7c15) >> (64 - kKnownBits)];
    const bool fresh = following.watching() || t_ns - known.t_ns < kGoodForNs; // who isn't told of changes looks now and then
    if (known.address == address && known.pid == pid && known.changes == following.changes() && fresh) return known.name;
    bool lasts = false;
    last_ = user_symbol(pid, address, t_ns, lasts);
    if (!lasts) return last_;
    known.address = address;
    known.pid = pid;
    known.changes = following.changes();
    known.t_ns = t_ns;
    known.name = last_;
    return last_;
}

} // namespace rawbpf::inline v0::trace
