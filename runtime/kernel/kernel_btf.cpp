// The running kernel's own BTF: 5 MB of types in /sys/kernel/btf/vmlinux, the target of CO-RE relocations.
//
// Since Linux 6.16 the file can be mapped (privately and read-only; kernel/bpf/sysfs_btf.c): these are the kernel's own pages,
// nothing is copied, and only the pages that are read are touched. Before, it has to be read, into anonymous pages of exactly
// its size, so that the memory is free again when the last user drops the BTF. It is opened when a relocation first needs it,
// and shared while anybody holds it. A file with another kernel's BTF, raw or in an ELF section .BTF, works too.
#include "runtime/kernel/loader.h"

#include <cerrno>
#include <optional>

#include "runtime/base/fail.h"
#include "runtime/base/remembering.h"
#include "runtime/elf/elf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/kernel_file.h"

namespace rawbpf::inline v0 {

struct KernelBtf {
    sys::Mapping bytes;
    std::optional<btf::Btf> btf; // over the bytes
};

namespace {

constexpr const char *kVmlinux = "/sys/kernel/btf/vmlinux";
Result<sys::Mapping> map_or_read(const std::string &path) {
    {
        sys::Because why("the kernel's own types, mapped where the kernel allows it (6.16)");
        if (Result<sys::Mapping> mapped = sys::map_kernel_file(path)) return mapped;
    }
    sys::Because why("room for the kernel's own types, which this kernel doesn't let us map");
    return sys::read_into_mapping(path);
}

} // namespace

Result<std::shared_ptr<const btf::Btf>> kernel_btf(const std::string &path) {
    const Remembering lock;
    static std::weak_ptr<const btf::Btf> shared; // of the running kernel
    const bool own = path.empty();
    if (own)
        if (std::shared_ptr<const btf::Btf> alive = shared.lock()) return alive;
    const std::string &file = own ? std::string(kVmlinux) : path;
    Result<sys::Mapping> mapping = map_or_read(file);
    if (!mapping) {
        Error error = std::move(mapping).error();
        if (own && error.os == ENOENT) {
            error.kind = Errc::unsupported;
            error.hint = sys::absent_hint(kVmlinux, "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF, 5.4)");
            error.hint += "; or give the kernel's BTF as a file";
        }
        return Unexpected(in_context(std::move(error), "the kernel's BTF"));
    }
    auto holder = std::make_shared<KernelBtf>();
    holder->bytes = std::move(*mapping);
    Bytes bytes = holder->bytes.bytes();
    if (bytes.size() > 4 && load<uint32_t>(bytes.data()) == 0x464c457f) { // "\x7fELF": a vmlinux or a .btf.o
        elf::Elf image = TRY(elf::Elf::parse(bytes, file));
        const elf::Section *section = image.find_section(".BTF");
        if (!section) return fail(Errc::bad_input, "{}: no section .BTF", file);
        bytes = image.contents(*section);
    }
    holder->btf = TRY(btf::Btf::parse(bytes, own ? "vmlinux" : file));
    std::shared_ptr<const btf::Btf> out(holder, &*holder->btf);
    if (own) shared = out;
    return out;
}

} // namespace rawbpf::inline v0
