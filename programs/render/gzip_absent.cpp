// Stands in for gzip.cpp in a build without zlib (-Dzlib=disabled): the readers of profile.proto take it uncompressed, too.
#include "programs/render/gzip.h"

namespace rawbpf::inline v0::render {

struct Gzip::State {};

bool compresses() { return false; }
Gzip::Gzip(Writer &out) : out_(out) {}
Gzip::~Gzip() = default;
void Gzip::write(std::string_view part) { out_.write(part); }
void Gzip::finish() {}

} // namespace rawbpf::inline v0::render
