// What changed in a map from one look to the next.
#include "programs/running/changes.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/format.h"
#include "tests/support/test.h"

using namespace rawbpf;
using running::MapChange;
using running::MapImage;

namespace {

template <class Key> MapImage image(const std::vector<std::pair<Key, uint16_t>> &entries) {
    Map::Entries some;
    for (const auto &[key, value] : entries) {
        const auto *k = reinterpret_cast<const std::byte *>(&key), *v = reinterpret_cast<const std::byte *>(&value);
        some.keys.insert(some.keys.end(), k, k + sizeof key);
        some.values.insert(some.values.end(), v, v + sizeof value);
        ++some.count;
    }
    MapImage out(sizeof(Key), sizeof(uint16_t));
    out.add(some);
    out.sort();
    return out;
}

template <class Key> std::string changes(const MapImage &before, const MapImage &after) {
    std::string out;
    running::each_change(before, after, [&](const MapChange &change) {
        const auto value = [](Bytes bytes) {
            return bytes.empty() ? std::string("-") : format("{}", load<uint16_t>(bytes.data()));
        };
        append(out, "{}: {} {}; ", load<Key>(change.key.data()), value(change.before), value(change.after));
    });
    return out;
}

} // namespace

TEST_CASE("running: keys that are new, gone or have another value, in the keys' order") {
    const MapImage before = image<uint32_t>({{300, 1}, {2, 2}, {4, 4}, {70000, 7}});
    const MapImage after = image<uint32_t>({{70000, 7}, {4, 5}, {1, 9}, {2, 2}});
    CHECK(changes<uint32_t>(before, after) == "1: - 9; 4: 4 5; 300: 1 -; ");
    CHECK(changes<uint32_t>(after, after) == "");
    CHECK(changes<uint32_t>(image<uint32_t>({}), before) == "2: - 2; 4: - 4; 300: - 1; 70000: - 7; ");
    CHECK(changes<uint32_t>(before, image<uint32_t>({})) == "2: 2 -; 4: 4 -; 300: 1 -; 70000: 7 -; ");
}

TEST_CASE("running: keys of every size of a number are ordered as numbers, and a key counts once") {
    CHECK(changes<uint64_t>(image<uint64_t>({}), image<uint64_t>({{1U << 20, 1}, {3, 2}, {256, 3}})) ==
          "3: - 2; 256: - 3; 1048576: - 1; ");
    CHECK(changes<uint16_t>(image<uint16_t>({}), image<uint16_t>({{256, 1}, {3, 2}})) == "3: - 2; 256: - 1; ");
    CHECK(changes<uint8_t>(image<uint8_t>({}), image<uint8_t>({{9, 1}, {3, 2}})) == "3: - 2; 9: - 1; ");
    const MapImage twice = image<uint32_t>({{5, 1}, {4, 3}, {5, 2}}); // others wrote while it was read
    CHECK(twice.size() == 2);
    CHECK(changes<uint32_t>(image<uint32_t>({}), twice) == "4: - 3; 5: - 1; ");
}
