#include "programs/trace/described.h"

#include <utility>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::trace {

using recording::Cursor;
using recording::put;
using recording::put_signed;

namespace {

constexpr uint32_t kShows = static_cast<uint32_t>(Show::go_any) + 1;
constexpr uint32_t kKinds = static_cast<uint32_t>(ProbeKind::usdt) + 1;
constexpr uint32_t kStyles = static_cast<uint32_t>(ConstantStyle::at) + 1;
constexpr uint32_t kFroms = static_cast<uint32_t>(Value::From::goroutine) + 1;
constexpr uint32_t kMostColumns = 1024;
constexpr uint32_t kMostRecord = UINT16_MAX; // bytes: offsets have 16 bits
constexpr uint32_t kMostEnumerators = UINT16_MAX;

template <class Enum> void put_enumerator(std::string &out, Enum value) { put(out, uint64_t{static_cast<uint8_t>(value)}); }

void put_values(std::string &out, std::span<const Constant> values) {
    put(out, uint64_t{values.size()});
    for (const Constant &one : values) {
        put(out, uint64_t{one.value});
        put(out, one.name);
    }
}

Result<void> read_values(Cursor &in, std::vector<Constant> &to, std::deque<std::string> &names) {
    const uint64_t count = TRY(in.number());
    for (uint64_t i = 0; i < count; ++i) {
        const uint32_t value = TRY(in.number_32());
        to.push_back({value, names.emplace_back(TRY(in.text()))});
    }
    return {};
}

void put_parameters(std::string &out, const std::vector<Parameter> &parameters, const EnumNumber &enums) {
    put(out, uint64_t{parameters.size()});
    for (const Parameter &one : parameters) {
        put(out, std::string_view(one.name));
        put_type(out, one.type, enums);
        put(out, uint64_t{one.is_length});
    }
}

Result<std::vector<Parameter>> read_parameters(Cursor &in, uint32_t enums) {
    std::vector<Parameter> out;
    const uint64_t count = TRY(in.number());
    for (uint64_t i = 0; i < count; ++i) {
        Parameter one;
        one.name = TRY(in.text());
        one.type = TRY(read_type(in, enums));
        one.is_length = TRY(in.truth());
        out.push_back(std::move(one));
    }
    return out;
}

// Where the probes of a function of Go are, which says how far from there its program was loaded.
void put_go_call(std::string &out, const GoCall *call) {
    put(out, uint64_t{call != nullptr});
    if (!call) return;
    put(out, uint64_t{call->probed.size()});
    for (const uint64_t address : call->probed) put(out, address);
}

Result<std::shared_ptr<const GoCall>> read_go_call(Cursor &in) {
    if (!TRY(in.truth())) return std::shared_ptr<const GoCall>();
    auto call = std::make_shared<GoCall>();
    const uint64_t count = TRY(in.number());
    for (uint64_t i = 0; i < count; ++i) call->probed.push_back(TRY(in.number()));
    return std::shared_ptr<const GoCall>(std::move(call));
}

} // namespace

void put_constants(std::string &out, const Constants &constants) {
    put_enumerator(out, constants.style);
    put_values(out, constants.values);
    put_values(out, constants.more);
}

Result<std::shared_ptr<const OwnConstants>> read_constants(Cursor &in) {
    auto out = std::make_shared<OwnConstants>();
    out->style = static_cast<ConstantStyle>(TRY(in.id(kStyles, "style of constants")));
    TRY(read_values(in, out->values, out->names));
    TRY(read_values(in, out->more, out->names));
    return std::shared_ptr<const OwnConstants>(std::move(out));
}

bool put_enum(std::string &out, const btf::Btf &from, btf::TypeId id) {
    const Result<btf::Type> type = from.resolve(id);
    if (!type || (type->kind != btf::Kind::enum_ && type->kind != btf::Kind::enum64)) return false;
    put(out, uint64_t{type->size_or_type});
    put(out, uint64_t{type->vlen});
    for (uint32_t i = 0; i < type->vlen; ++i) {
        const Result<btf::EnumValue> one = from.enum_value(*type, i);
        put(out, one ? one->name : std::string_view());
        put(out, one ? static_cast<uint64_t>(one->value) : 0);
    }
    return true;
}

Result<void> EnumReader::read(Cursor &in) {
    const size_t at = in.in.offset();
    const uint32_t size = TRY(in.number_32()), values = TRY(in.number_32());
    if ((size != 1 && size != 2 && size != 4 && size != 8) || values > kMostEnumerators)
        return Unexpected(in.in.error_at(at, format("an enumeration of {} bytes and {} values", size, values)));
    std::deque<std::string> names;
    std::vector<std::pair<std::string_view, int64_t>> all;
    for (uint32_t i = 0; i < values; ++i) {
        const std::string &name = names.emplace_back(TRY(in.text()));
        all.emplace_back(name.c_str(), static_cast<int64_t>(TRY(in.number()))); // BTF's names end at a zero
    }
    (void)writer_.add_enum({}, size, all);
    ++count_;
    return {};
}

Result<btf::Btf> EnumReader::finish(const std::string &name) {
    bytes_ = writer_.finish();
    return btf::Btf::parse(bytes_, name);
}

