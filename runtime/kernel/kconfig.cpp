// A program with `extern int CONFIG_HZ __kconfig;` gets the value as a constant, and the verifier removes the branches that
// this kernel doesn't take.
//
//      CONFIG_BPF_SYSCALL=y                bool, enum libbpf_tristate or char
//      CONFIG_HZ=250                       any integer that can hold it
//      CONFIG_DEFAULT_HOSTNAME="(none)"    char array; a longer text is cut
//      # CONFIG_PREEMPT is not set         as if it weren't there: zero for weak variables, an error for others
//
// runtime/object made the map's layout (offsets in ExternSpec); this file fills in the values. Names that start with LINUX_
// are in no configuration: libbpf invented them, and objects rely on them. An unknown one is zero if it is weak.
#include "runtime/kernel/kconfig.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "runtime/base/fail.h"
#include "runtime/base/inflate.h"
#include "runtime/base/numbers.h"
#include "runtime/kernel/kernel_symbols.h"
#include "runtime/kernel/probes.h"
#include "runtime/sys/file.h"
#include "runtime/sys/privileges.h"

namespace rawbpf::inline v0 {
namespace {

enum class Holds : uint8_t { boolean, tristate, character, integer, text, other };

struct Variable {
    const ExternSpec *spec;
    Holds holds = Holds::other;
    bool is_signed = false, set = false;
};

Result<Variable> variable_of(const btf::Btf &types, const ExternSpec &external) {
    Variable out{&external};
    btf::Type type = TRY(types.resolve(external.type));
    if (type.kind == btf::Kind::array) {
        type = TRY(types.resolve(types.array(type).element));
        if (type.kind == btf::Kind::int_ && type.size_or_type == 1) out.holds = Holds::text;
        return out;
    }
    if ((type.kind == btf::Kind::enum_ || type.kind == btf::Kind::enum64) && type.name == "libbpf_tristate")
        out.holds = Holds::tristate;
    if (type.kind != btf::Kind::int_) return out;
    const btf::IntEncoding encoding = types.int_encoding(type);
    out.is_signed = encoding.is_signed;
    // clang says signed for `char` and nothing for `unsigned char`; both take a letter or a number.
    out.holds = encoding.is_bool ? Holds::boolean : type.size_or_type == 1 ? Holds::character : Holds::integer;
    return out;
}

class Filler {
  public:
    Filler(const ObjectSpec &spec, std::vector<std::byte> &values) : spec_(spec), values_(values) {}

    Result<void> collect() {
        const auto first = std::find_if(spec_.externs.begin(), spec_.externs.end(),
                                        [](const ExternSpec &external) { return external.section == ".kconfig"; });
        if (first == spec_.externs.end()) return {};
        const btf::Btf types = TRY_IN(btf::Btf::parse(spec_.btf, ".BTF"), "extern {}", first->name);
        for (const ExternSpec &external : spec_.externs) {
            if (external.section != ".kconfig") continue;
            if (external.offset > values_.size() || external.size > values_.size() - external.offset)
                return fail(Errc::bad_input, "extern {}: outside of the .kconfig map", external.name);
            variables_.push_back(TRY_IN(variable_of(types, external), "extern {}", external.name));
        }
        return {};
    }

    Result<void> configuration(std::string_view text) {
        while (!text.empty()) {
            const size_t end = std::min(text.find('\n'), text.size());
            const std::string_view line = text.substr(0, end);
            text.remove_prefix(std::min(end + 1, text.size()));
            const size_t equals = line.find('=');
            if (!line.starts_with("CONFIG_") || equals == std::string_view::npos || equals + 1 == line.size()) continue;
            for (Variable &variable : variables_)
                if (!variable.set && variable.spec->name == line.substr(0, equals))
                    TRY_IN(set(variable, line.substr(equals + 1)), "extern {}: the kernel's configuration says {}",
                           variable.spec->name, line);
        }
        return {};
    }

