// What a product links of the core. Private to this folder.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "asm/section_names.h"
#include "runtime/core/rawbpf/core.h"
#include "runtime/kernel/load_parts.h"
#include "runtime/link/attaching.h"
#include "runtime/object/image.h"

/// Ways to attach: rows of which function is for which kind of section. Or something that only some objects need when they are
/// loaded.
struct rawbpf_part {
    struct Way {
        rawbpf::Attachment kind;
        rawbpf::Result<rawbpf::Link> (*attach)(const rawbpf::Attaching &);
    };
    const Way *ways = nullptr;
    size_t count = 0;
    rawbpf::Result<std::unique_ptr<rawbpf::KernelSymbols>> (*kernel_types)(const rawbpf::ObjectSpec &,
                                                                           const std::string &) = nullptr;
    rawbpf::Result<void> (*read_struct_ops)(rawbpf::object::Image &, rawbpf::ObjectSpec &) = nullptr;
    rawbpf::Result<void> (*struct_ops)(rawbpf::Loading &, std::vector<size_t> &) = nullptr;
    rawbpf::Result<std::vector<std::byte>> (*kernel_config)(const rawbpf::ObjectSpec &) = nullptr;
};
