// Probes made at run time, for C: types are given as text, arguments are variable, the provider keeps errors as sentences.
//
// A variadic call in C doesn't pass types, but the probe has them: they say what to read from the arguments after C's
// promotions: small integers are ints, floats are doubles.
#include "runtime/provider/usdt_provider.h"

#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <deque>
#include <string_view>

#include "runtime/base/format.h"
#include "runtime/provider/provider.h"

using namespace rawbpf;

struct rawbpf_usdt_probe {
    usdt::AnyProbe probe;
    std::vector<usdt::ArgumentKind> arguments;
};
struct rawbpf_usdt_provider {
    usdt::Provider provider;
    std::deque<rawbpf_usdt_probe> probes; ///< they stay where they are
    std::string error;
};

namespace {

struct Type {
    std::string_view word;
    usdt::ArgumentKind kind;
};
constexpr Type kTypes[] = {
    {"s8", {1, true, false}},  {"u8", {1, false, false}},  {"s16", {2, true, false}},  {"u16", {2, false, false}},
    {"s32", {4, true, false}}, {"u32", {4, false, false}}, {"s64", {8, true, false}},  {"u64", {8, false, false}},
    {"f32", {4, false, true}}, {"f64", {8, false, true}},  {"ptr", {8, false, false}},
};

const Type *find_type(std::string_view word) {
    for (const Type &one : kTypes)
        if (one.word == word) return &one;
    return nullptr;
}

Result<std::vector<usdt::ArgumentKind>> parse_types(std::string_view text) {
    std::vector<usdt::ArgumentKind> out;
    while (true) {
        text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
        if (text.empty()) return out;
        const std::string_view word = text.substr(0, text.find(' '));
        text.remove_prefix(word.size());
        const Type *type = find_type(word);
        if (!type)
            return Unexpected(make_error(Errc::invalid_argument, format("\"{}\" is no type of an argument", word),
                                         "s8 u8 s16 u16 s32 u32 s64 u64 f32 f64 ptr"));
        if (out.size() == usdt::kMostArguments)
            return Unexpected(
                make_error(Errc::invalid_argument, format("a USDT probe has {} arguments at most", usdt::kMostArguments)));
        out.push_back(type->kind);
    }
}

std::string sentence(const Error &error) {
    return error.hint.empty() ? error.message() : format("{} ({})", error.message(), error.hint);
}

} // namespace

rawbpf_usdt_provider *rawbpf_usdt_provider_new(const char *name) {
    return new rawbpf_usdt_provider{usdt::Provider(name ? name : ""), {}, {}};
}
void rawbpf_usdt_provider_free(rawbpf_usdt_provider *provider) { delete provider; }

rawbpf_usdt_probe *rawbpf_usdt_add(rawbpf_usdt_provider *provider, const char *name, const char *types) {
    provider->error.clear();
    Result<std::vector<usdt::ArgumentKind>> kinds = parse_types(types ? types : "");
    if (!kinds) {
        provider->error = sentence(kinds.error());
        return nullptr;
    }
    const usdt::AnyProbe probe = provider->provider.add(usdt::NewProbe{name ? name : "", *kinds});
    return &provider->probes.emplace_back(rawbpf_usdt_probe{probe, std::move(*kinds)});
}

int rawbpf_usdt_load(rawbpf_usdt_provider *provider) {
    provider->error.clear();
    if (Result<void> done = provider->provider.load(); !done) {
        provider->error = sentence(done.error());
        return -1;
    }
    return 0;
}
void rawbpf_usdt_unload(rawbpf_usdt_provider *provider) { provider->provider.unload(); }
const char *rawbpf_usdt_error(const rawbpf_usdt_provider *provider) { return provider->error.c_str(); }

int rawbpf_usdt_enabled(const rawbpf_usdt_probe *probe) { return probe->probe.enabled(); }

void rawbpf_usdt_fire(const rawbpf_usdt_probe *probe, ...) {
    if (!probe->probe.enabled()) return;
    uint64_t values[usdt::kMostArguments] = {};
    std::va_list arguments;
    va_start(arguments, probe);
    for (size_t i = 0; i < probe->arguments.size(); ++i) {
        const usdt::ArgumentKind &kind = probe->arguments[i];
        if (kind.is_float) {
            const double wide = va_arg(arguments, double);
            const auto narrow = static_cast<float>(wide);
            std::memcpy(&values[i], kind.size == 4 ? static_cast<const void *>(&narrow) : &wide, kind.size);
        } else {
            values[i] = kind.size == 8 ? va_arg(arguments, uint64_t) : static_cast<uint64_t>(va_arg(arguments, int));
        }
    }
    va_end(arguments);
    probe->probe({values, probe->arguments.size()});
}
