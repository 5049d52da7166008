// Finding, reading and parsing it. The process runs on, and may say anything: sizes and counts have limits, a number that leads
// nowhere is an error, and a payload is believed only when its time is the same behind it as before.
#include "programs/labels/process_context.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "programs/render/protobuf_fields.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/symbols/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::labels {
namespace {

using languages::Memory;
using render::next_field;
using render::ProtobufField;

constexpr std::string_view kNames[] = {"[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]", "/memfd:OTEL_CTX"};
constexpr char kSignature[8] = {'O', 'T', 'E', 'L', '_', 'C', 'T', 'X'};
constexpr uint32_t kVersion = 2;
constexpr int kTries = 8;

struct Header {
    char signature[8];
    uint32_t version, payload_size;
    uint64_t published_ns, payload;
};
static_assert(sizeof(Header) == 32);

Result<Header> read_header(languages::Pages &pages, uint64_t address) {
    Memory memory(pages, 2);
    Header header{};
    if (!memory.read(address, std::as_writable_bytes(std::span(&header, 1))))
        return fail(Errc::bad_input, "the OTEL_CTX mapping at {:#x} can't be read", address);
    if (std::memcmp(header.signature, kSignature, sizeof kSignature) != 0)
        return fail(Errc::bad_input, "the OTEL_CTX mapping at {:#x} doesn't begin with OTEL_CTX", address);
    if (header.version != kVersion)
        return fail(Errc::bad_input, "the OTEL_CTX mapping at {:#x} has version {}; rawbpf reads version {}", address,
                    header.version, kVersion);
    return header;
}

// AnyValue: what it says, as text; `values`: the texts of a list. What is neither text nor number leaves both as they are.
Result<void> read_value(Bytes any, std::string *text, std::vector<std::string> *values) {
    enum : uint64_t { kText = 1, kTruth = 2, kInteger = 3, kReal = 4, kList = 5 };
    ByteReader in(any, "OTEL_CTX: value");
    while (!in.done()) {
        const ProtobufField field = TRY(next_field(in));
        if (text && field.is_bytes(kText)) text->assign(field.text().substr(0, kMostValue));
        if (text && field.number == kTruth && field.type == 0) *text = field.value ? "true" : "false";
        if (text && field.number == kInteger && field.type == 0) *text = format("{}", static_cast<int64_t>(field.value));
        if (text && field.number == kReal && field.type == 1) *text = format("{}", std::bit_cast<double>(field.value));
        if (!values || !field.is_bytes(kList)) continue;
        ByteReader list(field.bytes, "OTEL_CTX: list");
        while (!list.done()) {
            const ProtobufField value = TRY(next_field(list));
            if (!value.is_bytes(1)) continue;
            if (values->size() >= kMostKeys) return {};
            TRY(read_value(value.bytes, &values->emplace_back(), nullptr));
        }
    }
    return {};
}

Result<void> read_attribute(Bytes pair, ProcessContext &out) {
    std::string key, value;
    Bytes any;
    bool has_value = false;
    ByteReader in(pair, "OTEL_CTX: attribute");
    while (!in.done()) {
        const ProtobufField field = TRY(next_field(in));
        if (field.is_bytes(1)) key.assign(field.text().substr(0, kMostValue));
        if (field.is_bytes(2)) any = field.bytes, has_value = true;
    }
    if (!has_value) return {};
    if (key == "threadlocal.attribute_key_map") {
        out.keys.clear();
        return read_value(any, nullptr, &out.keys);
    }
    TRY(read_value(any, &value, nullptr));
    if (key == "threadlocal.schema_version")
        out.schema = std::move(value);
    else if (!value.empty())
        out.attributes.emplace_back(std::move(key), std::move(value));
    return {};
}

} // namespace

bool ProcessContext::has_threads() const { return schema == "tls_v1" || schema == "tlsdesc_v1_dev"; }

const std::string *ProcessContext::find(std::string_view key) const {
    for (const auto &[name, value] : attributes)
        if (name == key) return &value;
    return nullptr;
}

std::vector<uint64_t> context_mappings(std::string_view maps) {
    std::vector<uint64_t> out;
    while (!maps.empty()) {
        const std::string_view line = symbols::take_line(maps);
        symbols::TextCursor at(line);
        uint64_t start = 0;
        if (!at.hex(start) || !at.skip('-')) continue;
        // Behind five fields with blanks between them. A path that has such a name in its middle is another one.
        std::string_view name = at.rest();
        for (int field = 0; field < 5 && !name.empty(); ++field) {
            name.remove_prefix(std::min(name.find(' '), name.size()));
            name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
        }
        for (const std::string_view wanted : kNames)
            if (name.starts_with(wanted)) out.push_back(start);
    }
    return out;
}

Result<uint64_t> published_at(languages::Pages &pages, uint64_t address) { return TRY(read_header(pages, address)).published_ns; }

Result<ProcessContext> parse_context(Bytes payload) {
    ProcessContext out;
    ByteReader in(payload, "OTEL_CTX");
    while (!in.done()) {
        const ProtobufField field = TRY(next_field(in));
        if (field.is_bytes(2)) TRY(read_attribute(field.bytes, out));
        if (!field.is_bytes(1)) continue;
        ByteReader resource(field.bytes, "OTEL_CTX: resource");
        while (!resource.done()) {
            const ProtobufField attribute = TRY(next_field(resource));
            if (attribute.is_bytes(1)) TRY(read_attribute(attribute.bytes, out));
        }
    }
    return out;
}

Result<ProcessContext> read_context(languages::Pages &pages, uint64_t address) {
    for (int i = 0; i < kTries; ++i) {
        const Header header = TRY(read_header(pages, address));
        if (header.published_ns == 0) continue;
        const bool fits = header.payload_size <= kMostPayload;
        std::vector<std::byte> payload(fits ? header.payload_size : 0);
        Memory memory(pages, kMostPayload / languages::Pages::kPage + 2);
        const bool whole = memory.read(header.payload, payload);
        if (TRY(published_at(pages, address)) != header.published_ns) continue;
        if (!fits)
            return fail(Errc::bad_input, "the OTEL_CTX mapping at {:#x} has a payload of {} bytes; rawbpf reads up to {}",
                        address, header.payload_size, kMostPayload);
        if (!whole) return fail(Errc::bad_input, "the payload at {:#x} of the OTEL_CTX mapping can't be read", header.payload);
        ProcessContext out = TRY(parse_context(payload));
        out.published_ns = header.published_ns;
        return out;
    }
    return fail(Errc::busy, "the OTEL_CTX mapping at {:#x} is being changed", address);
}

Result<FoundContext> find_context(uint32_t pid) {
    sys::Because why("has the process published its OpenTelemetry context?");
    const std::string maps = TRY(sys::read_file(format("/proc/{}/maps", pid)));
    const std::vector<uint64_t> mappings = context_mappings(maps);
    if (mappings.empty()) return fail(Errc::not_found, "process {} has no OpenTelemetry context", pid);
    languages::ProcessPages pages = TRY(languages::ProcessPages::open(pid));
    Result<ProcessContext> context = fail(Errc::not_found, "");
    for (const uint64_t address : mappings) {
        context = read_context(pages, address);
        if (context) return FoundContext{address, std::move(*context)};
    }
    return Unexpected(std::move(context).error());
}

} // namespace rawbpf::inline v0::labels
