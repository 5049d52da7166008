// Reads BTF from all its sources.
//
//      FILE             .BTF of an ELF file, or the bytes alone (magic eB9F)
//      vmlinux          /sys/kernel/btf/vmlinux
//      module NAME      /sys/kernel/btf/NAME, split: its ids go on where vmlinux ends
//      ID               BPF_BTF_GET_FD_BY_ID and BPF_OBJ_GET_INFO_BY_FD, twice: how long it is, then the bytes
//
// A file doesn't say whether it is split, but its first string does: BTF without a base begins with an empty string. So a file
// whose strings begin differently, or that refers to ids it doesn't have, gets the running kernel's BTF as its base, unless
// the user named one.
#include "programs/inspect/btf_source.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/fail.h"
#include "runtime/elf/elf.h"
#include "runtime/kernel/loader.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/kernel_file.h"

namespace rawbpf::inline v0::inspect {

namespace {

Result<Bytes> btf_bytes(Bytes bytes, const std::string &name) {
    if (bytes.size() < 4 || std::memcmp(bytes.data(),
                                        "\x7f"
                                        "ELF",
                                        4) != 0)
        return bytes;
    elf::Elf image = TRY(elf::Elf::parse(bytes, name));
    const elf::Section *section = image.find_section(".BTF");
    if (!section)
        return Unexpected(make_error(Errc::bad_input, format("{}: there is no section .BTF in it", name),
                                     "BPF objects get one from clang -g; a vmlinux from CONFIG_DEBUG_INFO_BTF"));
    return image.contents(*section);
}

/// Whether the string section begins with a name: then it goes on where a base's ends.
bool looks_split(Bytes bytes) {
    if (bytes.size() < 24) return false;
    auto word = [&](size_t at) {
        const uint32_t value = load<uint32_t>(bytes.data() + at);
        return load<uint16_t>(bytes.data()) == 0xeb9f ? value : byte_swap(value);
    };
    const uint64_t strings = uint64_t{word(4)} + word(16);
    return word(20) > 0 && strings < bytes.size() && bytes[strings] != std::byte{0};
}

} // namespace

Result<void> BtfSource::use_base(const std::string &path) {
    base_ = std::make_unique<std::shared_ptr<const btf::Btf>>(TRY_IN(kernel_btf(path), "its base"));
    return {};
}

Result<void> BtfSource::parse(Bytes bytes, const std::string &name, const std::string &base) {
    bytes = TRY(btf_bytes(bytes, name));
    if (!base.empty() || looks_split(bytes)) TRY_IN(use_base(base), "{}", name);
    btf_ = TRY(btf::Btf::parse(bytes, name, base_ ? base_->get() : nullptr));
    return {};
}

Result<BtfSource> BtfSource::of_file(const std::string &path, const std::string &base) {
    BtfSource out;
    Bytes bytes;
    if (path == "-") {
        out.text_ = std::make_unique<std::string>(TRY_IN(sys::read_file("/dev/stdin"), "standard input"));
        bytes = bytes_of(*out.text_);
    } else {
        // Files in /sys/kernel/btf can be mapped since Linux 6.16 (vmlinux) or not at all (modules).
        struct stat st = TRY(sys::stat_file(path));
        if (S_ISDIR(st.st_mode)) return fail_os(EISDIR, "{}", path);
        Result<sys::Mapping> mapped = sys::map_file(path);
        if (!mapped && S_ISREG(st.st_mode)) mapped = sys::read_into_mapping(path);
        if (mapped) {
            out.mapping_ = std::make_unique<sys::Mapping>(std::move(*mapped));
            bytes = out.mapping_->bytes();
        } else {
            out.text_ = std::make_unique<std::string>(TRY(sys::read_file(path)));
            bytes = bytes_of(*out.text_);
        }
    }
    TRY(out.parse(bytes, path == "-" ? "standard input" : path, base));
    return out;
}

Result<BtfSource> BtfSource::of_kernel(const std::string &name) {
    BtfSource out;
    if (name == "vmlinux") {
        TRY(out.use_base({}));
        out.btf_ = **out.base_;
        // The Btf is its own; the holder of the bytes stays in base_ without being a base.
        return out;
    }
    if (name.empty() || name.find('/') != std::string::npos || name.starts_with('.'))
        return fail(Errc::invalid_argument, "{}: not the name of a module", name);
    const std::string path = "/sys/kernel/btf/" + name;
    if (!sys::exists(path)) {
        if (const std::string hidden = sys::hidden_below(path); !hidden.empty())
            return fail(Errc::unsupported, "module {}: its BTF can't be looked for: {}", name, hidden);
        const bool loaded = sys::exists("/sys/module/" + name);
        return Unexpected(make_error(Errc::not_found,
                                     loaded ? format("module {} has no BTF", name) : format("there is no module {}", name),
                                     loaded ? "it was built without BTF (CONFIG_DEBUG_INFO_BTF_MODULES, 5.11), or is part of "
                                              "the kernel: rawbpf btf dump vmlinux"
                                            : "ls /sys/kernel/btf shows those that are loaded and have BTF"));
    }
    sys::Because why("the module's own types; they build on the kernel's");
    out.text_ = std::make_unique<std::string>(TRY(sys::read_file(path)));
    TRY(out.use_base({}));
    out.btf_ = TRY(btf::Btf::parse(bytes_of(*out.text_), name, out.base_->get()));
    return out;
}

Result<BtfSource> BtfSource::of_id(uint32_t id) {
    BtfSource out;
    Fd fd = TRY_IN(sys::fd_by_id(sys::ObjectKind::btf, id), "BTF {}", id);
    char name[64] = {};
    sys::BtfInfo info;
    info.name = sys::reg(name);
    info.name_len = sizeof name;
    TRY_IN(sys::obj_get_info(fd.get(), &info, sizeof info), "BTF {}", id);
    if (info.kernel_btf && std::string_view(name, strnlen(name, sizeof name)) == "vmlinux") // mapped rather than copied
        if (Result<BtfSource> kernel = of_kernel("vmlinux")) return kernel;
    const uint32_t size = info.btf_size;
    out.text_ = std::make_unique<std::string>(size, '\0');
    info = {};
    info.btf = sys::reg(out.text_->data());
    info.btf_size = size;
    info.name = sys::reg(name);
    info.name_len = sizeof name;
    TRY_IN(sys::obj_get_info(fd.get(), &info, sizeof info), "BTF {}", id);
    name[sizeof name - 1] = '\0';
    const std::string label = name[0] ? std::string(name) : format("BTF {}", id);
    if (info.kernel_btf && label != "vmlinux") TRY(out.use_base({}));
    out.btf_ = TRY(btf::Btf::parse(bytes_of(*out.text_), label, out.base_ ? out.base_->get() : nullptr));
    return out;
}

} // namespace rawbpf::inline v0::inspect