    Result<void> virtual_names(const VirtualConfig &facts) {
        for (Variable &variable : variables_) {
            const std::string_view name = variable.spec->name;
            if (name.starts_with("CONFIG_")) continue;
            std::optional<uint64_t> value;
            if (name == "LINUX_KERNEL_VERSION") value = facts.version;
            if (name == "LINUX_HAS_BPF_COOKIE") value = facts.cookie;
            if (name == "LINUX_HAS_SYSCALL_WRAPPER") value = facts.syscall_wrapper;
            if (name == "LINUX_KERNEL_VERSION" && facts.version == 0)
                return fail(Errc::not_found, "extern {}: rawbpf couldn't find out this kernel's version", name);
            if (value) TRY_IN(set_number(variable, *value), "extern {}", name);
            if (!value && !(variable.spec->weak && name.starts_with("LINUX_")))
                return fail(Errc::not_found,
                            "extern {}: no such value (known are CONFIG_*, LINUX_KERNEL_VERSION, "
                            "LINUX_HAS_BPF_COOKIE and LINUX_HAS_SYSCALL_WRAPPER)",
                            name);
        }
        return {};
    }

    Result<void> complete() const {
        for (const Variable &variable : variables_)
            if (!variable.set && !variable.spec->weak)
                return fail(Errc::not_found, "extern {}: not set in this kernel's configuration, and not declared weak",
                            variable.spec->name);
        return {};
    }

  private:
    std::byte *at(const Variable &variable) { return values_.data() + variable.spec->offset; }

    Result<void> set(Variable &variable, std::string_view value) {
        if (value == "y" || value == "m" || value == "n") return set_letter(variable, value[0]);
        if (value.starts_with('"')) return set_text(variable, value);
        uint64_t number = 0;
        const bool negative = value.starts_with('-');
        std::string_view digits = value.substr(negative ? 1 : 0);
        const bool hex = digits.starts_with("0x") || digits.starts_with("0X");
        if (hex) digits.remove_prefix(2);
        const int base = hex ? 16 : digits.size() > 1 && digits[0] == '0' ? 8 : 10;
        if (!parse_whole(digits, number, base)) return fail(Errc::bad_input, "that isn't a number");
        if (variable.holds != Holds::integer && variable.holds != Holds::character)
            return fail(Errc::bad_input, "the variable must be an integer");
        return set_number(variable, negative ? 0 - number : number);
    }

    Result<void> set_letter(Variable &variable, char letter) {
        constexpr uint32_t kNo = 0, kYes = 1, kModule = 2; // enum libbpf_tristate
        if (variable.holds == Holds::tristate) {
            const uint32_t value = letter == 'y' ? kYes : letter == 'm' ? kModule : kNo;
            std::memcpy(at(variable), &value, std::min<size_t>(sizeof value, variable.spec->size));
        } else if (variable.holds == Holds::boolean) {
            if (letter == 'm') return fail(Errc::bad_input, "the variable must be a tristate or a char");
            *at(variable) = std::byte{letter == 'y'};
        } else if (variable.holds == Holds::character) {
            *at(variable) = static_cast<std::byte>(letter);
        } else {
            return fail(Errc::bad_input, "the variable must be a bool, a tristate or a char");
        }
        variable.set = true;
        return {};
    }

    Result<void> set_text(Variable &variable, std::string_view value) {
        if (variable.holds != Holds::text) return fail(Errc::bad_input, "the variable must be an array of char");
        if (value.size() < 2 || !value.ends_with('"')) return fail(Errc::bad_input, "the text has no closing quotation mark");
        value = value.substr(1, value.size() - 2).substr(0, variable.spec->size - 1);
        std::copy_n(bytes_of(value).begin(), value.size(), at(variable));
        variable.set = true;
        return {};
    }

    Result<void> set_number(Variable &variable, uint64_t value) {
        const uint32_t size = variable.spec->size;
        if (variable.holds != Holds::integer && variable.holds != Holds::character && variable.holds != Holds::boolean)
            return fail(Errc::bad_input, "{} is a number, and the variable doesn't hold numbers", value);
        if (variable.holds == Holds::boolean && value > 1) return fail(Errc::bad_input, "{} isn't a bool", value);
        if (size < 8) {
            const uint32_t bits = size * 8;
            const bool fits = variable.is_signed ? value + (1ull << (bits - 1)) < 1ull << bits : value >> bits == 0;
            if (!fits) return fail(Errc::bad_input, "{} doesn't fit in {} bytes", static_cast<int64_t>(value), size);
        }
        std::memcpy(at(variable), &value, std::min<size_t>(size, sizeof value)); // little-endian, as the object
        variable.set = true;
        return {};
    }

