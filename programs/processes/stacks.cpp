// The tables behind stacks.h. Interning goes from the outermost frame to the leaf, one lookup a frame: about 20 ns each, so a
// sample of 40 frames costs a microsecond, and what stays in memory is only the part of the stack that is new.
//
// Which places are "the same" depends on who asks. A flame graph of a compile farm sees cc1 in a thousand processes at a thousand
// addresses (ASLR): by_offset they are one. An output that prints addresses needs by_address. An address in no mapping at all
// (a walk that left the rails without frame pointers) is one place by_offset: nobody can use its thousand values.
#include "programs/processes/stacks.h"

#include <cstring>

namespace rawbpf::inline v0::processes {

namespace {

uint64_t hash_bytes(uint64_t seed, const void *at, size_t size) { // FNV-1a, then mixed by the caller
    const auto *byte = static_cast<const unsigned char *>(at);
    uint64_t hash = seed ^ 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; ++i) hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash;
}

uint64_t hash_of(const Module &module) {
    return mix(hash_bytes(module.inode * 31 + module.device, module.path.data(), module.path.size()));
}

uint64_t hash_of(const StackTree::Node &node) { return mix(uint64_t{node.caller} << 32 | node.place); }

/// Errors are part of a sample's identity: a stack that could not be read isn't the same as one that is empty.
bool missed(int32_t bytes) { return bytes < 0; }

uint64_t hash_of(const InternedSample &sample) {
    uint64_t hash = mix(uint64_t{sample.kernel} << 32 | sample.user);
    return mix(hash_bytes(hash + sample.pid + (uint64_t{sample.labels} << 32), sample.comm, sizeof sample.comm));
}

bool counts_as(const InternedSample &a, const InternedSample &b) {
    return a.kernel == b.kernel && a.user == b.user && a.pid == b.pid && a.labels == b.labels &&
           missed(a.kernel_bytes) == missed(b.kernel_bytes) && missed(a.user_bytes) == missed(b.user_bytes) &&
           std::memcmp(a.comm, b.comm, sizeof a.comm) == 0;
}

} // namespace

uint32_t ModuleTable::intern(Module module) {
    const uint64_t hash = hash_of(module);
    uint32_t id = index_.find(hash, [&](uint32_t other) { return modules_[other] == module; });
    if (id != kNone) return id;
    id = static_cast<uint32_t>(modules_.size());
    index_.add(hash, id, [&](uint32_t other) { return hash_of(modules_[other]); });
    modules_.push_back(std::move(module));
    return id;
}

uint64_t StackTree::hash(const FrameLocation &place) const {
    const bool by_offset = sharing_ == Sharing::by_offset && !place.kernel && place.pid == 0;
    const uint64_t where = by_offset ? place.file_offset : place.address;
    return mix(mix(where) ^
               (uint64_t{place.module} << 32 | (place.pid << 2) | (place.kernel ? 2u : 0u) | (place.caller ? 1u : 0u)));
}

bool StackTree::same(const FrameLocation &a, const FrameLocation &b) const {
    if (a.module != b.module || a.pid != b.pid || a.kernel != b.kernel || a.caller != b.caller) return false;
    if (a.file_offset != b.file_offset) return false;
    const bool by_offset = sharing_ == Sharing::by_offset && !a.kernel && a.pid == 0;
    return by_offset || a.address == b.address;
}

uint32_t StackTree::intern_place(const FrameLocation &place) {
    const uint64_t wanted = hash(place);
    uint32_t id = place_index_.find(wanted, [&](uint32_t other) { return same(places_[other], place); });
    if (id != kNone) return id;
    id = static_cast<uint32_t>(places_.size());
    place_index_.add(wanted, id, [&](uint32_t other) { return hash(places_[other]); });
    places_.push_back(place);
    return id;
}

uint32_t StackTree::intern_node(uint32_t caller, uint32_t place) {
    const Node node{caller, place};
    const uint64_t wanted = hash_of(node);
    uint32_t id =
        node_index_.find(wanted, [&](uint32_t other) { return nodes_[other].caller == caller && nodes_[other].place == place; });
    if (id != kNone) return id;
    id = static_cast<uint32_t>(nodes_.size());
    node_index_.add(wanted, id, [&](uint32_t other) { return hash_of(nodes_[other]); });
    nodes_.push_back(node);
    return id;
}

size_t StackTree::memory() const {
    return places_.capacity() * sizeof(FrameLocation) + nodes_.capacity() * sizeof(Node) + place_index_.memory() +
           node_index_.memory();
}

void StackTree::clear() {
    places_ = {};
    nodes_ = {};
    place_index_.clear();
    node_index_.clear();
}

uint64_t CountTable::hash(const InternedSample &sample) const {
    return by_thread_ ? mix(hash_of(sample) + sample.tid) : hash_of(sample);
}

void CountTable::add(const InternedSample &sample, uint64_t count) {
    const uint64_t wanted = hash(sample);
    uint32_t id = index_.find(wanted, [&](uint32_t other) {
        const InternedSample &first = entries_[other].first;
        return counts_as(first, sample) && (!by_thread_ || first.tid == sample.tid);
    });
    if (id == kNone) {
        id = static_cast<uint32_t>(entries_.size());
        index_.add(wanted, id, [&](uint32_t other) { return hash(entries_[other].first); });
        entries_.push_back({sample, 0, 0});
    }
    entries_[id].count += count;
    entries_[id].weight += count * sample.weight;
}

void CountTable::clear() {
    entries_ = {};
    index_.clear();
}

} // namespace rawbpf::inline v0::processes
