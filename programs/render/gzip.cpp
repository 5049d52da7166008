// zlib at work. A level of 6 is what gzip(1) takes; a profile becomes a fifth of its size.
#include "programs/render/gzip.h"

#include <algorithm>
#include <new>
#include <zlib.h>

#include "programs/library.h"

namespace rawbpf::inline v0::render {
namespace {

[[maybe_unused]] constexpr const char *kLibrary = "libz.so.1";
constexpr int kGzipWindow = 15 + 16; // 32 KB, and a gzip header around it (deflateInit2's windowBits)

struct Functions {
    decltype(&deflateInit2_) init = RAWBPF_FUNCTION_OF(kLibrary, deflateInit2_);
    decltype(&deflate) step = RAWBPF_FUNCTION_OF(kLibrary, deflate);
    decltype(&deflateEnd) end = RAWBPF_FUNCTION_OF(kLibrary, deflateEnd);
};
const Functions &functions() {
    static const Functions all;
    return all;
}

} // namespace

struct Gzip::State {
    z_stream stream = {};
};

bool compresses() { return functions().init && functions().step && functions().end; }

Gzip::Gzip(Writer &out) : out_(out), state_(std::make_unique<State>()) {
    if (!compresses()) return;
    // It fails for want of memory only, and then everything else does.
    if (functions().init(&state_->stream, 6, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, sizeof(z_stream)) !=
        Z_OK)
        std::abort();
}

Gzip::~Gzip() {
    if (compresses()) functions().end(&state_->stream);
}

void Gzip::write(std::string_view part) {
    if (!compresses()) return out_.write(part);
    z_stream &z = state_->stream;
    while (!part.empty()) {
        const auto size = static_cast<uInt>(std::min<size_t>(part.size(), 1u << 30));
        z.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(part.data())); // zlib only reads it
        z.avail_in = size;
        while (z.avail_in > 0) {
            char block[16384];
            z.next_out = reinterpret_cast<Bytef *>(block);
            z.avail_out = sizeof block;
            functions().step(&z, Z_NO_FLUSH);
            out_.write({block, sizeof block - z.avail_out});
        }
        part.remove_prefix(size);
    }
}

void Gzip::finish() {
    if (!compresses()) return;
    z_stream &z = state_->stream;
    for (int status = Z_OK; status == Z_OK;) {
        char block[16384];
        z.next_out = reinterpret_cast<Bytef *>(block);
        z.avail_out = sizeof block;
        status = functions().step(&z, Z_FINISH);
        out_.write({block, sizeof block - z.avail_out});
    }
}

} // namespace rawbpf::inline v0::render
