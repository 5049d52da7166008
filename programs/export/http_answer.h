// An answer to one HTTP request, read piece by piece, with a bound on each of its parts. PURE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::telemetry {

inline constexpr size_t kMostAnswer = 64 << 10; ///< of an answer's body; what is longer isn't read
inline constexpr size_t kMostHead = 32 << 10;   ///< of its lines: status, headers, sizes of chunks, trailers, interim answers

struct HttpAnswer {
    int status = 0;
    std::string content_type, retry_after; ///< headers, empty where there are none
    std::string body;                      ///< its first kMostAnswer bytes; empty where it is compressed, which nobody asked for
    bool keeps_open = false;               ///< another request may follow on this connection
};

/// Reads an answer of HTTP/1.0 or 1.1 to a POST.
class AnswerReader {
  public:
    enum class State : uint8_t { more, done, failed };
    /// The next bytes.
    State feed(std::string_view piece);
    /// The peer sends no more.
    State end();
    [[nodiscard]] State state() const { return state_; }
    /// When done.
    [[nodiscard]] HttpAnswer &answer() { return answer_; }
    /// When failed: what is wrong with it, after "an answer ".
    [[nodiscard]] std::string_view problem() const { return problem_; }
    /// Whether there was anything at all.
    [[nodiscard]] bool began() const { return began_; }

  private:
    enum class Part : uint8_t { status, headers, length, to_the_end, chunk_size, chunk, chunk_end, trailers };
    void line(std::string_view text);
    void status_line(std::string_view text);
    void header(std::string_view text);
    void end_of_headers();
    void body(std::string_view &rest);
    void fail(std::string_view problem);
    void done(bool keeps_open);

    State state_ = State::more;
    Part part_ = Part::status;
    HttpAnswer answer_;
    std::string line_;  ///< what there is of the line that isn't complete
    size_t lines_ = 0;  ///< bytes of all lines
    uint64_t left_ = 0; ///< of the body, or of the chunk
    bool has_length_ = false, chunked_ = false, closes_ = false, encoded_ = false, began_ = false;
    std::string_view problem_;
};

} // namespace rawbpf::inline v0::telemetry
