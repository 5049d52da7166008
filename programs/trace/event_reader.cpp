// The View and the formats take what comes from the kernel for granted: that a record has its layout's size, that a place and a
// kind have one layout. So that is what is checked here, of a file that may be anything.
#include "programs/trace/event_reader.h"

#include <algorithm>
#include <cstring>

#include "programs/trace/decode.h"
#include "programs/trace/event_sample.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/unwind/layout.h"

namespace rawbpf::inline v0::trace {

using recording::Cursor;

namespace {

constexpr uint32_t kUnwinds = static_cast<uint32_t>(UnwindBy::tables) + 1;

} // namespace

Result<void> EventReader::read_settings(Cursor &in) {
    for (bool *flag :
         {&settings_.graph, &settings_.latency, &settings_.count, &settings_.calls, &settings_.returns, &settings_.stack})
        *flag = TRY(in.truth());
    settings_.unwind = static_cast<UnwindBy>(TRY(in.id(kUnwinds, "way to walk stacks")));
    settings_.most_frames = TRY(in.number_32());
    settings_.title = TRY(in.text());
    begun_ = true;
    return {};
}

Result<void> EventReader::read_place(Cursor &in) {
    places_.push_back(TRY(read_site(in, enums_.count())));
    spent_.counts.emplace_back();
    return {};
}

Result<void> EventReader::read_form(Cursor &in) {
    const size_t at = in.in.offset();
    Form form;
    form.place = TRY(in.id(places_.size(), "probe"));
    form.what = TRY(in.truth()) ? What::result : What::call;
    form.layout = layouts_[TRY(in.id(layouts_.size(), "layout"))];
    const ProbeSite &place = places_[form.place];
    if (form.what == What::result && !form.layout.is_result && !place.go_call)
        return Unexpected(in.in.error_at(at, "a return without a result"));
    if (!formed_.insert(uint64_t{form.place} << 1 | form.what).second)
        return Unexpected(in.in.error_at(at, "a second form of a probe's events"));
    for (uint32_t i = 0; i < form.layout.columns.size(); ++i) {
        const uint32_t constants = TRY(in.reference(constants_.size(), "constants"));
        if (constants != processes::kNone) form.layout.columns[i].constants = constants_[constants];
        if (i >= form.layout.arguments()) continue;
        const ColumnPlan plan = plan_column(place, form.layout, i);
        if (may_be_address(plan.type)) form.functions.push_back({i, plan.type});
    }
    if (form.what == What::result && !place.go_call && may_return_address(place.result_type()))
        form.functions.push_back({static_cast<uint32_t>(form.layout.columns.size()), place.result_type()});
    form.last.resize(form.layout.values());
    forms_.push_back(std::move(form));
    return {};
}

Result<void> EventReader::read_thread(Cursor &in) {
    Thread thread;
    thread.pid = TRY(in.number_32());
    thread.tid = TRY(in.number_32());
    const std::string_view comm = TRY(reader_.comm(in));
    std::memcpy(thread.comm, comm.data(), std::min(comm.size(), sizeof thread.comm - 1));
    threads_.push_back(thread);
    return {};
}

Result<void> EventReader::read_text(Cursor &in) {
    const Bytes text = in.in.all();
    if (text.size() > kLongestText) return Unexpected(in.in.error_at(0, format("a text of {} bytes", text.size())));
    texts_.push_back(text);
    return {};
}

void EventReader::set_thread(Header &header, const Thread &thread) const {
    header.pid = thread.pid;
    header.tid = thread.tid;
    std::memcpy(header.comm, thread.comm, sizeof header.comm);
}

Result<void> EventReader::read_blob(Cursor &in, const Blob &blob) {
    const size_t at = in.in.offset();
    const auto length = static_cast<int32_t>(TRY(in.signed_number()));
    const uint32_t text = TRY(in.reference(texts_.size(), "text"));
    const Bytes bytes = text == processes::kNone ? TRY(in.bytes()) : texts_[text];
    if (bytes.size() > blob.capacity)
        return Unexpected(in.in.error_at(at, format("{} bytes where there is room for {}", bytes.size(), blob.capacity)));
    std::memcpy(record_.data() + blob.offset, &length, sizeof length);
    if (!bytes.empty()) std::memcpy(record_.data() + blob.offset + 4, bytes.data(), bytes.size());
    return {};
}

Result<void> EventReader::read_stack(Cursor &in, processes::InternedSample &to) const {
    to.kernel = TRY(reader_.node(in, "kernel stack"));
    to.user = TRY(reader_.node(in, "user stack"));
    to.user_bytes = std::min(TRY(in.stack_bytes()), 0);
    const uint32_t ending = TRY(in.id(UNWIND_ENDINGS + 1, "ending"));
    to.ending = ending == 0 ? processes::kNoEnding : static_cast<uint8_t>(ending - 1);
    return {};
}

Result<void> EventReader::read_event(Cursor &in) {
    Form &its = forms_[TRY(in.id(forms_.size(), "form"))];
    event_ = {};
    Header header;
    set_thread(header, threads_[TRY(in.id(threads_.size(), "thread"))]);
    header.time = TRY(reader_.time(in));
    header.place = its.place;
    header.what = its.what;
    header.cpu = TRY(in.number_32());
    const uint32_t flags = TRY(in.number_32());
    if (flags & kHasUnreadable) header.unreadable = TRY(in.number_32());
    if (flags & kHasDuration) header.duration = TRY(in.number());
    if (flags & kHasFrame) header.frame = last_frame_ += static_cast<uint64_t>(TRY(in.signed_number()));
    record_.assign(its.layout.size, std::byte{});
    std::memcpy(record_.data(), &header, sizeof header);
    for (size_t i = 0; i < its.last.size(); ++i) {
        its.last[i] += static_cast<uint64_t>(TRY(in.signed_number()));
        std::memcpy(record_.data() + sizeof header + 8 * i, &its.last[i], sizeof its.last[i]);
    }
    for (const Blob &blob : its.layout.blobs) TRY(read_blob(in, blob));
    event_.stack = sample_of(header);
    if (settings_.stack) TRY(read_stack(in, event_.stack));
    event_.stack.labels = reader_.labels();
    Event &event = event_.event;
    event.header = header;
    event.place = &places_[its.place];
    event.layout = &its.layout;
    event.record = record_;
    if (flags & kHasFunctions)
        for (const Form::Function &one : its.functions) {
            const uint32_t place = TRY(in.reference(reader_.tree().places().size(), "place"));
            if (place != processes::kNone) event_.functions.emplace_back(as_address(one.type, event.value(one.value)), place);
        }
    PlaceCounts &counts = spent_.counts[its.place];
    ++counts.counts.fired;
    ++counts.shown;
    reader_.count();
    if (see_) see_(event_);
    return {};
}

Result<void> EventReader::read_exec(Cursor &in) {
    event_ = {};
    Header &header = event_.event.header;
    header.what = What::exec;
    header.time = TRY(reader_.time(in));
    set_thread(header, threads_[TRY(in.id(threads_.size(), "thread"))]);
    header.place = TRY(in.number_32());
    if (see_) see_(event_);
    return {};
}

Result<void> EventReader::read_counts(Cursor &in) {
    Spent spent;
    spent.counts.resize(places_.size());
    const uint64_t fired = TRY(in.number());
    uint64_t shown = 0;
    for (uint64_t i = 0; i < fired; ++i) {
        PlaceCounts &one = spent.counts[TRY(in.id(places_.size(), "probe"))];
        for (uint64_t *value : {&one.counts.fired, &one.counts.filtered, &one.counts.sampled_out, &one.counts.lost, &one.shown,
                                &one.backlog_full, &one.left_out})
            *value = TRY(in.number());
        shown += one.shown;
    }
    spent.malformed = TRY(in.number());
    if (const uint64_t most = TRY(in.number()); most != 0) spent.most = most - 1;
    const uint64_t alive = TRY(in.number());
    for (uint64_t i = 0; i < alive; ++i) alive_.insert(TRY(in.number_32()));
    if (settings_.count) reader_.count(shown);
    spent_ = std::move(spent);
    ended_ = true;
    return {};
}

Result<void> EventReader::read_go_type(Cursor &in) {
    const size_t at = in.in.offset();
    const uint32_t place = TRY(in.id(places_.size(), "probe"));
    const uint64_t address = TRY(in.number());
    const GoCall *call = places_[place].go_call.get();
    if (!call) return Unexpected(in.in.error_at(at, "a type of Go of a function that isn't Go's"));
    std::shared_ptr<RecordedGoTypes> &types = go_types_[place];
    if (!types) {
        types = std::make_shared<RecordedGoTypes>();
        auto with_types = std::make_shared<GoCall>(*call);
        with_types->types = types;
        places_[place].go_call = std::move(with_types);
    }
    types->add(address, TRY(in.text()));
    return {};
}

Result<bool> EventReader::chunk(uint8_t type, Cursor &in) {
    if (type < kSettings || type > kForget) return false;
    if (begun_ != (type != kSettings))
        return Unexpected(in.in.error_at(0, begun_ ? "settings for a second time" : "an event before the settings"));
    if (ended_) return Unexpected(in.in.error_at(0, "events behind their counts"));
    switch (type) {
    case kSettings: TRY(read_settings(in)); break;
    case kEnum: TRY(enums_.read(in)); break;
    case kSite: TRY(read_place(in)); break;
    case kLayout: layouts_.push_back(TRY(read_layout(in, enums_.count()))); break;
    case kConstants: constants_.push_back(TRY(read_constants(in))); break;
    case kForm: TRY(read_form(in)); break;
    case kThread: TRY(read_thread(in)); break;
    case kText: TRY(read_text(in)); break;
    case kEvent: TRY(read_event(in)); break;
    case kExec: TRY(read_exec(in)); break;
    case kCounts: TRY(read_counts(in)); break;
    case kGoType: TRY(read_go_type(in)); break;
    case kForget:
        threads_.clear();
        texts_.clear();
        break;
    default: break;
    }
    return true;
}

} // namespace rawbpf::inline v0::trace
