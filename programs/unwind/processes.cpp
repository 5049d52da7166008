// The order is everything: write the list where nobody looks, let the kernel see its pool, change the process's entry, and only
// then give the old list back, which stays in quarantine for as long as a program may read it.
//
//      list A  <-- pid 10                    list A   (quarantine)
//                               -->
//                                            list B  <-- pid 10
//
// A forked child has its parent's mappings, so lists are found again by their content: fork costs one entry in a map, and a storm
// of short-lived children no memory.
#include "programs/unwind/processes.h"

#include <cstring>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::unwind {

namespace {

uint64_t since_ns(Copied copied, uint64_t now_ns) {
    switch (copied) {
    case Copied::while_young: break;
    case Copied::unknown: return UNWIND_ALWAYS_YOUNG;
    case Copied::all: return UNWIND_ALWAYS_COPIED;
    }
    return now_ns;
}

uint64_t hash_of(std::span<const UnwindMapping> mappings) {
    uint64_t hash = mappings.size();
    const auto bytes = std::as_bytes(mappings);
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, bytes.data() + at, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

} // namespace

std::span<const UnwindMapping> Processes::mappings(const List &list) const {
    return {reinterpret_cast<const UnwindMapping *>(pools_.at(list.position)), list.count};
}

void Processes::leave(uint32_t list) {
    List &left = lists_[list];
    if (--left.users == 0) pools_.release(left.position, left.count * uint32_t{sizeof(UnwindMapping)});
}

Result<Publication> Processes::publish(uint32_t pid, std::span<const UnwindMapping> wanted, uint64_t as_of_ns, uint64_t now_ns,
                                       Copied copied) {
    const auto before = published_.find(pid);
    const uint64_t hash = hash_of(wanted);
    uint32_t list = UINT32_MAX, unused = UINT32_MAX;
    for (uint32_t i = 0; i < lists_.size() && list == UINT32_MAX; ++i) {
        if (lists_[i].users == 0)
            unused = i;
        else if (lists_[i].hash == hash && lists_[i].count == wanted.size() &&
                 std::memcmp(mappings(lists_[i]).data(), wanted.data(), wanted.size_bytes()) == 0)
            list = i;
    }
    if (before != published_.end() && before->second.list == list && before->second.copied == copied && sink_.has(pid)) {
        before->second.used_ns = now_ns;
        return Publication::done;
    }
    if (list == UINT32_MAX) {
        const auto position = wanted.empty() || wanted.size() > UNWIND_MAX_MAPPINGS
                                  ? std::nullopt
                                  : pools_.allocate(static_cast<uint32_t>(wanted.size_bytes()));
        if (!position) {
            TRY(withdraw(pid));
            return Publication::no_room;
        }
        std::memcpy(pools_.at(*position), wanted.data(), wanted.size_bytes());
        list = unused;
        if (list == UINT32_MAX) {
            list = static_cast<uint32_t>(lists_.size());
            lists_.emplace_back();
        }
        lists_[list] = {*position, static_cast<uint32_t>(wanted.size()), 0, hash};
    }
    ++lists_[list].users;
    const auto put = [&]() -> Result<bool> {
        TRY(source_.publish());
        if (before == published_.end() && published_.size() >= most_) {
            auto oldest = published_.begin();
            for (auto at = oldest; at != published_.end(); ++at)
                if (at->second.used_ns < oldest->second.used_ns) oldest = at;
            ++evictions_;
            TRY(withdraw(oldest->first));
        }
        return sink_.put(pid, {lists_[list].position, lists_[list].count, since_ns(copied, now_ns), pools_.edition(), 0},
                         as_of_ns);
    };
    auto done = put();
    if (!done || !*done) leave(list);
    if (!done) return Unexpected(std::move(done).error());
    if (before != published_.end()) leave(before->second.list);
    if (!*done) {
        published_.erase(pid);
        return Publication::executed;
    }
    published_.insert_or_assign(pid, Published{list, now_ns, copied});
    return Publication::done;
}

Result<void> Processes::withdraw(uint32_t pid) {
    const auto found = published_.find(pid);
    if (found == published_.end()) return {};
    TRY(sink_.erase(pid));
    leave(found->second.list);
    published_.erase(found);
    return {};
}

Result<std::vector<uint32_t>> Processes::withdraw_users(uint32_t directory) {
    std::vector<uint32_t> users;
    for (const auto &[pid, process] : published_) {
        for (const UnwindMapping &mapping : mappings(lists_[process.list])) {
            if (mapping.kind != UNWIND_BY_TABLE || mapping.pages != directory) continue;
            users.push_back(pid);
            break;
        }
    }
    for (uint32_t pid : users) TRY(withdraw(pid));
    return users;
}

void Processes::used(uint32_t pid, uint64_t now_ns) {
    if (const auto found = published_.find(pid); found != published_.end()) found->second.used_ns = now_ns;
}

} // namespace rawbpf::inline v0::unwind
