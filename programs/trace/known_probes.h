// What the arguments of well-known USDT probes mean: a probe's note has only their sizes.
//
//      # provider:name(arguments)        as in C; NAME_len behind a const char *NAME is its length, for texts without a zero
//      python:function__entry(const char *file, const char *function, int line)
//      net_http:server_request_start(const char *method, long method_len, const char *path, long path_len)
//
// Users' own tables are files of such lines. PURE.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "programs/trace/signature.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::trace {

class KnownProbes {
  public:
    /// Those that are built in: postgresql, python, ruby, php, libstdc++, hotspot, libvirt, the Go fork's.
    [[nodiscard]] static const KnownProbes &built_in();
    /// Adds the lines of a table; what it has replaces what was there. `name` is the file's, for messages. Errors:
    /// invalid_argument with the line.
    [[nodiscard]] Result<void> add(std::string_view table, std::string_view name);
    [[nodiscard]] const Signature *find(std::string_view provider, std::string_view probe) const;
    [[nodiscard]] size_t size() const { return by_name_.size(); }

  private:
    std::map<std::string, Signature, std::less<>> by_name_; ///< "provider:name"
};

} // namespace rawbpf::inline v0::trace
