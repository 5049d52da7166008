// A build-id is what a file says of itself. One that says another's would have its own table taken for the other's, in all
// processes; so a table is shared by files with the same build-id only if they have the same to say.
//
// Eight bytes at a time are multiplied into 128 bits, whose halves are folded: some gigabytes a second, and nothing that could
// be aimed at without the key.
#include "programs/unwind/fingerprint.h"

#include <algorithm>
#include <cstring>
#include <elf.h>

#include "asm/int128.h"

namespace rawbpf::inline v0::unwind {
namespace {

class Hash {
  public:
    explicit Hash(uint64_t key) : key_(key | 1), state_(~key) {}
    void add(uint64_t value) {
        const Uint128 product = Uint128{value ^ state_} * (key_ ^ 0x9e3779b97f4a7c15);
        state_ = (static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64)) + key_;
    }
    void add(Bytes bytes) {
        add(bytes.size());
        for (; !bytes.empty(); bytes = bytes.subspan(std::min<size_t>(8, bytes.size()))) {
            uint64_t value = 0;
            std::memcpy(&value, bytes.data(), std::min<size_t>(8, bytes.size()));
            add(value);
        }
    }
    [[nodiscard]] uint64_t result() const { return state_; }

  private:
    uint64_t key_, state_;
};

} // namespace

uint64_t fingerprint(const elf::Elf &file, uint64_t key) {
    Hash hash(key);
    hash.add(file.entry());
    for (const elf::Segment &segment : file.segments())
        for (const uint64_t value : {uint64_t{segment.type}, uint64_t{segment.flags}, segment.offset, segment.address,
                                     segment.file_size, segment.memory_size})
            hash.add(value);
    for (const elf::Section &section : file.sections()) {
        if (!(section.flags & SHF_ALLOC) && section.name != ".debug_frame") continue; // symbols may be stripped from one of them
        hash.add(Bytes(reinterpret_cast<const std::byte *>(section.name.data()), section.name.size()));
        for (const uint64_t value : {uint64_t{section.type}, section.flags, section.address, section.size}) hash.add(value);
        if (section.name == ".eh_frame" || section.name == ".debug_frame") hash.add(file.contents(section));
    }
    return hash.result();
}

} // namespace rawbpf::inline v0::unwind
