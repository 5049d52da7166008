// Not batched: one file more puts the tests of experiments and of the verifier together, and both have a Range.
// A recorded trace: what the view says of a recording is what it says of the events themselves; nothing that is cut or forged
// gets far.
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "programs/trace/recorder.h"
#include "programs/trace/report.h"
#include "programs/trace/view.h"
#include "runtime/base/format.h"
#include "tests/support/cut_recording.h"
#include "tests/support/sanitized.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;

namespace {

constexpr uint64_t kStart = 1'000'000'000;
constexpr uint32_t kPid = 4'194'305; // no process has it: the largest is 4194304

// openat(dfd, filename, flags, where: a socket's address, kind: an enumeration), and what it returned.
struct Machine {
    std::vector<std::byte> types;
    std::optional<btf::Btf> kernel;
    std::vector<ProbeSite> places;
    Layout call, result;
    RunInfo run;
    Settings settings;

    Machine() {
        btf::Writer writer;
        (void)writer.add_int("int", 4, true);
        const btf::TypeId kind = writer.add_enum("kind", 4, {{"KIND_NONE", 0}, {"KIND_ODD", 7}, {"KIND_LAST", -1}});
        types = writer.finish();
        kernel = btf::Btf::parse(types, "types").value();
        Type number{"int", Show::integer, 4, true}, text{"const char *", Show::text, 8, false},
            address{"struct sockaddr *", Show::sockaddr, 8, false}, choice{"enum kind", Show::enumeration, 4, false, kind};
        ProbeSite open;
        open.kind = ProbeKind::syscall;
        open.function = "openat";
        open.signature.known = true;
        open.signature.returns = {"long", Show::integer, 8, true};
        open.signature.parameters = {
            {"dfd", number}, {"filename", text}, {"flags", number}, {"where", address}, {"kind", choice}};
        places = {open};
        call.columns.resize(5);
        for (uint32_t i = 0; i < 5; ++i) call.columns[i].value.argument = i;
        call.columns[1].blob = 0;
        call.columns[3].blob = 1;
        const uint16_t values = sizeof(Header) + 5 * 8;
        call.blobs = {{1, Show::text, values, 32}, {3, Show::sockaddr, values + 36, 112}};
        call.size = values + 36 + 116;
        result.is_result = true;
        result.size = sizeof(Header) + 8;
        run.command = {"rawbpf", "trace"};
        run.start_wall_ns = 1'736'936'745'000'000'000;
        settings.returns = true;
    }

    template <class See> void each(See &&see) const {
        for (uint64_t i = 0; i < 40; ++i) {
            std::vector<std::byte> record(call.size, std::byte{0xa5}); // what the ring had there before
            Header header{.time = kStart + 1000 * i, .tid = kPid + 1 + static_cast<uint32_t>(i % 3), .pid = kPid, .cpu = 1};
            header.unreadable = i == 9 ? 4 : 0;
            std::strcpy(header.comm, i % 5 ? "opener" : "x\\y");
            const uint64_t values[] = {static_cast<uint64_t>(AT_FDCWD), 0x7000 + i, O_RDWR | O_DIRECTORY | O_CLOEXEC, 0x8000,
                                       i % 4 == 3 ? 7 : i % 4};
            std::memcpy(record.data(), &header, sizeof header);
            std::memcpy(record.data() + sizeof header, values, sizeof values);
            const std::string name = i % 7 ? format("/etc/file{}", i % 4) : std::string(31, 'l');
            const auto length = i == 5 ? -EFAULT : static_cast<int32_t>(name.size() + 1);
            std::memcpy(record.data() + call.blobs[0].offset, &length, sizeof length);
            std::memcpy(record.data() + call.blobs[0].offset + 4, name.c_str(), name.size() + 1);
            sockaddr_in to{};
            to.sin_family = AF_INET;
            to.sin_port = htons(static_cast<uint16_t>(i));
            to.sin_addr.s_addr = htonl(0x7f000001);
            const int32_t copied = sizeof to;
            std::memcpy(record.data() + call.blobs[1].offset, &copied, sizeof copied);
            std::memcpy(record.data() + call.blobs[1].offset + 4, &to, sizeof to);
            Event event;
            event.place = &places[0];
            event.layout = &call;
            event.header = header;
            event.record = record;
            see(event);
            if (i == 20) { // its calls are gone
                Event exec;
                exec.header = header;
                exec.header.what = What::exec;
                exec.header.place = header.tid;
                see(exec);
            }
            const uint64_t returned = i % 8 ? 3 + i : static_cast<uint64_t>(-2);
            header.what = What::result;
            header.time += 300;
            event.header = header;
            event.layout = &result;
            std::memcpy(record.data(), &header, sizeof header);
            std::memcpy(record.data() + sizeof header, &returned, sizeof returned);
            if (i != 12) see(event);
        }
    }
    [[nodiscard]] Spent spent() const {
        Spent out;
        out.counts.resize(1);
        out.counts[0].counts.fired = 81;
        out.counts[0].counts.lost = 2;
        out.counts[0].shown = 79;
        return out;
    }
    [[nodiscard]] std::string recording() const {
        Recorder recorder(-1, settings, places, &*kernel);
        REQUIRE(recorder.start(run, kStart));
        each([&](const Event &event) { recorder.event(event); });
        recording::End end;
        end.ledger = sums_of(spent());
        REQUIRE(recorder.finish(spent(), end));
        return recorder.take();
    }
    [[nodiscard]] std::string live(ViewOptions how) const {
        std::string out;
        render::Writer writer(out);
        how.returns = true;
        View view(how, places, run, &*kernel, kStart, writer);
        REQUIRE(view.start());
        each([&](const Event &event) { view.event(event); });
        view.drain();
        const Spent all = spent();
        REQUIRE(view.finish(all.counts, ledger_of(all, view, open_calls(view.calls()))));
        return out;
    }
};

Result<std::string> shown(const std::string &recording, const ViewOptions &how, ReportEnd *end = nullptr) {
    std::string out;
    render::Writer writer(out);
    const std::unique_ptr<trace::Report> report = TRY(trace::Report::open(bytes_of(recording), "test.rbpf"));
    ReportEnd came = TRY(report->show(how, "", writer));
    if (end) *end = std::move(came);
    return out;
}

// The ledger of a report says what the run cost, too.
std::string without_cost(std::string text) {
    const size_t from = text.find(",\"cost\":"), to = text.find(",\"functions\":");
    if (from != std::string::npos && to != std::string::npos) text.erase(from, to - from);
    return text.substr(0, text.find(",\"duration_ns\":0,\"per_second\""));
}

} // namespace

