// SPDX-License-Identifier: MIT
// Custom traces for programs that embed rawbpf: a BPF program of theirs stores a number and jumps, the stack comes out with it.
//
//      auto tracer = RAWBPF_TRY(custom::CustomTracer::open({}));
//      RAWBPF_TRY(tracer->load_external(spec));       // or add_function("./server:handle"), or fds and pins for another loader
//      RAWBPF_TRY(tracer->attach());
//      tracer->poll([](const custom::CustomTrace &trace) { trace.head.context, trace.user ... });
//
// Installed as <rawbpf/custom.h>; `pkg-config --cflags --libs rawbpf-custom` has the rest.
#pragma once

#include "programs/custom/record.h"
#include "programs/custom/tracer.h"
