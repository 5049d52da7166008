// Names into ids and addresses of the running kernel.
//
//      call f       85 | src=2 BPF_PSEUDO_KFUNC_CALL | off 0 | imm = BTF id of FUNC f
//      r1 = &var    18 | src=3 BPF_PSEUDO_BTF_ID     | off 0 | imm = BTF id of VAR var      then 0 | imm = 0
//      r1 = &sym    18 | src=0                       | off 0 | imm = address, low half      then 0 | imm = high half
//
// A weak symbol that isn't there becomes address 0, which programs compare with; a weak function becomes a call to an
// impossible helper, which the verifier accepts in code that can't be reached.
#include "runtime/kernel/kernel_symbols.h"

#include <charconv>
#include <fcntl.h>

#include "runtime/kernel/loader.h"
#include "runtime/object/core.h"
#include "runtime/sys/file.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0 {
namespace {

// The BTF of the modules that are loaded, each building on the kernel's; read only when asked for. One that can't be read is
// passed over: a module whose BTF is broken (files of 24 bytes have been seen) must not keep every object from loading.
class ModuleTypes {
  public:
    ModuleTypes(const std::string &btf_path, const btf::Btf *base) : base_(base), own_(btf_path.empty()) {}

    std::span<const btf::Btf *const> get() {
        if (own_ && pointers_.empty()) read();
        return pointers_;
    }

  private:
    void read() {
        constexpr const char *kDirectory = "/sys/kernel/btf";
        for (const std::string &name : sys::list_directory(kDirectory).value_or(std::vector<std::string>{})) {
            if (name == "vmlinux") continue;
            Result<std::string> text = sys::read_file(format("{}/{}", kDirectory, name));
            if (!text) continue;
            auto bytes = std::make_unique<std::string>(std::move(*text));
            Result<btf::Btf> types = btf::Btf::parse(bytes_of(*bytes), name, base_);
            if (!types) continue;
            texts_.push_back(std::move(bytes));
            types_.push_back(std::make_unique<btf::Btf>(std::move(*types)));
            pointers_.push_back(types_.back().get());
        }
    }

    const btf::Btf *base_;
    bool own_;
    std::vector<std::unique_ptr<std::string>> texts_;
    std::vector<std::unique_ptr<btf::Btf>> types_;
    std::vector<const btf::Btf *> pointers_;
};

} // namespace

Result<const btf::Btf *> KernelSymbols::target() {
    if (!target_) target_ = TRY(kernel_btf(*btf_path_));
    return target_.get();
}

Result<void> KernelSymbols::relocate(ObjectSpec &spec) {
    if (!needs_core(spec)) return {};
    CoreTargets targets;
    targets.kernel = TRY_IN(target(), "CO-RE relocations");
    ModuleTypes modules(*btf_path_, targets.kernel);
    targets.modules = [](void *context) { return static_cast<ModuleTypes *>(context)->get(); };
    targets.context = &modules;
    TRY(relocate_core(spec, targets));
    return {};
}

Result<void> KernelSymbols::patch_call(Insn &call, const Fixup &fixup) {
    const btf::Btf *kernel = TRY_IN(target(), "kernel function {}", fixup.symbol);
    std::optional<btf::TypeId> id = kernel->find(fixup.symbol, btf::Kind::func);
    if (!id && !fixup.weak)
        return fail(Errc::not_found, "kernel function {}: not in this kernel (modules aren't searched)", fixup.symbol);
    call.src = id ? BPF_PSEUDO_KFUNC_CALL : 0;
    call.off = 0;
    call.imm = id ? static_cast<int32_t>(*id) : kPoisonHelper;
    return {};
}

Result<void> KernelSymbols::patch_address(Insn &low, Insn &high, const Fixup &fixup) {
    low.src = 0;
    low.imm = high.imm = 0;
    if (fixup.type != 0) {
        const btf::Btf *kernel = TRY_IN(target(), "kernel variable {}", fixup.symbol);
        if (std::optional<btf::TypeId> id = kernel->find(fixup.symbol, btf::Kind::var)) {
            low.src = BPF_PSEUDO_BTF_ID;
            low.imm = static_cast<int32_t>(*id);
            return {};
        }
        if (fixup.weak) return {};
        return fail(Errc::not_found, "kernel variable {}: not in the kernel's BTF, which lists per-CPU variables only",
                    fixup.symbol);
    }
    Result<uint64_t> address = kernel_symbol_address(fixup.symbol);
    if (!address && fixup.weak && address.error().kind == Errc::not_found) return {};
    uint64_t value = TRY(std::move(address));
    low.imm = static_cast<int32_t>(value);
    high.imm = static_cast<int32_t>(value >> 32);
    return {};
}

Result<uint32_t> KernelSymbols::attach_target(const ProgramSpec &program) {
    if (program.type == BPF_PROG_TYPE_EXT)
        return fail(Errc::unsupported, "an extension (freplace) needs the program that it replaces a function of");
    if (program.attach_target.empty())
        return fail(Errc::invalid_argument, "section {} doesn't say which kernel function it is for", program.section);
    const char *prefix = "";
    btf::Kind kind = btf::Kind::func;
    if (program.type == BPF_PROG_TYPE_LSM) prefix = "bpf_lsm_";
    if (program.expected_attach_type == BPF_TRACE_ITER) prefix = "bpf_iter_";
    if (program.expected_attach_type == BPF_TRACE_RAW_TP) {
        prefix = "btf_trace_";
        kind = btf::Kind::typedef_;
    }
    const btf::Btf *kernel = TRY(target());
    std::optional<btf::TypeId> id = kernel->find(prefix + program.attach_target, kind);
    if (!id) return fail(Errc::not_found, "{}{} is not in the kernel's BTF", prefix, program.attach_target);
    return *id;
}

Result<uint64_t> kernel_symbol_address(std::string_view name) {
    // "ffffffff81000000 T _stext\n", with "\t[module]" at the end for modules. Read in pieces: the whole is 10 MB.
    constexpr const char *kPath = "/proc/kallsyms";
    Fd fd = TRY(sys::open(kPath, O_RDONLY));
    std::string buffer(64 << 10, '\0');
    size_t kept = 0;
    for (;;) {
        size_t n = TRY_IN(sys::read(fd.get(), buffer.data() + kept, buffer.size() - kept), "{}", kPath);
        if (n == 0) break;
        std::string_view text(buffer.data(), kept + n);
        for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
            std::string_view line = text.substr(0, end);
            size_t blank = line.find(' ');
            if (blank > 16 || line.size() < blank + 3) continue; // npos is more than 16, too
            std::string_view symbol = line.substr(blank + 3);
            if (size_t tab = symbol.find('\t'); tab != std::string_view::npos) symbol = symbol.substr(0, tab);
            if (symbol != name) continue;
            uint64_t address = 0;
            (void)std::from_chars(line.data(), line.data() + blank, address, 16);
            if (address == 0)
                return Unexpected(make_error(Errc::permission, format("kernel symbol {}: its address is hidden", name),
                                             "needs CAP_SYSLOG, or a lower /proc/sys/kernel/kptr_restrict"));
            return address;
        }
        kept = text.size();
        if (kept == buffer.size()) return fail(Errc::bad_input, "{}: a line of more than {} bytes", kPath, kept);
        std::copy(text.begin(), text.end(), buffer.begin());
    }
    return fail(Errc::not_found, "kernel symbol {}: not in this kernel", name);
}

} // namespace rawbpf::inline v0