    const ObjectSpec &spec_;
    std::vector<std::byte> &values_;
    std::vector<Variable> variables_;
};

/// "6.12.48-1" as numbers; 0 unless there are at least two.
uint32_t version_numbers(std::string_view text) {
    uint32_t parts[3] = {};
    size_t found = 0;
    const char *at = text.data(), *const end = at + text.size();
    while (found < 3) {
        const auto [next, error] = std::from_chars(at, end, parts[found]);
        if (error != std::errc()) break;
        ++found;
        if (next == end || *next != '.') break;
        at = next + 1;
    }
    return found < 2 ? 0 : parts[0] << 16 | parts[1] << 8 | std::min(parts[2], 255u); // KERNEL_VERSION() stops at 255
}

} // namespace

bool needs_config(const ObjectSpec &spec) {
    return std::any_of(spec.externs.begin(), spec.externs.end(), [](const ExternSpec &external) {
        return external.section == ".kconfig" && external.name.starts_with("CONFIG_");
    });
}

Result<std::vector<std::byte>> kconfig_values(const ObjectSpec &spec, std::string_view config, const VirtualConfig &facts) {
    size_t size = 0;
    for (const MapSpec &map : spec.maps)
        if (map.data_section == ".kconfig") size = map.value_size;
    std::vector<std::byte> values(size);
    Filler filler(spec, values);
    TRY(filler.collect());
    TRY(filler.virtual_names(facts));
    TRY(filler.configuration(config));
    TRY(filler.complete());
    return values;
}

uint32_t kernel_version_code(std::string_view release, std::string_view version) {
    // Debian's release may lack the patch level; its version always has it.
    if (const size_t debian = version.find("Debian "); debian != std::string_view::npos)
        if (const uint32_t code = version_numbers(version.substr(debian + 7))) return code;
    return version_numbers(release);
}

Result<std::string> kernel_config() {
    const sys::SystemName name = TRY(sys::system_name());
    if (Result<std::string> text = sys::read_file(format("/boot/config-{}", name.release))) return text;
    constexpr const char *kPath = "/proc/config.gz";
    Result<std::string> packed = sys::read_file(kPath);
    if (!packed && packed.error().os != ENOENT) return packed;
    if (!packed)
        return Unexpected(make_error(Errc::not_found,
                                     format("the kernel's configuration: neither /boot/config-{} nor {}", name.release, kPath),
                                     "CONFIG_IKCONFIG_PROC makes the second one"));
    return gunzip(bytes_of(*packed), kPath);
}

Result<VirtualConfig> virtual_config(const ObjectSpec &spec) {
    VirtualConfig out;
    for (const ExternSpec &external : spec.externs) {
        if (external.name == "LINUX_KERNEL_VERSION") {
            const sys::SystemName name = TRY(sys::system_name());
            out.version = kernel_version_code(name.release, name.version);
            // Ubuntu's release stays at .0; this file says what it is made from: "Ubuntu 6.8.0-45.45-generic 6.8.12".
            if (Result<std::string> signature = sys::read_file("/proc/version_signature"))
                if (const uint32_t code = version_numbers(std::string_view(*signature).substr(signature->rfind(' ') + 1)))
                    out.version = code;
        } else if (external.name == "LINUX_HAS_BPF_COOKIE") {
            out.cookie = has_feature(Feature::cookie);
        } else if (external.name == "LINUX_HAS_SYSCALL_WRAPPER") {
            out.syscall_wrapper = has_syscall_wrapper();
        }
    }
    return out;
}

Result<std::vector<std::byte>> running_kconfig_values(const ObjectSpec &spec) {
    std::string config;
    if (needs_config(spec)) config = TRY(kernel_config());
    return kconfig_values(spec, config, TRY(virtual_config(spec)));
}

} // namespace rawbpf::inline v0
