// zlib at work. A level of 6 is what gzip(1) takes; a profile becomes a fifth of its size.
#include "programs/render/gzip.h"

#include <algorithm>
#include <new>
#include <zlib.h>

namespace rawbpf::inline v0::render {
namespace {

constexpr int kGzipWindow = 15 + 16; // 32 KB, and a gzip header around it (deflateInit2's windowBits)

} // namespace

struct Gzip::State {
    z_stream stream = {};
};

bool compresses() { return true; }

Gzip::Gzip(Writer &out) : out_(out), state_(std::make_unique<State>()) {
    // It fails for want of memory only, and then everything else does.
    if (deflateInit2(&state_->stream, 6, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) std::abort();
}

Gzip::~Gzip() { deflateEnd(&state_->stream); }

void Gzip::write(std::string_view part) {
    z_stream &z = state_->stream;
    while (!part.empty()) {
        const auto size = static_cast<uInt>(std::min<size_t>(part.size(), 1u << 30));
        z.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(part.data())); // zlib only reads it
        z.avail_in = size;
        while (z.avail_in > 0) {
            char block[16384];
            z.next_out = reinterpret_cast<Bytef *>(block);
            z.avail_out = sizeof block;
            deflate(&z, Z_NO_FLUSH);
            out_.write({block, sizeof block - z.avail_out});
        }
        part.remove_prefix(size);
    }
}

void Gzip::finish() {
    z_stream &z = state_->stream;
    for (int status = Z_OK; status == Z_OK;) {
        char block[16384];
        z.next_out = reinterpret_cast<Bytef *>(block);
        z.avail_out = sizeof block;
        status = deflate(&z, Z_FINISH);
        out_.write({block, sizeof block - z.avail_out});
    }
}

} // namespace rawbpf::inline v0::render
