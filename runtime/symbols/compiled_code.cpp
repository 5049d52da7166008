#include "runtime/symbols/compiled_code.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/base/stable_sort.h"
#include "runtime/symbols/demangle.h"
#include "runtime/symbols/long_names.h"
#include "runtime/symbols/text.h"

namespace rawbpf::inline v0::symbols {
namespace {

constexpr uint64_t kLongestFunction = UINT32_MAX;
constexpr int kMostOverlaps = 64; // how many functions that begin before an address are looked at
constexpr uint32_t kMostFiles = 1 << 16;

/// Where in V8's name the place of the source begins, behind a space: at what looks like a path, else at the last one.
size_t place_in(std::string_view text) {
    for (const std::string_view begin : {" /", " file:", " node:", " http", " wasm:"})
        if (const size_t at = text.find(begin); at != std::string_view::npos) return at + 1;
    const size_t last = text.rfind(' ');
    return last == std::string_view::npos ? last : last + 1;
}

/// Takes ":NUMBER" off the end.
bool take_number(std::string_view &text, uint32_t &number) {
    const size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || colon + 1 == text.size()) return false;
    TextCursor digits(text.substr(colon + 1));
    uint64_t value = 0;
    if (!digits.decimal(value) || !digits.rest().empty() || value > UINT32_MAX) return false;
    number = static_cast<uint32_t>(value);
    text = text.substr(0, colon);
    return true;
}

bool is_v8(std::string_view text) {
    for (const std::string_view kind : {"JS:", "LazyCompile:", "Function:", "Script:", "Eval:"})
        if (text.starts_with(kind)) return true;
    return false;
}

} // namespace

CompiledName read_compiled_name(std::string_view text) {
    constexpr std::string_view kPython = "py::";
    CompiledName out;
    out.name.symbol = within_bound(demangle(text));
    if (text.starts_with(kPython)) {
        const size_t colon = text.find(':', kPython.size());
        if (colon != std::string_view::npos) out.file = within_bound(text.substr(colon + 1));
    } else if (const size_t at = is_v8(text) ? place_in(text) : std::string_view::npos; at != std::string_view::npos) {
        std::string_view place = text.substr(at);
        uint32_t first = 0, second = 0;
        if (!take_number(place, second)) return out;
        out.line = take_number(place, first) ? first : second; // "path:line:column", "path:line"
        out.file = within_bound(place);
    }
    return out;
}

std::string_view CompiledCode::text(uint32_t at) const {
    std::string_view rest = std::string_view(names_).substr(at);
    return take_line(rest);
}

uint32_t CompiledCode::name_file(std::string_view path) {
    path = path.substr(0, std::min(path.find('\n'), kLongestName));
    if (path.empty()) return kNoFile;
    if (last_file_ != 0 && text(files_[last_file_]) == path) return last_file_; // as nearly always: a function's are one file's
    for (uint32_t i = 1; i < files_.size() && i < 64; ++i)
        if (text(files_[i]) == path) return last_file_ = i;
    if (files_.size() >= kMostFiles || names_.size() + path.size() >= UINT32_MAX) return kNoFile;
    files_.push_back(static_cast<uint32_t>(names_.size()));
    names_.append(path).push_back('\n');
    return last_file_ = static_cast<uint32_t>(files_.size() - 1);
}

void CompiledCode::add(uint64_t start, uint64_t size, std::string_view name, uint64_t since_ns, std::vector<Line> &&lines) {
    const std::string kept = within_bound(name.substr(0, name.find('\n')));
    if (kept.empty() || size == 0 || size > kLongestFunction || start + size < start) return;
    if (names_.size() + kept.size() >= UINT32_MAX || functions_.size() >= UINT32_MAX) return;
    if (lines_.size() + lines.size() >= UINT32_MAX) lines.clear();
    functions_.push_back({start, since_ns, static_cast<uint32_t>(size), static_cast<uint32_t>(names_.size()),
                          static_cast<uint32_t>(lines_.size()), static_cast<uint32_t>(lines.size())});
    names_.append(kept).push_back('\n');
    lines_.insert(lines_.end(), lines.begin(), lines.end());
}

void CompiledCode::settle() {
    if (settled_ == functions_.size()) return;
    const auto before = [this](uint32_t a, uint32_t b) {
        return functions_[a].start != functions_[b].start ? functions_[a].start < functions_[b].start : a < b;
    };
    std::vector<uint32_t> fresh;
    for (; settled_ < functions_.size(); ++settled_) fresh.push_back(static_cast<uint32_t>(settled_));
    stable_sort(fresh, before);
    std::vector<uint32_t> all;
    all.reserve(by_start_.size() + fresh.size());
    std::merge(by_start_.begin(), by_start_.end(), fresh.begin(), fresh.end(), std::back_inserter(all), before);
    by_start_ = std::move(all);
}

/// Calls `each(number)` for functions over an address, in no order.
template <class Each> void CompiledCode::covering(uint64_t address, Each &&each) const {
    auto at = std::upper_bound(by_start_.begin(), by_start_.end(), address,
                               [this](uint64_t wanted, uint32_t number) { return wanted < functions_[number].start; });
    for (int looked = 0; at != by_start_.begin() && looked < kMostOverlaps; ++looked) {
        const uint32_t number = *--at;
        if (address - functions_[number].start < functions_[number].size) each(number);
    }
}

bool CompiledCode::knows(uint64_t address) const {
    bool any = false;
    covering(address, [&](uint32_t) { any = true; });
    return any;
}

uint64_t CompiledCode::layer_at(uint64_t address, uint64_t at_ns) const {
    std::optional<uint32_t> first, last;
    covering(address, [&](uint32_t number) {
        if (!first || number < *first) first = number;
        if (functions_[number].since_ns <= at_ns && (!last || number > *last)) last = number;
    });
    return !last || last == first ? 0 : uint64_t{*last} + 1;
}

std::optional<CompiledName> CompiledCode::find(uint64_t address, uint64_t layer) const {
    std::optional<uint32_t> wanted;
    if (layer != 0 && layer <= functions_.size()) {
        const Function &function = functions_[layer - 1];
        if (address - function.start < function.size) wanted = static_cast<uint32_t>(layer - 1);
    }
    if (!wanted)
        covering(address, [&](uint32_t number) {
            if (!wanted || number < *wanted) wanted = number;
        });
    if (!wanted) return std::nullopt;
    const Function &function = functions_[*wanted];
    CompiledName out = read_compiled_name(text(function.name));
    out.name.offset = address - function.start;
    const auto begin = lines_.begin() + function.lines, end = begin + function.more;
    auto line = std::upper_bound(begin, end, out.name.offset, [](uint64_t offset, const Line &l) { return offset < l.offset; });
    if (line != begin) {
        --line;
        out.line = line->line;
        if (line->file != kNoFile) out.file = text(files_[line->file]);
    }
    return out;
}

std::optional<std::string_view> CompiledCode::raw_name_at(uint64_t start) const {
    std::optional<uint32_t> last;
    covering(start, [&](uint32_t number) {
        if (functions_[number].start == start && (!last || number > *last)) last = number;
    });
    return last ? std::optional(text(functions_[*last].name)) : std::nullopt;
}

size_t CompiledCode::memory() const {
    return functions_.capacity() * sizeof(Function) + by_start_.capacity() * sizeof(uint32_t) + lines_.capacity() * sizeof(Line) +
           names_.capacity() + files_.capacity() * sizeof(uint32_t);
}

} // namespace rawbpf::inline v0::symbols
