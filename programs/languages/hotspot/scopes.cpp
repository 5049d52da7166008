#include "programs/languages/hotspot/scopes.h"

#include <algorithm>
#include <array>
#include <span>

#include "programs/languages/hotspot/code.h"
#include "programs/languages/hotspot/fields.h"
#include "programs/languages/hotspot/unsigned5.h"

namespace rawbpf::inline v0::languages::hotspot {
namespace {

constexpr uint64_t kMostBytes = 1 << 26; // of a table
constexpr size_t kMostScopes = 128;      // a chain; the compilers' own limits are 9 and 15, and as much of recursion

struct Range {
    uint64_t begin, end;
    [[nodiscard]] bool sane() const { return begin < end && end - begin <= kMostBytes; }
};

/// Where the tables of one piece of code are.
struct Tables {
    Range pcs, scopes, metadata;
};

std::optional<Tables> tables_of(Memory &memory, const ScopeOffsets &layout, uint64_t blob) {
    bool read = true;
    const auto number = [&](const Number &field) {
        const auto value = read_number(memory, blob, field);
        read = read && value.has_value();
        return value.value_or(0);
    };
    Tables out{};
    if (layout.apart) {
        const uint64_t base = number(*layout.apart);
        out.pcs = {base + number(layout.pcs), base + number(layout.pcs_end)};
        out.scopes = {out.pcs.end, base + number(layout.scopes_end)};
    } else {
        out.pcs = {blob + number(layout.pcs), blob + number(layout.pcs_end)};
        out.scopes = {number(layout.scopes) + (layout.scopes_by_offset ? blob : 0), out.pcs.begin};
    }
    if (layout.writable) {
        constexpr uint64_t kWord = sizeof(uint64_t);
        const uint64_t base = number(*layout.writable);
        out.metadata = {base + (number(layout.relocation_bytes) + kWord - 1) / kWord * kWord,
                        base + number(layout.writable_bytes)};
    } else {
        const uint64_t base = blob + (layout.metadata_by_base ? number(layout.metadata_base) : 0);
        out.metadata = {base + number(layout.metadata), 0};
        out.metadata.end = layout.metadata_by_base ? out.metadata.begin + UINT16_MAX : out.scopes.begin;
    }
    return read && out.pcs.sane() && out.scopes.sane() && out.metadata.sane() ? std::optional(out) : std::nullopt;
}

/// The place in the stream of scopes for an offset in the code; 0: none. The first and the last PcDesc are only limits.
uint64_t scope_for(Memory &memory, const ScopeOffsets &layout, const Range &pcs, int64_t offset, bool caller) {
    uint64_t first = 0, count = (pcs.end - pcs.begin) / layout.pc_bytes;
    while (count > 0) {
        const uint64_t half = count / 2;
        const auto at = read_number(memory, pcs.begin + (first + half) * layout.pc_bytes, layout.pc_offset);
        if (!at) return 0;
        if (static_cast<int64_t>(*at) < offset)
            first += half + 1, count -= half + 1;
        else
            count = half;
    }
    const auto scope = [&](uint64_t number) {
        const uint64_t found = pcs.begin + number * layout.pc_bytes;
        return found < pcs.end ? read_number(memory, found, layout.scope_offset).value_or(0) : 0;
    };
    const uint64_t next = scope(first);
    return next != 0 || caller || first == 0 ? next : scope(first - 1);
}

/// Empty: not if numbers are written so.
std::vector<Scope> chain(Memory &memory, const Tables &tables, uint64_t scope, bool without_zero) {
    constexpr size_t kHead = 3 * 5; // bytes of three numbers
    std::vector<Scope> out;
    while (out.size() < kMostScopes) {
        if (scope >= tables.scopes.end - tables.scopes.begin) return {};
        std::array<std::byte, kHead> head{};
        const auto bytes = std::span(head).first(std::min<uint64_t>(kHead, tables.scopes.end - tables.scopes.begin - scope));
        if (!memory.read(tables.scopes.begin + scope, bytes)) return {};
        Numbers in(bytes, without_zero);
        const auto caller = in.next(), number = in.next(), bytecode = in.next();
        if (!caller || !number || !bytecode || *number == 0) return {};
        const uint64_t at = tables.metadata.begin + (uint64_t{*number} - 1) * sizeof(uint64_t);
        const auto method = at < tables.metadata.end ? memory.word(at) : std::nullopt;
        if (!method) return {};
        out.push_back({*method, std::max(*bytecode, 1u) - 1}); // one less: it is entered, as at its first one
        if (*caller == 0) return out;
        if (*caller >= scope) return {}; // callers' scopes are written first, so there are no circles
        scope = *caller;
    }
    return {};
}

} // namespace

std::optional<ScopeOffsets> scopes_of(const VmStructs &structs) {
    std::string why;
    Fields fields(structs, why);
    ScopeOffsets out;
    const auto optional = [&](std::string_view type, std::string_view name) { return structs.field(type, name); };
    out.apart = optional("nmethod", "_immutable_data");
    out.writable = optional("CodeBlob", "_mutable_data");
    bool all = fields.take(out.pc_offset, "PcDesc", {"_pc_offset"}) &&
               fields.take(out.scope_offset, "PcDesc", {"_scope_decode_offset"}) && fields.take_size(out.pc_bytes, "PcDesc") &&
               out.pc_bytes != 0 && fields.take(out.pcs, "nmethod", {"_scopes_pcs_offset"});
    if (out.apart) {
        all = all && fields.take(out.pcs_end, "nmethod", {"_scopes_data_offset"}) &&
              fields.take(out.scopes_end, "nmethod", {"_immutable_data_size"});
    } else {
        out.scopes_by_offset = !optional("CompiledMethod", "_scopes_data_begin").has_value();
        all = all && fields.take(out.pcs_end, "nmethod", {"_dependencies_offset"}) &&
              (out.scopes_by_offset ? fields.take(out.scopes, "nmethod", {"_scopes_data_offset"})
                                    : fields.take(out.scopes, "CompiledMethod", {"_scopes_data_begin"}));
    }
    if (out.writable) {
        all = all && fields.take(out.relocation_bytes, "CodeBlob", {"_relocation_size"}) &&
              fields.take(out.writable_bytes, "CodeBlob", {"_mutable_data_size"});
    } else {
        out.metadata_by_base = out.apart.has_value();
        all = all && fields.take(out.metadata, "nmethod", {"_metadata_offset"}) &&
              (!out.metadata_by_base || fields.take(out.metadata_base, "CodeBlob", {"_data_offset"}));
    }
    return all ? std::optional(out) : std::nullopt;
}

std::vector<Scope> scopes_at(Memory &memory, const ScopeOffsets &layout, const Code &code, uint64_t pc, bool caller) {
    if (code.kind != Kind::method || pc < code.begin || pc > code.end) return {};
    const auto tables = tables_of(memory, layout, code.at);
    const uint64_t scope = tables ? scope_for(memory, layout, tables->pcs, static_cast<int64_t>(pc - code.begin), caller) : 0;
    if (scope == 0) return {};
    // In this order: a stream without zero, read as one with it, has no end; but the other way round what was inlined first can
    // look like what it was inlined in.
    for (const bool without_zero : {false, true})
        if (auto found = chain(memory, *tables, scope, without_zero); !found.empty() && found.back().method == code.method)
            return found;
    return {};
}

} // namespace rawbpf::inline v0::languages::hotspot
