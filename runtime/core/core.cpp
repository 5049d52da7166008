// <rawbpf/core.h>: the library's own calls, with C's types.
//
//      rawbpf_object   ObjectSpec  --load()-->  LoadedObject  --attach_...()-->  Links
//      rawbpf_map      a Map of the LoadedObject
//      rawbpf_ring     a RingBuffer
//
// An Error's three texts become arrays of a fixed size, so that a caller in C has nothing to release. All else is passed on.
#include "runtime/core/rawbpf/core.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <linux/bpf.h>

#include "runtime/base/fail.h"
#include "runtime/core/version.h"
#include "runtime/events/ring_buffer.h"
#include "runtime/kernel/loader.h"
#include "runtime/link/attach.h"
#include "runtime/object/elf_object.h"
#include "runtime/sys/file.h"

using namespace rawbpf;

struct rawbpf_object {
    ObjectSpec spec;
    std::string btf_path;
    bool loaded = false;
    LoadedObject object;
    std::vector<Link> links; // behind `object`, so that programs are detached before they are released
};
// Both are only ever pointers to what they stand for.
struct rawbpf_map {
    Map map;
};
struct rawbpf_ring {
    RingBuffer ring;
};

namespace {

static_assert(offsetof(rawbpf_map, map) == 0 && sizeof(rawbpf_map) == sizeof(Map));

constexpr int code_of(Errc kind) {
    switch (kind) {
    case Errc::invalid_argument: return RAWBPF_INVALID_ARGUMENT;
    case Errc::not_found: return RAWBPF_NOT_FOUND;
    case Errc::permission: return RAWBPF_PERMISSION;
    case Errc::unsupported: return RAWBPF_UNSUPPORTED;
    case Errc::bad_input: return RAWBPF_BAD_INPUT;
    case Errc::rejected: return RAWBPF_REJECTED;
    case Errc::io: return RAWBPF_IO;
    case Errc::busy: return RAWBPF_BUSY;
    case Errc::no_memory: return RAWBPF_NO_MEMORY;
    case Errc::kernel: return RAWBPF_KERNEL;
    case Errc::internal: return RAWBPF_INTERNAL;
    }
    return RAWBPF_INTERNAL;
}

// As much as fits, without half a character of UTF-8 at the end.
void put(char *out, size_t room, std::string_view text) {
    size_t size = std::min(text.size(), room - 1);
    while (size > 0 && size < text.size() && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
    std::memcpy(out, text.data(), size);
    out[size] = 0;
}

// The end of it, from the beginning of a line.
std::string_view tail(std::string_view text, size_t room) {
    if (text.size() < room) return text;
    const std::string_view end = text.substr(text.size() - room + 1);
    const size_t line = end.find('\n');
    return line == std::string_view::npos ? end : end.substr(line + 1);
}

int failed(const Error &error, rawbpf_error *out) {
    const int code = code_of(error.kind);
    if (!out) return code;
    out->code = code;
    out->os = error.os;
    put(out->text, sizeof out->text, error.message());
    put(out->hint, sizeof out->hint, error.hint);
    put(out->log, sizeof out->log, tail(error.log, sizeof out->log));
    return code;
}
template <class T> int failed(const Result<T> &result, rawbpf_error *out) { return failed(result.error(), out); }
int refused(rawbpf_error *out, Errc kind, std::string text, std::string hint = {}) {
    return failed(make_error(kind, std::move(text), std::move(hint)), out);
}
int done(const Result<void> &result, rawbpf_error *out) { return result ? RAWBPF_OK : failed(result, out); }

// Why a call isn't for an object in this state; 0: it is.
int wants_unloaded(const rawbpf_object *object, const char *what, rawbpf_error *out) {
    if (!object) return refused(out, Errc::invalid_argument, format("{}: no object was given", what));
    if (!object->loaded) return RAWBPF_OK;
    return refused(out, Errc::invalid_argument, format("{}: {} is loaded already", what, object->spec.name),
                   "call it before rawbpf_load()");
}
int wants_loaded(const rawbpf_object *object, const char *what, rawbpf_error *out) {
    if (!object) return refused(out, Errc::invalid_argument, format("{}: no object was given", what));
    if (object->loaded) return RAWBPF_OK;
    return refused(out, Errc::invalid_argument, format("{}: {} isn't loaded", what, object->spec.name),
                   "call rawbpf_load() first");
}
std::string_view text_of(const char *text) { return text ? text : std::string_view(); }

// "there is no program of that name; it has count, tick"
template <class Items>
int no_such(rawbpf_error *out, const rawbpf_object *object, const char *kind, std::string_view name, const Items &items) {
    std::string all;
    for (const auto &item : items) append(all, "{}{}", all.empty() ? "" : ", ", item.name);
    return refused(out, Errc::not_found, format("{}: there is no {} {}", object->spec.name, kind, name),
                   all.empty() ? format("it has no {}s", kind) : format("it has {}", all));
}

int opened(Result<ObjectSpec> spec, rawbpf_object **object, rawbpf_error *out) {
    if (!spec) return failed(spec, out);
    auto made = std::make_unique<rawbpf_object>();
    made->spec = std::move(*spec);
    *object = made.release();
    return RAWBPF_OK;
}

} // namespace

const char *rawbpf_core_version(void) { return RAWBPF_CORE_VERSION; }

int rawbpf_open_file(const char *path, rawbpf_object **object, rawbpf_error *error) {
    if (!path || !object) return refused(error, Errc::invalid_argument, "rawbpf_open_file: no path, or no place for the object");
    const Result<std::string> bytes = sys::read_file(path);
    if (!bytes) return failed(bytes, error);
    return opened(parse_object(std::as_bytes(std::span(*bytes)), path), object, error);
}

int rawbpf_open_memory(const void *bytes, size_t size, const char *name, rawbpf_object **object, rawbpf_error *error) {
    if (!bytes || !object)
        return refused(error, Errc::invalid_argument, "rawbpf_open_memory: no bytes, or no place for the object");
    return opened(parse_object({static_cast<const std::byte *>(bytes), size}, name ? name : "object"), object, error);
}

void rawbpf_close(rawbpf_object *object) { delete object; }

int rawbpf_set_global(rawbpf_object *object, const char *name, const void *value, size_t size, rawbpf_error *error) {
    if (const int wrong = wants_unloaded(object, "rawbpf_set_global", error)) return wrong;
    const std::span<std::byte> bytes = object->spec.find_global(text_of(name));
    if (bytes.empty())
        return refused(error, Errc::not_found, format("{}: there is no variable {}", object->spec.name, text_of(name)),
                       object->spec.btf.empty() ? "the object has no types: compile it with -g" : "");
    if (bytes.size() != size || !value)
        return refused(error, Errc::invalid_argument,
                       format("{}: {} has {} bytes, not {}", object->spec.name, name, bytes.size(), size));
    std::memcpy(bytes.data(), value, size);
    return RAWBPF_OK;
}

int rawbpf_set_entries(rawbpf_object *object, const char *map, uint32_t entries, rawbpf_error *error) {
    if (const int wrong = wants_unloaded(object, "rawbpf_set_entries", error)) return wrong;
    MapSpec *found = object->spec.find_map(text_of(map));
    if (!found) return no_such(error, object, "map", text_of(map), object->spec.maps);
    found->max_entries = entries;
    return RAWBPF_OK;
}

int rawbpf_select(rawbpf_object *object, const char *program, int wanted, rawbpf_error *error) {
    if (const int wrong = wants_unloaded(object, "rawbpf_select", error)) return wrong;
    ProgramSpec *found = object->spec.find_program(text_of(program));
    if (!found) return no_such(error, object, "program", text_of(program), object->spec.programs);
    found->autoload = wanted != 0;
    return RAWBPF_OK;
}

int rawbpf_set_btf(rawbpf_object *object, const char *path, rawbpf_error *error) {
    if (const int wrong = wants_unloaded(object, "rawbpf_set_btf", error)) return wrong;
    object->btf_path = text_of(path);
    return RAWBPF_OK;
}

int rawbpf_load(rawbpf_object *object, rawbpf_error *error) {
    if (const int wrong = wants_unloaded(object, "rawbpf_load", error)) return wrong;
    LoadOptions options;
    options.btf_path = object->btf_path;
    Result<LoadedObject> loaded = load(object->spec, options);
    if (!loaded) return failed(loaded, error);
    object->object = std::move(*loaded);
    object->loaded = true;
    return RAWBPF_OK;
}

int rawbpf_attach(rawbpf_object *object, rawbpf_error *error) {
    if (const int wrong = wants_loaded(object, "rawbpf_attach", error)) return wrong;
    Result<Attached> attached = attach_object(object->spec, object->object);
    if (!attached) return failed(attached, error);
    for (Link &link : attached->links) object->links.push_back(std::move(link));
    return static_cast<int>(attached->links.size());
}

int rawbpf_attach_program(rawbpf_object *object, const char *program, const rawbpf_place *place, rawbpf_error *error) {
    if (const int wrong = wants_loaded(object, "rawbpf_attach_program", error)) return wrong;
    const Program *found = object->object.find_program(text_of(program));
    if (!found) return no_such(error, object, "loaded program", text_of(program), object->object.programs);
    AttachOptions options;
    if (place) {
        options.target = text_of(place->target);
        options.pid = place->pid > 0 ? place->pid : -1;
        options.interface = place->interface;
        options.egress = place->egress != 0;
        options.target_fd = place->fd;
        options.cookie = place->cookie;
    }
    Result<Link> link = attach_program(object->spec, object->object, *found, options);
    if (!link) return failed(link, error);
    object->links.push_back(std::move(*link));
    return RAWBPF_OK;
}

int rawbpf_detach(rawbpf_object *object, rawbpf_error *error) {
    if (const int wrong = wants_loaded(object, "rawbpf_detach", error)) return wrong;
    int status = RAWBPF_OK;
    for (Link &link : object->links) {
        const Result<void> detached = link.detach();
        if (!detached && status == RAWBPF_OK) status = failed(detached, error); // the others are detached all the same
    }
    object->links.clear();
    return status;
}

int rawbpf_program_fd(const rawbpf_object *object, const char *program, rawbpf_error *error) {
    if (const int wrong = wants_loaded(object, "rawbpf_program_fd", error)) return wrong;
    for (const Program &loaded : object->object.programs)
        if (loaded.name == text_of(program)) return loaded.fd.get();
    return no_such(error, object, "loaded program", text_of(program), object->object.programs);
}

rawbpf_map *rawbpf_find_map(rawbpf_object *object, const char *name) {
    if (!object || !object->loaded) return nullptr;
    Map *map = object->object.find_map(text_of(name));
    if (const MapSpec *spec = map ? nullptr : object->spec.find_map(text_of(name))) map = object->object.find_map(spec->name);
    return reinterpret_cast<rawbpf_map *>(map);
}
int rawbpf_map_fd(const rawbpf_map *map) { return map ? map->map.fd() : RAWBPF_INVALID_ARGUMENT; }
size_t rawbpf_map_key_size(const rawbpf_map *map) { return map ? map->map.key_size() : 0; }
size_t rawbpf_map_value_size(const rawbpf_map *map) { return map ? map->map.lookup_size() : 0; }
uint32_t rawbpf_map_entries(const rawbpf_map *map) { return map ? map->map.max_entries() : 0; }

int rawbpf_map_lookup(const rawbpf_map *map, const void *key, void *value, rawbpf_error *error) {
    if (!map || !value) return refused(error, Errc::invalid_argument, "rawbpf_map_lookup: no map, or no place for the value");
    return done(map->map.lookup(key, value), error);
}
int rawbpf_map_update(const rawbpf_map *map, const void *key, const void *value, uint64_t flags, rawbpf_error *error) {
    if (!map || !value) return refused(error, Errc::invalid_argument, "rawbpf_map_update: no map, or no value");
    return done(map->map.update(key, value, flags), error);
}
int rawbpf_map_delete(const rawbpf_map *map, const void *key, rawbpf_error *error) {
    if (!map) return refused(error, Errc::invalid_argument, "rawbpf_map_delete: no map was given");
    return done(map->map.erase(key), error);
}
int rawbpf_map_next_key(const rawbpf_map *map, const void *key, void *next, rawbpf_error *error) {
    if (!map || !next) return refused(error, Errc::invalid_argument, "rawbpf_map_next_key: no map, or no place for the key");
    return done(map->map.next_key(key, next), error);
}

int rawbpf_ring_open(rawbpf_object *object, const char *map, rawbpf_ring **ring, rawbpf_error *error) {
    if (const int wrong = wants_loaded(object, "rawbpf_ring_open", error)) return wrong;
    if (!ring) return refused(error, Errc::invalid_argument, "rawbpf_ring_open: no place for the ring");
    const Map *found = object->object.find_map(text_of(map));
    if (!found) return no_such(error, object, "map", text_of(map), object->spec.maps);
    if (found->type() != BPF_MAP_TYPE_RINGBUF)
        return refused(error, Errc::invalid_argument, format("{}: map {} is no ring buffer", object->spec.name, map));
    Result<RingBuffer> opened = RingBuffer::open(found->fd(), found->max_entries());
    if (!opened) return failed(opened, error);
    *ring = new rawbpf_ring{std::move(*opened)};
    return RAWBPF_OK;
}

int rawbpf_ring_read(rawbpf_ring *ring, int timeout_ms, int (*handle)(const void *, size_t, void *), void *context,
                     rawbpf_error *error) {
    if (!ring || !handle)
        return refused(error, Errc::invalid_argument, "rawbpf_ring_read: no ring, or nobody to give records to");
    const auto pass_on = [&](Bytes record) { return handle(record.data(), record.size(), context) == 0; };
    constexpr size_t kMost = INT32_MAX; // what is returned is an int
    size_t count = ring->ring.consume(pass_on, kMost);
    if (count == 0) {
        const Result<bool> ready = ring->ring.wait(timeout_ms);
        if (!ready) return failed(ready, error);
        count = ring->ring.consume(pass_on, kMost);
    }
    return static_cast<int>(count);
}

int rawbpf_ring_fd(const rawbpf_ring *ring) { return ring ? ring->ring.poll_fd() : RAWBPF_INVALID_ARGUMENT; }
void rawbpf_ring_close(rawbpf_ring *ring) { delete ring; }
