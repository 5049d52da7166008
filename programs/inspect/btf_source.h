// Where BTF comes from: a file, the running kernel, one of its modules, or an object that somebody loaded.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/btf/btf.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::inspect {

/// BTF with the bytes that it lies in, and its base's.
class BtfSource {
  public:
    [[nodiscard]] const btf::Btf &btf() const { return *btf_; }
    /// Of a split BTF: what it builds on; else nullptr.
    [[nodiscard]] const btf::Btf *base() const { return base_ && btf_->first_id() > 1 ? base_->get() : nullptr; }

    /// A raw .btf file or an ELF file (vmlinux, object, .ko) with a section .BTF; "-" is standard input. `base`: of a split BTF;
    /// the running kernel's is taken where a file needs one and none is given. Errors: not found, bad_input.
    [[nodiscard]] static Result<BtfSource> of_file(const std::string &path, const std::string &base = {});
    /// "vmlinux", or a module's name. Errors: not_found, unsupported (a kernel without BTF, 5.4; modules 5.11).
    [[nodiscard]] static Result<BtfSource> of_kernel(const std::string &name);
    /// BTF that is loaded, by id: programs', the kernel's and modules'. Needs CAP_SYS_ADMIN.
    [[nodiscard]] static Result<BtfSource> of_id(uint32_t id);

    BtfSource(BtfSource &&) = default;
    BtfSource &operator=(BtfSource &&) = default;

  private:
    BtfSource() = default;
    [[nodiscard]] Result<void> parse(Bytes bytes, const std::string &name, const std::string &base);
    [[nodiscard]] Result<void> use_base(const std::string &path);

    // On the heap, so that a move leaves the bytes where the Btf looks for them.
    std::unique_ptr<sys::Mapping> mapping_;
    std::unique_ptr<std::string> text_;
    std::unique_ptr<std::shared_ptr<const btf::Btf>> base_;
    std::optional<btf::Btf> btf_;
};

} // namespace rawbpf::inline v0::inspect
