// SPDX-License-Identifier: MIT
// Everything that a program which embeds rawbpf needs: build (or read) BPF programs, load them, attach them, read what they say.
//
//      asm/builder.h                programs in C++                  -> Unit
//      runtime/object/unit_object.h a Unit                          -> ObjectSpec
//      runtime/object/elf_object.h  what clang made of a .bpf.c      -> ObjectSpec
//      runtime/kernel/loader.h      an ObjectSpec                   -> LoadedObject
//      runtime/link/...             its programs, attached
//      runtime/events/...           what they sent
//      runtime/symbols/...          addresses as names
//      runtime/provider/provider.h  USDT probes of your own
//
// Installed as <rawbpf/rawbpf.h>; `pkg-config --cflags --libs rawbpf` has the rest.
#pragma once

#include "asm/builder.h"
#include "asm/print.h"
#include "runtime/base/error.h"
#include "runtime/base/result.h"
#include "runtime/events/perf_ring.h"
#include "runtime/events/ring_buffer.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/map.h"
#include "runtime/kernel/probes.h"
#include "runtime/kernel/tail_call.h"
#include "runtime/link/attach.h"
#include "runtime/link/iterator.h"
#include "runtime/link/perf_event.h"
#include "runtime/link/skeleton.h"
#include "runtime/object/elf_object.h"
#include "runtime/object/unit_object.h"
#include "runtime/provider/provider.h"
#include "runtime/symbols/symbols.h"