void put_type(std::string &out, const Type &type, const EnumNumber &enums) {
    put(out, std::string_view(type.name));
    put_enumerator(out, type.show);
    put(out, uint64_t{type.size});
    put(out, uint64_t{type.is_signed});
    put(out, uint64_t{type.show == Show::enumeration && type.id != 0 ? enums(type.id) : 0});
    put(out, uint64_t{type.length});
    put_enumerator(out, type.element);
}

Result<Type> read_type(Cursor &in, uint32_t enums) {
    Type type;
    type.name = TRY(in.text());
    const size_t at = in.in.offset();
    type.show = static_cast<Show>(TRY(in.id(kShows, "kind of value")));
    type.size = static_cast<uint8_t>(TRY(in.id(9, "value's size")));
    type.is_signed = TRY(in.truth());
    type.id = TRY(in.id(enums + 1, "enumeration"));
    type.length = TRY(in.number_32());
    type.element = static_cast<Show>(TRY(in.id(kShows, "kind of element")));
    if (type.show == Show::go_slice && type.element != Show::counted && type.length > 8)
        return Unexpected(in.in.error_at(at, format("elements of {} bytes", type.length)));
    return type;
}

void put_site(std::string &out, const ProbeSite &site, const EnumNumber &enums) {
    put_enumerator(out, site.kind);
    for (const std::string *text : {&site.function, &site.file, &site.category, &site.module}) put(out, std::string_view(*text));
    put(out, site.address);
    put(out, site.offset);
    put(out, uint64_t{site.signature.known});
    put(out, uint64_t{site.signature.variadic});
    put_parameters(out, site.signature.parameters, enums);
    put_type(out, site.signature.returns, enums);
    put_go_call(out, site.go_call.get());
}

Result<ProbeSite> read_site(Cursor &in, uint32_t enums) {
    ProbeSite site;
    site.kind = static_cast<ProbeKind>(TRY(in.id(kKinds, "kind of probe")));
    for (std::string *text : {&site.function, &site.file, &site.category, &site.module}) *text = TRY(in.text());
    site.address = TRY(in.number());
    site.offset = TRY(in.number());
    site.signature.known = TRY(in.truth());
    site.signature.variadic = TRY(in.truth());
    site.signature.parameters = TRY(read_parameters(in, enums));
    site.signature.returns = TRY(read_type(in, enums));
    site.go_call = TRY(read_go_call(in));
    return site;
}

void put_layout(std::string &out, const Layout &layout, const EnumNumber &enums) {
    put(out, uint64_t{layout.is_result});
    put(out, uint64_t{layout.goroutine});
    put(out, uint64_t{layout.results});
    put(out, uint64_t{layout.columns.size()});
    for (const Column &column : layout.columns) {
        put_enumerator(out, column.value.from);
        put(out, uint64_t{column.value.argument});
        put(out, std::string_view(column.name));
        put_type(out, column.value.type, enums);
        const Blob *blob = column.blob < 0 ? nullptr : &layout.blobs[static_cast<size_t>(column.blob)];
        put(out, uint64_t{blob != nullptr});
        if (!blob) continue;
        put_enumerator(out, blob->show);
        put(out, uint64_t{blob->capacity});
    }
}

Result<Layout> read_layout(Cursor &in, uint32_t enums) {
    Layout layout;
    layout.recorded = true;
    layout.is_result = TRY(in.truth());
    layout.goroutine = TRY(in.truth());
    layout.results = TRY(in.number_32());
    const size_t at = in.in.offset();
    const uint32_t columns = TRY(in.id(kMostColumns, "columns"));
    if (layout.results > columns)
        return Unexpected(in.in.error_at(at, format("{} results in {} columns", layout.results, columns)));
    uint32_t copied = 0;
    for (uint32_t i = 0; i < columns; ++i) {
        Column column;
        column.value.from = static_cast<Value::From>(TRY(in.id(kFroms, "kind of column")));
        column.value.argument = TRY(in.number_32());
        column.name = TRY(in.text());
        column.value.type = TRY(read_type(in, enums));
        if (TRY(in.truth())) {
            Blob blob;
            blob.column = i;
            blob.show = static_cast<Show>(TRY(in.id(kShows, "kind of value")));
            blob.capacity = static_cast<uint16_t>(TRY(in.id(UINT16_MAX, "copied bytes")));
            blob.offset = static_cast<uint16_t>(copied); // from the first one on, until all columns are known
            copied += 4 + blob.capacity;
            if (copied > kMostRecord) break;
            column.blob = static_cast<int32_t>(layout.blobs.size());
            layout.blobs.push_back(blob);
        }
        layout.columns.push_back(std::move(column));
    }
    const uint32_t values_end = static_cast<uint32_t>(sizeof(Header)) + 8 * layout.values();
    if (values_end + copied > kMostRecord)
        return Unexpected(in.in.error_at(at, format("records of more than {} bytes", kMostRecord)));
    for (Blob &blob : layout.blobs) blob.offset = static_cast<uint16_t>(blob.offset + values_end);
    layout.size = values_end + copied;
    return layout;
}

} // namespace rawbpf::inline v0::trace
