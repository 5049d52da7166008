#include "programs/trace/recorder.h"

#include <algorithm>
#include <utility>

#include "programs/recording/names.h"
#include "programs/trace/described.h"
#include "runtime/base/fail.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::trace {

using processes::kNone;
using recording::put;
using recording::put_reference;
using recording::put_signed;

Recorder::Recorder(int fd, const Settings &settings, const std::vector<ProbeSite> &places, const btf::Btf *kernel)
    : settings_(settings), places_(places), kernel_(kernel), names_(nullptr, {}, true), writer_(fd), forms_(2 * places.size()) {
    settings_.most_frames = names_.most_frames();
}

bool Recorder::wants_watch(int workload) const {
    return settings_.stack || (workload >= 0 && !settings_.count && shows_functions(places_));
}

Result<void> Recorder::start(const RunInfo &run, uint64_t start_ns) {
    writer_.begin({run, start_ns, recording::Tool::trace});
    std::string p;
    for (const bool flag :
         {settings_.graph, settings_.latency, settings_.count, settings_.calls, settings_.returns, settings_.stack})
        put(p, uint64_t{flag});
    put(p, uint64_t{static_cast<uint8_t>(settings_.unwind)});
    put(p, uint64_t{settings_.most_frames});
    put(p, std::string_view(settings_.title));
    writer_.chunk(kSettings, p);
    for (const ProbeSite &place : places_) {
        p.clear();
        put_site(p, place, [this](btf::TypeId id) { return enum_of(id); });
        writer_.chunk(kSite, p);
    }
    return writer_.flush();
}

uint32_t Recorder::enum_of(btf::TypeId id) {
    const auto [at, is_new] = enums_.emplace(id, 0);
    if (!is_new || !kernel_) return at->second;
    std::string p;
    if (!put_enum(p, *kernel_, id)) return 0;
    writer_.chunk(kEnum, p);
    return at->second = ++enums_written_;
}

uint32_t Recorder::layout_of(const Layout *layout) {
    const auto [at, is_new] = layouts_.emplace(layout, static_cast<uint32_t>(layouts_.size()));
    if (is_new) {
        std::string p;
        put_layout(p, *layout, [this](btf::TypeId id) { return enum_of(id); });
        writer_.chunk(kLayout, p);
    }
    return at->second;
}

Recorder::Form &Recorder::form_of(const Event &event) {
    const bool is_result = event.header.what == What::result;
    std::unique_ptr<Form> &form = forms_[2 * size_t{event.header.place} + is_result];
    if (form) return *form;
    form = std::make_unique<Form>();
    const Layout &layout = *event.layout;
    form->last.resize(layout.values());
    std::string p;
    put(p, uint64_t{event.header.place});
    put(p, uint64_t{is_result});
    put(p, uint64_t{layout_of(&layout)});
    for (uint32_t i = 0; i < layout.columns.size(); ++i) {
        const ColumnPlan plan = plan_column(*event.place, layout, i);
        if (may_be_address(plan.type) && i < layout.arguments()) form->functions.push_back({i, plan.type});
        if (plan.type.show == Show::go_interface || plan.type.show == Show::go_any) form->go_types.push_back(i);
        uint32_t number = kNone;
        if (plan.constants) {
            std::string described;
            put_constants(described, *plan.constants);
            const auto [at, is_new] = constants_.emplace(described, static_cast<uint32_t>(constants_.size()));
            if (is_new) writer_.chunk(kConstants, described);
            number = at->second;
        }
        put_reference(p, number);
    }
    if (is_result && layout.is_result && !event.place->go_call && may_return_address(event.result_type()))
        form->functions.push_back({static_cast<uint32_t>(layout.columns.size()), event.result_type()});
    writer_.chunk(kForm, p);
    form->number = forms_written_++;
    return *form;
}

uint32_t Recorder::thread_of(const Header &header) {
    std::string p;
    put(p, uint64_t{header.pid});
    put(p, uint64_t{header.tid});
    put(p, uint64_t{writer_.comm(header.comm)});
    if (const auto at = threads_.find(p); at != threads_.end()) return at->second;
    writer_.chunk(kThread, p);
    const auto number = static_cast<uint32_t>(threads_.size());
    threads_.emplace(std::move(p), number);
    return number;
}

// Not in the middle of an event, which may have several texts.
void Recorder::keep_bounded(const Layout &layout) {
    if (threads_.size() < kMostKept && texts_.size() + layout.blobs.size() <= kMostKept) return;
    writer_.chunk(kForget, {});
    threads_.clear();
    texts_.clear();
}

// What the kernel copied for a column: its length, and a number of what was seen before.
void Recorder::put_blob(std::string &payload, const Event &event, const Blob &blob) {
    put_signed(payload, load<int32_t>(event.record.data() + blob.offset));
    const auto *bytes = reinterpret_cast<const char *>(event.record.data()) + blob.offset + 4;
    std::string text(bytes, used_bytes(blob, event.record));
    if (text.size() > kLongestText) {
        put(payload, uint64_t{0});
        return put(payload, std::string_view(text));
    }
    auto at = texts_.find(text);
    if (at == texts_.end()) {
        writer_.chunk(kText, text);
        const auto number = static_cast<uint32_t>(texts_.size());
        at = texts_.emplace(std::move(text), number).first;
    }
    put_reference(payload, at->second);
}

