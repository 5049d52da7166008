// What a product links of the core. Private to this folder.
#pragma once

#include <cstddef>

#include "asm/section_names.h"
#include "runtime/core/rawbpf/core.h"
#include "runtime/link/attaching.h"

/// Ways to attach: rows of which function is for which kind of section.
struct rawbpf_part {
    struct Way {
        rawbpf::Attachment kind;
        rawbpf::Result<rawbpf::Link> (*attach)(const rawbpf::Attaching &);
    };
    const Way *ways;
    size_t count;
};
