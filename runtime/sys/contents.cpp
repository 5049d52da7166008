// Lists show their first items and say how many there are: [r6 = r1; r2 = 0; ... 61 in all].
#include "runtime/sys/contents.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <span>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "asm/helpers.h"
#include "asm/insn.h"
#include "asm/print.h"
#include "runtime/base/format.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {
namespace {

constexpr size_t kMostRead = 16 << 20; // a program of a million instructions is half of it
constexpr std::string_view kNewLine = "\n        ";

uint64_t number(Bytes bytes) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value)); // little-endian, as all that rawbpf runs on
    return value;
}

// How many bytes it could read, or -errno.
long by_process_vm_readv(uint64_t address, std::span<std::byte> out) {
    // A part for each page: those before the first that isn't there are read.
    constexpr size_t kMostParts = 1024; // IOV_MAX
    const size_t page = page_size();
    iovec to{out.data(), out.size()};
    std::vector<iovec> from;
    for (uint64_t at = address, end = address + out.size(); at < end;) {
        const uint64_t next = from.size() + 1 == kMostParts ? end : std::min<uint64_t>(end, (at / page + 1) * page);
        from.push_back({reinterpret_cast<void *>(at), static_cast<size_t>(next - at)});
        at = next;
    }
    const long pid = direct(__NR_getpid);
    return direct(__NR_process_vm_readv, static_cast<uint64_t>(pid), reg(&to), 1, reg(from.data()), from.size(), 0);
}

} // namespace

std::string list_text(size_t count, std::string_view between, const Bounds &bounds,
                      const std::function<std::string(size_t)> &item) {
    std::string out = "[";
    for (size_t i = 0; i < count && i < bounds.items; ++i) append(out, "{}{}", i ? between : "", item(i));
    if (count > bounds.items) append(out, "{}... {} in all", between, count);
    return out + "]";
}

std::vector<std::byte> own_memory(uint64_t address, size_t size) {
    std::vector<std::byte> out(std::min(size, kMostRead));
    if (address == 0) out.clear();
    if (out.empty()) return out;
    long n = by_process_vm_readv(address, out);
    // Kept from it: containers of old Docker, and emulators of a processor, which don't have it.
    if (n == -ENOSYS || n == -EPERM) n = own_memory_by_pipe(address, out);
    out.resize(n < 0 ? 0 : static_cast<size_t>(n));
    return out;
}

long own_memory_by_pipe(uint64_t address, std::span<std::byte> out) {
    int ends[2];
    if (const long failed = direct(__NR_pipe2, reg(ends), O_CLOEXEC | O_NONBLOCK); failed < 0) return failed;
    const size_t page = page_size(); // what every pipe holds
    size_t done = 0;
    long error = 0;
    while (done < out.size() && error == 0) {
        const size_t part = std::min(out.size() - done, page - static_cast<size_t>((address + done) % page));
        const long n = direct(__NR_write, static_cast<uint64_t>(ends[1]), address + done, part);
        const long back =
            n <= 0 ? n : direct(__NR_read, static_cast<uint64_t>(ends[0]), reg(out.data() + done), static_cast<uint64_t>(n));
        if (back > 0) done += static_cast<size_t>(back);
        if (back < static_cast<long>(part)) error = back < 0 ? back : -EFAULT;
    }
    for (const int end : ends) direct(__NR_close, static_cast<uint64_t>(end));
    return done ? static_cast<long>(done) : error;
}

std::string own_string(uint64_t address, size_t most) {
    const std::vector<std::byte> bytes = own_memory(address, most);
    const char *text = reinterpret_cast<const char *>(bytes.data());
    return std::string(text, strnlen(text, bytes.size()));
}

std::string escaped(std::string_view text, size_t most) {
    std::string out;
    for (const char c : text.substr(0, most)) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            append(out, "\\{}", c);
        else if (byte < 0x20 || byte >= 0x7f)
            append(out, "\\x{:02x}", byte);
        else
            out += c;
    }
    return out;
}

std::string quoted(std::string_view text, size_t most) {
    return format("\"{}\"{}", escaped(text, most), text.size() > most ? "..." : "");
}

std::string bytes_text(Bytes bytes, const Bounds &bounds) {
    const size_t size = bytes.size();
    if (size == 1 || size == 2 || size == 4 || size == 8) return format("[{}]", number(bytes));
    return quoted({reinterpret_cast<const char *>(bytes.data()), size}, bounds.bytes);
}

std::string numbers_text(Bytes bytes, size_t size, bool hex, const Bounds &bounds) {
    return list_text(bytes.size() / size, ", ", bounds, [&](size_t i) {
        const uint64_t value = number(bytes.subspan(i * size, size));
        return hex ? format("{:#x}", value) : format("{}", value);
    });
}

std::string records_text(Bytes bytes, size_t record, const Bounds &bounds) {
    return list_text(record == 0 ? 0 : bytes.size() / record, ", ", bounds, [&](size_t i) {
        std::string text = numbers_text(bytes.subspan(i * record, record), sizeof(uint32_t), false, kAll);
        text.front() = '{', text.back() = '}';
        return text;
    });
}

std::string instructions_text(Bytes bytes, const Bounds &bounds) {
    std::vector<Insn> insns(bytes.size() / sizeof(Insn));
    if (!insns.empty()) std::memcpy(insns.data(), bytes.data(), insns.size() * sizeof(Insn));
    std::vector<size_t> begins; // a wide one is two
    for (size_t i = 0; i < insns.size(); i += is_wide(insns[i]) ? 2 : 1) begins.push_back(i);
    const auto text = [&](size_t i) {
        constexpr uint8_t kCall = 0x85;
        const Insn &insn = insns[begins[i]];
        const HelperInfo *helper = insn.code == kCall && insn.src == 0 ? find_helper(insn.imm) : nullptr;
        const std::string called = helper ? format("bpf_{}", helper->name) : std::string();
        PrintNames names;
        names.call = called;
        std::string out;
        append_insn(out, std::span(insns).subspan(begins[i]), {}, names);
        return out;
    };
    if (!bounds.lines) return list_text(begins.size(), "; ", bounds, text);
    std::string out = "[";
    for (size_t i = 0; i < begins.size(); ++i) append(out, "{}{:>5}: {}", kNewLine, begins[i], text(i));
    return out + "]";
}

std::string log_text(std::string_view log, const Bounds &bounds) {
    if (!bounds.lines) return quoted(log, bounds.text);
    std::string out = "[";
    while (!log.empty()) {
        const std::string_view line = log.substr(0, log.find('\n'));
        append(out, "{}{}", kNewLine, escaped(line, bounds.text));
        log.remove_prefix(std::min(line.size() + 1, log.size()));
    }
    return out + "]";
}

std::string btf_text(Bytes bytes) {
    // __u16 magic; __u8 version, flags; __u32 hdr_len, type_off, type_len, str_off, str_len
    constexpr size_t kHeader = 24, kTypes = 12, kStrings = 20;
    if (bytes.size() < kHeader) return bytes_text(bytes, kFew);
    return format("{{types={} bytes, strings={} bytes}}", load<uint32_t>(bytes.data() + kTypes),
                  load<uint32_t>(bytes.data() + kStrings));
}

} // namespace rawbpf::inline v0::sys
