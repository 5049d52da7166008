// A process context as a writer makes it, for tests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "programs/render/protobuf.h"

namespace rawbpf::test {

/// A KeyValue with a text.
inline void put_attribute(render::Message &into, uint32_t field, std::string_view key, std::string_view value) {
    into.message(field, [&](render::Message &pair) {
        pair.bytes(1, key);
        pair.message(2, [&](render::Message &any) { any.bytes(1, value); });
    });
}

/// A payload: service.name, threadlocal.schema_version and the keys.
inline std::string made_payload(std::string_view service, std::string_view schema, const std::vector<std::string> &keys) {
    std::string out;
    render::Message payload(out);
    payload.message(1, [&](render::Message &resource) { put_attribute(resource, 1, "service.name", service); });
    put_attribute(payload, 2, "threadlocal.schema_version", schema);
    payload.message(2, [&](render::Message &pair) {
        pair.bytes(1, "threadlocal.attribute_key_map");
        pair.message(2, [&](render::Message &any) {
            any.message(5, [&](render::Message &list) {
                for (const std::string &key : keys) list.message(1, [&](render::Message &text) { text.bytes(1, key); });
            });
        });
    });
    return out;
}

} // namespace rawbpf::test
