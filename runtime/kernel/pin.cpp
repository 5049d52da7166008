// A pin is a file of a bpf file system (mount -t bpf) that holds a reference: the program or map lives until somebody unlinks it.
// All or nothing: an object of which half is pinned would be worse than none, so a failure takes back what was done.
#include "runtime/kernel/pin.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/privileges.h"

namespace rawbpf::inline v0 {
namespace {

constexpr uint64_t kBpfFileSystem = 0xcafe4a11; // BPF_FS_MAGIC

/// What was made so far; taken back in reverse unless kept.
class Undo {
  public:
    ~Undo() {
        for (auto it = files_.rbegin(); it != files_.rend(); ++it) (void)sys::remove_file(*it);
        for (auto it = directories_.rbegin(); it != directories_.rend(); ++it) (void)sys::remove_directory(*it);
    }
    Result<void> directory(const std::string &path) {
        Result<void> made = sys::make_directory(path, 0700);
        if (made) directories_.push_back(path);
        if (!made && made.error().os != EEXIST) return made;
        return {};
    }
    Result<void> pin(int fd, std::string path, std::string_view name) {
        path += '/';
        for (char c : name) path += c == '.' || c == '/' ? '_' : c; // the file system refuses dots
        TRY_IN(sys::obj_pin(fd, path), "pinning {}", path);
        files_.push_back(std::move(path));
        return {};
    }
    void keep() {
        files_.clear();
        directories_.clear();
    }

  private:
    std::vector<std::string> files_, directories_;
};

} // namespace

Result<void> pin_object(const LoadedObject &object, const std::string &directory) {
    const std::string maps = directory + "/maps";
    Undo undo;
    TRY(undo.directory(directory));
    if (const Result<uint64_t> magic = sys::file_system_magic(directory); magic && *magic != kBpfFileSystem)
        return Unexpected(make_error(Errc::invalid_argument, format("{} is in no bpf file system", directory),
                                     "mount -t bpf bpf /sys/fs/bpf, and a directory in it"));
    for (const Program &program : object.programs) TRY(undo.pin(program.fd.get(), directory, program.name));
    if (!object.maps.empty()) TRY(undo.directory(maps));
    for (const Map &map : object.maps) TRY(undo.pin(map.fd(), maps, map.name()));
    undo.keep();
    return {};
}

} // namespace rawbpf::inline v0
