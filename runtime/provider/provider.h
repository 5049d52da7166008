// SPDX-License-Identifier: MIT
// USDT probes that a program makes at run time: their names may come from a script, a plugin, a configuration.
//
//     usdt::Provider shop("shop");
//     usdt::Probe<int, const char *, double> order = shop.add<int, const char *, double>("order");
//     RAWBPF_TRY(shop.load());
//     order(id, customer.c_str(), amount);       // nothing happens until somebody looks
//
// In C: <rawbpf/usdt_provider.h>. Where names are known when the program is compiled, <rawbpf/usdt.h> is the better way: one nop,
// nothing to link.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/usdt/image.h"

namespace rawbpf::inline v0::usdt {

namespace detail {
/// Where a probe is, once its provider is loaded.
struct Slot {
    const void *code = nullptr;                   ///< the function with the probe; nullptr before load()
    const volatile uint16_t *semaphore = nullptr; ///< never nullptr: before load() a zero of our own
};

/// What readers are told of an argument of type T: its size and sign, and whether it is a float.
template <class T> constexpr ArgumentKind kind_of() {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T> || std::is_pointer_v<T> || std::is_same_v<T, float> ||
                      std::is_same_v<T, double>,
                  "an argument of a USDT probe is a number, an enumerator or a pointer");
    static_assert(sizeof(T) <= 8, "an argument of a USDT probe has 8 bytes at most");
    ArgumentKind out;
    out.size = sizeof(T);
    out.is_float = std::is_floating_point_v<T>;
    if constexpr (std::is_enum_v<T>)
        out.is_signed = std::is_signed_v<std::underlying_type_t<T>>;
    else
        out.is_signed = std::is_signed_v<T> && !out.is_float;
    return out;
}

/// As it is passed: a register's worth.
template <class T> uint64_t in_register(T value) {
    if constexpr (std::is_pointer_v<T>) {
        return reinterpret_cast<uintptr_t>(value);
    } else if constexpr (std::is_floating_point_v<T>) {
        uint64_t out = 0;
        std::memcpy(&out, &value, sizeof value);
        return out;
    } else {
        return static_cast<uint64_t>(value);
    }
}
} // namespace detail

/// One probe. Copies are the same probe. Any thread may fire it while its Provider lives and isn't being loaded or unloaded.
template <class... Args> class Probe {
  public:
    /// For Provider::add(), which makes it.
    explicit Probe(const detail::Slot *slot) : slot_(slot) {}

    /// Whether somebody looks just now: two loads.
    [[nodiscard]] bool enabled() const { return *slot_->semaphore != 0; }
    /// Fires it, if somebody looks.
    void operator()(Args... args) const {
        if (enabled()) fire(args...);
    }
    /// Calls it whether somebody looks or not: for tracers that set a breakpoint without raising the semaphore. Before load() it
    /// does nothing, and so it does on a machine where load() fails.
    void fire(Args... args) const {
        if (!slot_->code) return;
        reinterpret_cast<void (*)(decltype(detail::in_register(args))...)>(const_cast<void *>(slot_->code))(
            detail::in_register(args)...);
    }

  private:
    const detail::Slot *slot_;
};

/// One whose arguments' types are known only at run time. Copies are the same probe.
class AnyProbe {
  public:
    /// For Provider::add(), which makes it.
    explicit AnyProbe(const detail::Slot *slot) : slot_(slot) {}

    /// Whether somebody looks just now: two loads.
    [[nodiscard]] bool enabled() const { return *slot_->semaphore != 0; }
    /// Fires it, if somebody looks. A value for each argument, floats as their bits; those that are missing are 0, more than 12
    /// aren't looked at.
    void operator()(std::span<const uint64_t> values) const;

  private:
    const detail::Slot *slot_;
};

/// Probes that are loaded together.
class Provider {
  public:
    /// Letters, digits and _; no digit first. Checked by load().
    explicit Provider(std::string name);
    /// Its probes stay the same ones. The one moved from may only be destroyed or assigned to.
    ///@{
    Provider(Provider &&) noexcept;
    Provider &operator=(Provider &&) noexcept;
    ///@}
    ~Provider();

    /// A probe with arguments of these types, strings as const char *. Before load() it can be fired without effect. One that is
    /// added to a loaded provider is there after the next load().
    template <class... Args> [[nodiscard]] Probe<Args...> add(std::string name) {
        static_assert(sizeof...(Args) <= kMostArguments, "a USDT probe has 12 arguments at most");
        return Probe<Args...>(add_probe({std::move(name), {detail::kind_of<Args>()...}}));
    }

    /// The same for types that are known only now.
    [[nodiscard]] AnyProbe add(NewProbe probe) { return AnyProbe(add_probe(std::move(probe))); }

    /// Writes the probes into a file in memory and maps it, from when on tracers see them: `rawbpf usdt list -p PID`. Done again,
    /// what was added since is there too, and tracers of the probes before have lost them. Errors: make_image()'s; what
    /// memfd_create(2) (3.17) and mmap(2) say. After an error everything is as before.
    [[nodiscard]] Result<void> load();
    /// Takes the probes out of the process; tracers lose them. The destructor does.
    void unload();
    /// Whether the process has the probes: after load(), until unload().
    [[nodiscard]] bool loaded() const;
    /// As given to the constructor.
    [[nodiscard]] const std::string &name() const;
    /// Path by which other processes reach the file, for tracers that want one: /proc/PID/fd/N. Empty when it isn't loaded.
    [[nodiscard]] std::string path() const;

  private:
    const detail::Slot *add_probe(NewProbe probe);

    struct State;
    std::unique_ptr<State> state_;
};

} // namespace rawbpf::inline v0::usdt