TEST_CASE("trace: a recording is shown as the events themselves are, in each format") {
    const Machine machine;
    const std::string recording = machine.recording();
    for (const Format format : {Format::text, Format::json, Format::chrome, Format::folded, Format::protobuf}) {
        CAPTURE(static_cast<int>(format));
        ViewOptions how;
        how.format = format;
        how.latency = true;
        const auto report = shown(recording, how);
        REQUIRE_MESSAGE(report, report.error().message());
        CHECK(without_cost(*report) == without_cost(machine.live(how)));
    }
    const std::string text = shown(recording, {}).value();
    CHECK(text.find(
              "openat(dfd=AT_FDCWD, filename=\"/etc/file1\", flags=O_RDWR|O_DIRECTORY|O_CLOEXEC, where=127.0.0.1:1, kind=1)") !=
          std::string::npos);
    CHECK(text.find("kind=KIND_ODD") != std::string::npos);
    CHECK(text.find("= -2 (ENOENT)  300 ns") != std::string::npos);
    CHECK(recording.size() < 40 * 79); // all that comes once included
}

TEST_CASE("trace: constants of a recording are those of its machine") {
    // As if O_DIRECTORY were something else there: the recording says so, whatever it is here.
    const Machine machine;
    std::string recording = machine.recording();
    const std::string name("\x0bO_DIRECTORY");
    const size_t at = recording.find(name);
    REQUIRE(at != std::string::npos);
    recording.replace(at, name.size(), "\x0bO_ELSEWHERE");
    CHECK(shown(recording, {}).value().find("O_RDWR|O_ELSEWHERE|O_CLOEXEC") != std::string::npos);
}

TEST_CASE("trace: a recording cut at any byte is shown up to there") {
    const Machine machine;
    const std::string whole = machine.recording();
    test::check_cut_anywhere<ReportEnd>(whole, "events", 79,
                                        [](const std::string &text, size_t, ReportEnd &end) { return shown(text, {}, &end); });
    ReportEnd end;
    REQUIRE(shown(whole, {}, &end));
    CHECK(!end.unread);
    CHECK(end.ledger.fired == 81);
    CHECK(end.ledger.adds_up());
}

TEST_CASE("trace: any byte of a recording changed gives an error or a report, never worse") {
    const Machine machine;
    const std::string whole = machine.recording();
    for (size_t at = 0; at < whole.size(); at += test::emulated() ? 7 : 1)
        for (unsigned char value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
            std::string forged = whole;
            forged[at] = static_cast<char>(value);
            ViewOptions how;
            how.format = at % 2 ? Format::text : Format::json;
            (void)shown(forged, how);
        }
}

TEST_CASE("trace: a recording of another tool is refused by name") {
    recording::Writer writer(-1);
    writer.begin({});
    writer.end({});
    const auto text = shown(writer.take(), {});
    REQUIRE(!text);
    CHECK(text.error().message().find("recorded by rawbpf profile, not by rawbpf trace") != std::string::npos);
}
