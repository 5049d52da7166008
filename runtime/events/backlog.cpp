// The limit counts whole chunks, since they take the memory, including the end of a chunk into which a record didn't fit.
// Chunks are allocated without being touched, so a chunk that holds little costs only the pages that it uses.
//
// When the limit is reached, the newest records are refused, and the oldest are kept: the records have no gap up to the first
// one that is missing, as in a full ring. What lies beyond the limit has room for what is needed alone: the rest of a chunk there
// is nobody else's.
#include "runtime/events/backlog.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rawbpf::inline v0 {
namespace {

constexpr size_t kHead = 8;
constexpr size_t whole(size_t length) { return (kHead + length + 7) & ~size_t{7}; }

} // namespace

bool Backlog::Chunk::peek(Bytes &record) const {
    if (left_ == 0) {
        record = {};
        return false;
    }
    record = Bytes(bytes_.get() + at_ + kHead, load<uint32_t>(bytes_.get() + at_));
    return true;
}

bool Backlog::Chunk::next(Bytes &record) {
    if (!peek(record)) return false;
    at_ += whole(record.size());
    --left_;
    return true;
}

bool Backlog::add_chunk(size_t record_bytes, uint64_t most) {
    const size_t capacity = std::max(kChunkBytes, record_bytes);
    if (spare_.capacity_ >= capacity) {
        chunks_.push_back(std::exchange(spare_, {}));
        return true;
    }
    if (bound_.used + capacity > most) return false;
    Chunk chunk;
    chunk.bytes_.reset(static_cast<std::byte *>(std::malloc(capacity)));
    if (!chunk.bytes_) return false;
    chunk.capacity_ = capacity;
    bound_.used += capacity;
    chunks_.push_back(std::move(chunk));
    return true;
}

bool Backlog::push(Bytes record) {
    const bool fits = place(record, bound_.most);
    refused_ += !fits;
    return fits;
}

bool Backlog::push_needed(Bytes record) {
    const bool fits = place(record, bound_.most + bound_.beyond);
    refused_ -= fits;
    return fits;
}

bool Backlog::place(Bytes record, uint64_t most) {
    if (bound_.used > most) return false;
    const size_t bytes = whole(record.size());
    if (chunks_.empty() || chunks_.back().capacity_ - chunks_.back().end_ < bytes)
        if (record.size() > UINT32_MAX || !add_chunk(bytes, most)) return false;
    Chunk &last = chunks_.back();
    std::byte *to = last.bytes_.get() + last.end_;
    const auto length = static_cast<uint32_t>(record.size());
    std::memcpy(to, &length, sizeof length);
    if (length) std::memcpy(to + kHead, record.data(), length);
    last.end_ += bytes;
    ++last.left_;
    ++waiting_;
    return true;
}

bool Backlog::peek(Bytes &record) const {
    record = {};
    return !chunks_.empty() && chunks_.front().peek(record);
}

Backlog::Chunk Backlog::take() {
    if (chunks_.empty()) return {};
    Chunk first = std::move(chunks_.front());
    chunks_.pop_front();
    waiting_ -= first.left_;
    return first;
}

void Backlog::give_back(Chunk chunk) {
    if (!chunk.bytes_) return;
    // One is kept, of the usual size: whoever keeps up fills and empties the same one for ever.
    if (spare_.bytes_ || chunk.capacity_ != kChunkBytes) {
        bound_.used -= chunk.capacity_;
        return;
    }
    chunk.at_ = chunk.end_ = 0;
    chunk.left_ = 0;
    spare_ = std::move(chunk);
}

} // namespace rawbpf::inline v0
