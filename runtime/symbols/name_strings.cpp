// Names, read where they lie. A profile asks for a few hundred of a library's 50,000 names: one pread(2) each (about 0.5 us) is
// cheaper than 5 MB of strings in memory, and unlike a mapping it can't fault.
#include "runtime/symbols/name_strings.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/sys/file.h"

namespace rawbpf::inline v0::symbols {
namespace {
// A pointer, as a value with a destructor would ask the C library to call it at a thread's end, and that brings its loader of
// shared objects into static programs.
thread_local Error *failure = nullptr;
} // namespace

std::optional<Error> read_failure() {
    const std::unique_ptr<Error> taken(std::exchange(failure, nullptr));
    return taken ? std::optional(std::move(*taken)) : std::nullopt;
}

NameStrings NameStrings::in_file(std::shared_ptr<Fd> fd, uint64_t offset, uint64_t size) {
    NameStrings strings;
    strings.fd_ = std::move(fd);
    strings.offset_ = offset;
    strings.size_ = size;
    return strings;
}

NameStrings NameStrings::in_memory(Bytes bytes) {
    NameStrings strings;
    strings.memory_ = bytes;
    strings.size_ = bytes.size();
    return strings;
}

NameStrings NameStrings::owned(Bytes copied) {
    auto copy = std::make_shared<const std::vector<std::byte>>(copied.begin(), copied.end());
    NameStrings strings = in_memory(*copy);
    strings.copy_ = std::move(copy);
    return strings;
}

std::string NameStrings::at(uint32_t offset) const {
    if (offset >= size_) return {};
    size_t left = std::min<uint64_t>(size_ - offset, kMaxName);
    if (!fd_) {
        const char *text = reinterpret_cast<const char *>(memory_.data()) + offset;
        return {text, strnlen(text, left)};
    }
    std::string text;
    for (size_t wanted = 256;; wanted *= 4) { // most names fit into the first read
        text.resize(std::min(wanted, left));
        Result<size_t> n = sys::pread(fd_->get(), text.data(), text.size(), offset_ + offset);
        if (!n) {
            if (!failure) failure = new Error(in_context(std::move(n).error(), "reading a function's name"));
            return {};
        }
        text.resize(*n);
        if (size_t end = text.find('\0'); end != std::string::npos) {
            text.resize(end);
            return text;
        }
        if (*n < wanted || wanted >= left) return text;
    }
}

} // namespace rawbpf::inline v0::symbols
