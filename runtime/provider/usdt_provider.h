// SPDX-License-Identifier: MIT
// USDT probes that a program makes at run time, for C; C++ has runtime/provider/provider.h.
//
//     rawbpf_usdt_provider *shop = rawbpf_usdt_provider_new("shop");
//     rawbpf_usdt_probe *order = rawbpf_usdt_add(shop, "order", "s32 ptr f64");
//     if (rawbpf_usdt_load(shop) != 0) fprintf(stderr, "%s\n", rawbpf_usdt_error(shop));
//     rawbpf_usdt_fire(order, id, customer, amount);       // nothing happens until somebody looks
//     rawbpf_usdt_provider_free(shop);
//
// Where names are known when the program is compiled, <rawbpf/usdt.h> is the better way: one nop, nothing to link.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rawbpf_usdt_provider rawbpf_usdt_provider; ///< probes that are loaded together
typedef struct rawbpf_usdt_probe rawbpf_usdt_probe;       ///< lives as long as its provider

/// A provider without probes, by its name: letters, digits and _, no digit first, which is checked by rawbpf_usdt_load().
rawbpf_usdt_provider *rawbpf_usdt_provider_new(const char *name);
/// Takes its probes out of the process, and frees it and them. NULL is nothing.
void rawbpf_usdt_provider_free(rawbpf_usdt_provider *provider);

/// A probe with arguments of these types, 12 at most, separated by blanks: s8 u8 s16 u16 s32 u32 s64 u64, f32 f64, ptr (of a
/// text, too). NULL for others; rawbpf_usdt_error() says which. One that is added to a loaded provider is there after the next
/// load.
rawbpf_usdt_probe *rawbpf_usdt_add(rawbpf_usdt_provider *provider, const char *name, const char *types);

/// Writes the probes into a file in memory and maps it, from when on tracers see them. 0, or -1: rawbpf_usdt_error() says why,
/// and everything is as before. memfd_create(2): Linux 3.17.
int rawbpf_usdt_load(rawbpf_usdt_provider *provider);
/// Takes the probes out of the process; tracers lose them.
void rawbpf_usdt_unload(rawbpf_usdt_provider *provider);
/// What went wrong last, a sentence; "" if nothing. Valid until the next call with this provider.
const char *rawbpf_usdt_error(const rawbpf_usdt_provider *provider);

/// Whether somebody looks just now.
int rawbpf_usdt_enabled(const rawbpf_usdt_probe *probe);
/// Fires it, if somebody looks. As many arguments as it has types, of these types, or of what C makes of them in a call: s64 and
/// u64 need 64 bits (a plain number is an int: say 1L). From any thread, while the provider isn't being loaded, unloaded or
/// freed.
void rawbpf_usdt_fire(const rawbpf_usdt_probe *probe, ...);

#ifdef __cplusplus
}
#endif
