// A pin is a file in a bpf file system (mount -t bpf) that holds a reference: the program or map lives until somebody unlinks
// the file. Pinning is all or nothing, since half an object is worse than none: a failure removes the pins that were made
// before it.
#include "runtime/kernel/pin.h"

#include <cerrno>
#include <utility>

#include "runtime/base/fail.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/privileges.h"

namespace rawbpf::inline v0 {
namespace {

constexpr uint64_t kBpfFileSystem = 0xcafe4a11; // BPF_FS_MAGIC

} // namespace

Pins::Pins(Pins &&other) noexcept
    : files_(std::exchange(other.files_, {})), directories_(std::exchange(other.directories_, {})) {}

Pins &Pins::operator=(Pins &&other) noexcept {
    if (this != &other) {
        take_back();
        add(std::move(other));
    }
    return *this;
}

void Pins::take_back() noexcept {
    for (auto it = files_.rbegin(); it != files_.rend(); ++it) (void)sys::remove_file(*it);
    for (auto it = directories_.rbegin(); it != directories_.rend(); ++it) (void)sys::remove_directory(*it);
    keep();
}

Result<void> Pins::directory(const std::string &path) {
    Result<void> made = sys::make_directory(path, 0700);
    if (made) directories_.push_back(path);
    if (!made && made.error().os != EEXIST) return made;
    return {};
}

Result<void> Pins::pin(int fd, const std::string &directory, std::string_view name) {
    std::string path = directory + '/';
    for (char c : name) path += c == '.' || c == '/' ? '_' : c;
    TRY_IN(sys::obj_pin(fd, path), "pinning {}", path);
    files_.push_back(std::move(path));
    return {};
}

void Pins::add(Pins &&other) {
    for (std::string &file : other.files_) files_.push_back(std::move(file));
    for (std::string &directory : other.directories_) directories_.push_back(std::move(directory));
    other.keep();
}

void Pins::keep() {
    files_.clear();
    directories_.clear();
}

Result<void> pin_object(const LoadedObject &object, const std::string &directory, Pins &into) {
    const std::string maps = directory + "/maps";
    Pins pins;
    TRY(pins.directory(directory));
    if (const Result<uint64_t> magic = sys::file_system_magic(directory); magic && *magic != kBpfFileSystem)
        return Unexpected(make_error(Errc::invalid_argument, format("{} isn't on a bpf file system", directory),
                                     "mount one (mount -t bpf bpf /sys/fs/bpf) and use a path in it"));
    for (const Program &program : object.programs) TRY(pins.pin(program.fd.get(), directory, program.name));
    if (!object.maps.empty()) TRY(pins.directory(maps));
    for (const Map &map : object.maps) TRY(pins.pin(map.fd(), maps, map.name()));
    into.add(std::move(pins));
    return {};
}

Result<void> pin_object(const LoadedObject &object, const std::string &directory) {
    Pins pins;
    TRY(pin_object(object, directory, pins));
    pins.keep();
    return {};
}

} // namespace rawbpf::inline v0