// The program has them, which the report doesn't look at: each once.
void Recorder::put_go_types(const Event &event, const Form &form) {
    for (const uint32_t column : form.go_types) {
        const GoTypeName type = go_type_name(event, column);
        if (type.name.empty()) continue;
        std::string p;
        put(p, uint64_t{event.header.place});
        put(p, type.address);
        if (!go_types_.insert(p).second) continue;
        put(p, std::string_view(type.name));
        writer_.chunk(kGoType, p);
    }
}

void Recorder::locate_functions(const Event &event, const Form &form) {
    functions_.clear();
    for (const Form::Function &one : form.functions)
        functions_.push_back(
            names_.locate_function(event.header.pid, as_address(one.type, event.value(one.value)), event.header.time));
    if (std::all_of(functions_.begin(), functions_.end(), [](uint32_t place) { return place == kNone; })) functions_.clear();
}

void Recorder::event(const Event &event) {
    const Header &header = event.header;
    std::string p;
    if (header.what == What::exec) {
        keep_bounded({});
        const uint32_t thread = thread_of(header);
        writer_.put_time(p, header.time);
        put(p, uint64_t{thread});
        put(p, uint64_t{header.place});
        return writer_.chunk(kExec, p);
    }
    Form &form = form_of(event);
    keep_bounded(*event.layout);
    if (settings_.returns) callers_.insert({header.tid, header.pid});
    processes::InternedSample stack;
    if (settings_.stack) stack = names_.locate(event);
    locate_functions(event, form);
    writer_.grow(names_.tree(), names_.following().table().modules());
    writer_.labels(names_.labels_of(event), names_.label_sets());
    put_go_types(event, form);
    const uint32_t thread = thread_of(header);
    put(p, uint64_t{form.number});
    put(p, uint64_t{thread});
    writer_.put_time(p, header.time);
    put(p, uint64_t{header.cpu});
    uint64_t has = 0;
    if (header.unreadable) has |= kHasUnreadable;
    if (header.duration) has |= kHasDuration;
    if (header.frame) has |= kHasFrame;
    if (!functions_.empty()) has |= kHasFunctions;
    put(p, has);
    if (header.unreadable) put(p, uint64_t{header.unreadable});
    if (header.duration) put(p, header.duration);
    if (header.frame) put_signed(p, static_cast<int64_t>(header.frame - std::exchange(last_frame_, header.frame)));
    for (uint32_t i = 0; i < form.last.size(); ++i)
        put_signed(p, static_cast<int64_t>(event.value(i) - std::exchange(form.last[i], event.value(i))));
    for (const Blob &blob : event.layout->blobs) put_blob(p, event, blob);
    if (settings_.stack) {
        put_reference(p, stack.kernel);
        put_reference(p, stack.user);
        put_signed(p, std::min(stack.user_bytes, 0));
        put(p, stack.ending == processes::kNoEnding ? 0 : uint64_t{stack.ending} + 1);
    }
    for (const uint32_t place : functions_) put_reference(p, place);
    writer_.chunk(kEvent, p);
    ++events_;
}

void Recorder::write_names() {
    processes::Following &following = names_.following();
    recording::write_names(writer_, names_.tree(), names_.namer(), following.table().modules(), following.symbols());
}

Result<void> Recorder::flush(uint64_t now_ns) {
    if (names_.wants_trim()) {
        write_names();
        writer_.reset();
        if (names_.outgrown()) writer_.forget_modules();
        names_.trim();
    }
    return writer_.flush_when_due(now_ns);
}

void Recorder::look_who_lives() {
    for (const uint32_t id : callers_)
        if (sys::process_exists(static_cast<int>(id))) alive_.push_back(id);
}

Result<void> Recorder::finish(const Spent &spent, recording::End end) {
    write_names();
    std::string p;
    uint64_t fired = 0;
    for (const PlaceCounts &place : spent.counts) fired += place.counts.fired != 0;
    put(p, fired);
    for (uint32_t i = 0; i < spent.counts.size(); ++i) {
        const PlaceCounts &one = spent.counts[i];
        if (one.counts.fired == 0) continue;
        for (const uint64_t value : {uint64_t{i}, one.counts.fired, one.counts.filtered, one.counts.sampled_out, one.counts.lost,
                                     one.shown, one.backlog_full, one.left_out})
            put(p, value);
    }
    put(p, spent.malformed);
    put(p, spent.most ? *spent.most + 1 : 0);
    put(p, uint64_t{alive_.size()});
    for (const uint32_t id : alive_) put(p, uint64_t{id});
    writer_.chunk(kCounts, p);
    writer_.end(end);
    return writer_.flush();
}

} // namespace rawbpf::inline v0::trace
