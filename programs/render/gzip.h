// A gzip file (RFC 1952), written as it grows; by zlib.
#pragma once

#include <memory>
#include <string_view>

#include "programs/render/writer.h"

namespace rawbpf::inline v0::render {

/// Whether this build (-Dzlib) and this system compress. Where they don't, Gzip passes everything on as it is.
[[nodiscard]] bool compresses();

/// Compresses into `out`, which must outlive it. The same text always gives the same bytes: no name and no time in the header.
class Gzip {
  public:
    explicit Gzip(Writer &out);
    ~Gzip();
    Gzip(const Gzip &) = delete;
    Gzip &operator=(const Gzip &) = delete;

    void write(std::string_view part);
    /// No more will come.
    void finish();

  private:
    struct State;
    Writer &out_;
    std::unique_ptr<State> state_;
};

} // namespace rawbpf::inline v0::render
