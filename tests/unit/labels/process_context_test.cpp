// A process's OpenTelemetry context: found by name, read whole or not at all, parsed in bounds.
#include "programs/labels/process_context.h"

#include <bit>
#include <functional>
#include <string>

#include "tests/support/test.h"
#include "tests/unit/labels/made_context.h"
#include "tests/unit/languages/made_memory.h"

using namespace rawbpf;
using namespace rawbpf::labels;

namespace {

constexpr uint64_t kAt = test::MadeMemory::kBase, kPayload = kAt + 0x1ff0; // across two pages

void publish(test::MadeMemory &memory, std::string_view payload, uint64_t published_ns = 5) {
    std::memcpy(memory.bytes().data(), "OTEL_CTX", 8);
    memory.put<uint32_t>(kAt + 8, 2);
    memory.put<uint32_t>(kAt + 12, static_cast<uint32_t>(payload.size()));
    memory.put(kAt + 16, published_ns);
    memory.put(kAt + 24, kPayload);
    std::memcpy(memory.bytes().data() + (kPayload - kAt), payload.data(), payload.size());
}

// A writer that goes on each time that a page is read.
class Writing final : public languages::Pages {
  public:
    Writing(test::MadeMemory &memory, std::function<void(int)> step) : memory_(memory), step_(std::move(step)) {}
    bool read(uint64_t address, std::span<std::byte> page) override {
        step_(reads_++);
        return memory_.read(address, page);
    }

  private:
    test::MadeMemory &memory_;
    std::function<void(int)> step_;
    int reads_ = 0;
};

} // namespace

TEST_CASE("process context: mappings are found by the beginning of their names") {
    CHECK(context_mappings("7f10-7f20 rw-p 00000000 00:00 0                          [anon:OTEL_CTX]\n"
                           "7f30-7f40 rw-p 00000000 00:01 77                         /memfd:OTEL_CTX (deleted)\n"
                           "7f50-7f60 rw-p 00000000 00:01 78                         [anon_shmem:OTEL_CTX]\n"
                           "7f70-7f80 rw-p 00000000 00:00 0                          [anon:OTEL]\n"
                           "7f90-7fa0 rw-p 00000000 08:01 79                         /tmp/[anon:OTEL_CTX]\n"
                           "7fb0-7fc0 rw-p 00000000 00:00 0 \n"
                           "garbage [anon:OTEL_CTX]\n") == std::vector<uint64_t>{0x7f10, 0x7f30, 0x7f50});
    CHECK(context_mappings("7f10-7f20 [anon:OTEL_CTX]").empty());
}

TEST_CASE("process context: attributes, schema and keys") {
    std::string payload = test::made_payload("shop", "tls_v1", {"route", "user"});
    render::Message more(payload);
    test::put_attribute(more, 2, "region", "north");
    more.message(2, [](render::Message &pair) {
        pair.bytes(1, "shards");
        pair.message(2, [](render::Message &any) { any.present(3, 12); });
    });
    more.message(2, [](render::Message &pair) {
        pair.bytes(1, "load");
        pair.message(2, [](render::Message &any) { any.fixed64(4, std::bit_cast<uint64_t>(0.5)); });
    });
    more.bytes(9, "of a later version");
    test::MadeMemory memory;
    publish(memory, payload);
    const auto context = read_context(memory, kAt);
    REQUIRE(context);
    CHECK(context->published_ns == 5);
    CHECK(context->has_threads());
    CHECK(context->keys == std::vector<std::string>{"route", "user"});
    CHECK(context->attributes ==
          ProcessContext::Pairs{{"service.name", "shop"}, {"region", "north"}, {"shards", "12"}, {"load", "0.5"}});
    REQUIRE(context->find("region"));
    CHECK(*context->find("region") == "north");
    CHECK(!context->find("route"));
}

TEST_CASE("process context: another schema is read, and has no threads' contexts for us") {
    const auto go = parse_context(bytes_of(test::made_payload("shop", "go_pprof_labels_v1", {})));
    REQUIRE(go);
    CHECK(!go->has_threads());
    CHECK(go->schema == "go_pprof_labels_v1");
}

TEST_CASE("process context: a header that lies is refused") {
    const std::string payload = test::made_payload("shop", "tls_v1", {"route"});
    test::MadeMemory memory;
    CHECK(!read_context(memory, kAt)); // zeros
    publish(memory, payload);
    REQUIRE(read_context(memory, kAt));
    memory.put<uint32_t>(kAt + 8, 3);
    CHECK(!read_context(memory, kAt));
    memory.put<uint32_t>(kAt + 8, 2);
    for (const uint64_t address : {uint64_t{0}, uint64_t{1}, UINT64_MAX, UINT64_MAX - 3, kAt + test::MadeMemory::kSize - 4}) {
        memory.put(kAt + 24, address);
        CHECK(read_context(memory, kAt).error().kind == Errc::bad_input);
    }
    memory.put(kAt + 24, kPayload);
    for (const uint32_t size : {static_cast<uint32_t>(kMostPayload), static_cast<uint32_t>(kMostPayload + 1), UINT32_MAX}) {
        memory.put<uint32_t>(kAt + 12, size);
        CHECK(read_context(memory, kAt).error().kind == Errc::bad_input);
    }
    CHECK(!read_context(memory, 0));
    CHECK(!read_context(memory, UINT64_MAX - 8));
}

TEST_CASE("process context: what is being changed isn't believed") {
    const std::string before = test::made_payload("before", "tls_v1", {}), after = test::made_payload("after", "tls_v1", {});
    test::MadeMemory memory;
    publish(memory, before, 0);
    CHECK(read_context(memory, kAt).error().kind == Errc::busy);
    publish(memory, before, 7);
    // The header, half of the payload; then an update, and the rest.
    Writing once(memory, [&](int read) {
        if (read == 2) publish(memory, after, 8);
    });
    const auto context = read_context(once, kAt);
    REQUIRE(context);
    CHECK(context->published_ns == 8);
    CHECK(*context->find("service.name") == "after");
    Writing always(memory, [&](int read) { publish(memory, before, 9 + static_cast<uint64_t>(read)); });
    CHECK(read_context(always, kAt).error().kind == Errc::busy);
}

TEST_CASE("process context: cut and changed payloads end in bounds") {
    const std::string payload = test::made_payload("shop", "tls_v1", {"route", "user", ""});
    size_t whole = 0;
    for (size_t cut = 0; cut < payload.size(); ++cut) {
        // In its own allocation, so that a sanitizer sees a byte too many.
        const std::vector<char> part(payload.begin(), payload.begin() + static_cast<ptrdiff_t>(cut));
        whole += parse_context(bytes_of(std::string_view(part.data(), part.size()))).has_value();
    }
    CHECK(whole == 3); // nothing at all, and the ends of two fields
    for (size_t at = 0; at < payload.size(); ++at)
        for (const int value : {0, 1, 0x7f, 0x80, 0xff}) {
            std::string changed = payload;
            changed[at] = static_cast<char>(value);
            const auto context = parse_context(bytes_of(changed));
            if (!context) continue;
            CHECK(context->keys.size() <= kMostKeys);
            for (const auto &[key, text] : context->attributes) CHECK(key.size() + text.size() <= payload.size() + 24);
        }
    // A key's number is a byte, and a value isn't longer than what is shown.
    const auto many =
        parse_context(bytes_of(test::made_payload(std::string(5000, 'x'), "tls_v1", std::vector<std::string>(300, "k"))));
    REQUIRE(many);
    CHECK(many->keys.size() == kMostKeys);
    CHECK(many->find("service.name")->size() == kMostValue);
}
