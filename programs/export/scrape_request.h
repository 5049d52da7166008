// What a scraper asked for, and whether it is answered. PURE.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace rawbpf::inline v0::telemetry {

inline constexpr size_t kMostRequest = 16 << 10; ///< bytes of a request's line and headers; Prometheus sends 300

/// Which names and addresses a request may give for this machine.
struct OwnNames {
    std::string listen;      ///< the host of --prometheus, as it was given
    std::string address;     ///< where it listens
    std::string hostname;    ///< this machine's; empty: not known
    bool everywhere = false; ///< it listens at every address
};

/// Whether the header Host says this endpoint: the name that it was opened with, the address of that, this machine's own name,
/// localhost or a loopback address; any address when it listens at every one. Any other name is somebody else's: a web page of
/// theirs may have had it resolved to us (DNS rebinding).
[[nodiscard]] bool is_own_host(std::string_view host, const OwnNames &own);

/// Where what stands behind the empty line begins, or nullopt: the empty line isn't there yet.
[[nodiscard]] std::optional<size_t> end_of_head(std::string_view received);

/// HTTP's status for a request's line and headers, up to and with their empty line: 200 (send the metrics), 400, 404, 405, 421 or
/// 505. `without_body`: it is HEAD.
struct Verdict {
    int status = 400;
    bool without_body = false;
};
[[nodiscard]] Verdict judge_request(std::string_view head, const OwnNames &own);

/// The answer's line and headers. `body_size`: for Content-Length.
[[nodiscard]] std::string answer_head(int status, size_t body_size);
/// What stands in an answer that isn't 200: a sentence with a newline.
[[nodiscard]] std::string_view explanation(int status);

} // namespace rawbpf::inline v0::telemetry
