// For the tests of runtime/link: links.bpf.c, loaded one program at a time.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <unistd.h>

#include "runtime/base/fail.h"
#include "runtime/kernel/loader.h"
#include "runtime/link/attach.h"
#include "runtime/object/elf_object.h"
#include "runtime/sys/uapi.h"
#include "tests/support/test.h"

namespace rawbpf::inline v0 {
extern const std::span<const std::byte> links_object, ops_object, replace_object;
}

namespace rawbpf::test {

/// The object with one of its programs loaded, and what the program has counted.
struct Loaded {
    ObjectSpec spec;
    LoadedObject object;

    const Program &program() const { return object.programs.at(0); }
    Result<Link> attach(const AttachOptions &options = {}) {
        return attach_program(spec, object, object.programs.at(0), options);
    }

    struct Run {
        uint64_t count, cookie;
    };
    Run run(size_t slot) {
        struct Runs {
            Run run[64];
        };
        for (const Map &map : object.maps)
            if (map.value_size() == sizeof(Runs)) return map.get<uint32_t, Runs>(0).value().run[slot];
        return {};
    }
};

/// Loads program `name` of links.bpf.c so that it counts only what this process does.
inline Result<Loaded> load_one(const std::string &name) {
    Loaded out;
    out.spec = TRY(parse_object(links_object, "links.bpf.o"));
    std::span<std::byte> pid = out.spec.find_global("wanted_pid");
    const uint32_t own = static_cast<uint32_t>(getpid());
    if (pid.size() != sizeof own) return fail(Errc::internal, "links.bpf.o: no wanted_pid");
    std::memcpy(pid.data(), &own, sizeof own);
    LoadOptions options;
    options.programs = {name};
    out.object = TRY(load(out.spec, options));
    return out;
}

} // namespace rawbpf::test
