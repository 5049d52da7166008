// Two questions with different answers. A stack's addresses are all of code: each gets a frame. An argument that is an address
// points at data nearly always: it is asked about only where code can be (an executable mapping of its process; the kernel's
// image), and a pass over the kernel's symbols, some tens of milliseconds, is made for one only when none was made for long.
#include "programs/trace/names.h"

#include <algorithm>

#include "programs/render/text.h"
#include "runtime/base/format.h"
#include "runtime/sys/choke.h"
#include "runtime/sys/clock.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr uint64_t kPassShare = 20;     // passes for arguments take at most a twentieth of the time
constexpr size_t kMostPlaces = 100'000; // a few MB
constexpr size_t kMostNodes = 1 << 20;  // of interned stacks, about 20 MB
constexpr size_t kMostProcesses = 2000;
constexpr size_t kMostKernel = 10'000;

// Where the kernel's functions can be: x86_64's image and modules have a place of their own
// (Documentation/arch/x86/x86_64/mm.rst); arm64's share one with all that vmalloc() gives.
bool may_be_function(uint64_t address) {
#if defined(__x86_64__)
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
constexpr uint64_t kKernel = uint64_t{1} << 63;

// A walk that was stopped at its most frames says nothing of where the stack ends.
bool is_cut(uint8_t ending, size_t frames) {
    return processes::by_tables(ending) ? ending == UNWIND_ENDED_DEPTH : frames >= kMostFrames;
}

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

Names::Located Names::locate(const Event &event) {
    Located out;
    const Event::Stack kernel = event.kernel_stack();
    Event::Stack user = event.user_stack();
    const Header &header = event.header;
    processes::Following &following = tables_->following;
    following.apply(header.time);
    processes::UserStack sent{header.pid, header.time, user.ending, user.frames, unwind::read_copy(event.copied_stack())};
    if (following.walk(sent)) {
        user.frames.assign(sent.frames.begin(), sent.frames.end());
        user.ending = sent.ending;
        user.error = 0;
    }
    for (size_t i = 0; i < kernel.frames.size(); ++i) {
        processes::Place place;
        place.address = kernel.frames[i];
        place.kernel = true;
        place.caller = i > 0;
        out.kernel.push_back(tables_->tree.intern_place(place));
    }
    out.user_error = user.error;
    const auto ending = static_cast<uint8_t>(user.ending);
    if (following.unwinds() && !user.frames.empty()) {
        ends_.add(out.ending = ending);
        following.sampled(header.pid, header.time);
    }
    size_t sane = 0; // frames up to the last that is code
    uint32_t module = processes::kNone;
    for (size_t i = 0; i < user.frames.size(); ++i) {
        const uint64_t address = user.frames[i] & ~UNWIND_EXACT_PC;
        const bool caller = i > 0 && address == user.frames[i]; // but what a signal interrupted
        const processes::Place place = following.table().locate(header.pid, address, caller, header.time);
        if (place.module != processes::kNone) sane = i + 1;
        if (place.module != module) following.used(header.pid, module = place.module, header.time);
        out.user.push_back(tables_->tree.intern_place(place));
    }
    // Code without frame pointers leaves anything in that register, and the kernel follows it through the heap. The first address
    // that isn't code shows where the walk went astray, unless it is its end. Where nothing is known to be code, all is kept.
    if (sane > 0 && out.user.size() > sane) out.user.resize(sane + (user.frames[sane] >= kLowest ? 1 : 0));
    return out;
}

bool Names::known(const Located &stack) const {
    for (uint32_t place : stack.kernel)
        if (!tables_->namer.named(place)) return false;
    return true;
}

void Names::prepare(const std::vector<const Located *> &stacks) {
    std::vector<uint32_t> places;
    for (const Located *stack : stacks)
        for (uint32_t place : stack->kernel)
            if (!tables_->namer.named(place)) places.push_back(place);
    if (places.empty()) return;
    const uint64_t start = sys::monotonic_ns();
    tables_->namer.name_kernel(places);
    passed_at_ = sys::monotonic_ns();
    pass_ns_ = passed_at_ - start;
}

NamedStack Names::name(const Located &stack) {
    NamedStack out;
    for (uint32_t place : stack.kernel) out.kernel.push_back(tables_->namer.frame(place));
    begin_at_what_is_traced(out.kernel);
    for (uint32_t place : stack.user) tables_->namer.add_frames(place, out.user);
    if (!is_cut(stack.ending, stack.user.size())) tables_->early.add(tables_->namer, tables_->tree, stack.user, stack.ending, 1);
    out.user_error = stack.user_error;
    out.user_end = processes::user_end(stack.ending);
    return out;
}

processes::InternedSample Names::intern(const Located &stack) {
    const auto nodes = [&](const std::vector<uint32_t> &places) { // innermost first
        uint32_t node = processes::kNone;
        for (size_t i = places.size(); i-- > 0;) node = tables_->tree.intern_node(node, places[i]);
        return node;
    };
    processes::InternedSample out;
    out.kernel = nodes(stack.kernel);
    out.user = nodes(stack.user);
    out.kernel_bytes = static_cast<int32_t>(stack.kernel.size() * 8);
    out.user_bytes = stack.user_error != 0 ? stack.user_error : static_cast<int32_t>(stack.user.size() * 8);
    out.ending = stack.ending;
    return out;
}

NamedStack Names::name(const processes::InternedSample &sample, uint64_t count) {
    NamedStack out;
    tables_->tree.walk(sample.kernel, [&](uint32_t place) { out.kernel.push_back(tables_->namer.frame(place)); });
    begin_at_what_is_traced(out.kernel);
    size_t frames = 0;
    tables_->tree.walk(sample.user, [&](uint32_t place) {
        tables_->namer.add_frames(place, out.user);
        ++frames;
    });
    if (!is_cut(sample.ending, frames)) tables_->early.add(tables_->namer, tables_->tree, sample.user, sample.ending, count);
    out.user_error = std::min(sample.user_bytes, 0);
    out.user_end = processes::user_end(sample.ending);
    return out;
}

void Names::seen_again(const processes::InternedSample &sample, uint64_t more) {
    processes::Following &following = tables_->following;
    if (following.unwinds() && sample.user != processes::kNone) ends_.add(sample.ending, more);
    following.seen_again(tables_->tree, sample.user, sample.pid, sys::monotonic_ns());
}

bool Names::full() const { return tables_->tree.nodes().size() > kMostNodes; }

void Names::forget() {
    tables_->tree.clear();
    tables_->namer.clear();
}

void Names::trim() {
    // Who isn't told of processes' ends keeps them all.
    processes::Following &following = tables_->following;
    if (!following.watching() && !following.unwinds() && following.table().sampled() >= kMostProcesses)
        tables_ = std::make_unique<Tables>(*this), user_.clear();
    if (tables_->tree.places().size() < kMostPlaces) return;
    forget();
}

std::string_view Names::kernel_symbol(uint64_t address) {
    if (!may_be_function(address)) return {};
    if (const auto at = kernel_.find(address); at != kernel_.end()) return at->second;
    const uint64_t now = sys::monotonic_ns();
    if (passed_at_ != 0 && now - passed_at_ < kPassShare * pass_ns_) return {};
    if (kernel_.size() >= kMostKernel) kernel_.clear();
    std::string &name = kernel_[address];
    for (const symbols::KernelName &one : tables_->following.symbols().kernel({address}))
        if (one.address == address && !one.symbol.empty() && one.offset < kFarthest) name = with_offset(one.symbol, one.offset);
    passed_at_ = sys::monotonic_ns();
    pass_ns_ = passed_at_ - now;
    return name;
}

// `lasts`: the answer is the same until the process changes. Code that is made at run time gets its names as it goes.
std::string Names::user_symbol(uint32_t pid, uint64_t address, uint64_t t_ns, bool &lasts) {
    processes::Following &following = tables_->following;
    // Without news /proc tells what is there now, and is asked at times of now.
    const processes::Place place =
        following.table().locate(pid, address, false, following.watching() ? t_ns : sys::monotonic_ns());
    lasts = place.pid == 0;
    if (place.module == processes::kNone) return {};
    const Frame &frame = *tables_->namer.frame(tables_->tree.intern_place(place));
    return frame.symbol.empty() ? std::string() : frame_name(frame);
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
