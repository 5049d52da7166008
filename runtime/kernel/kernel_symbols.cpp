// Resolves names to ids and addresses of the running kernel.
//
//      call f       85 | src=2 BPF_PSEUDO_KFUNC_CALL | off n | imm = BTF id of FUNC f        n: place in fd_array, 0: the kernel
//      r1 = &var    18 | src=3 BPF_PSEUDO_BTF_ID     | off 0 | imm = BTF id of VAR var       then 0 | imm = module's BTF fd, or 0
//      r1 = &sym    18 | src=0                       | off 0 | imm = address, low half       then 0 | imm = high half
//
// A weak symbol that doesn't exist becomes address 0, which programs compare with. A weak function that doesn't exist becomes
// a call to an impossible helper, which the verifier accepts in code that can't be reached; its number says which extern it
// was (libbpf's convention: 2002000000 plus the position in the list of externs).
#include "runtime/kernel/kernel_symbols.h"

#include <algorithm>
#include <charconv>
#include <fcntl.h>

#include "asm/machines.h"
#include "runtime/base/fail.h"
#include "runtime/btf/compare.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/near_names.h"
#include "runtime/object/core.h"
#include "runtime/sys/facts.h"
#include "runtime/sys/file.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0 {
namespace {

constexpr int32_t kPoisonFunction = 2002000000;
constexpr const char *kSymbols = "/proc/kallsyms";

// Calls visit(address, name) for each line of /proc/kallsyms: "ffffffff81000000 T _stext\n", with "\t[module]" at the end for
// modules. Read in pieces: the whole is 10 MB.
template <class Visit> Result<void> each_symbol(Visit visit) {
    Fd fd = TRY(sys::open(kSymbols, O_RDONLY));
    std::string buffer(64 << 10, '\0');
    size_t kept = 0;
    bool any = false;
    for (;;) {
        size_t n = TRY_IN(sys::read(fd.get(), buffer.data() + kept, buffer.size() - kept), "{}", kSymbols);
        if (n == 0 && !any)
            return fail(Errc::bad_input, "{} is empty, so rawbpf can't see which symbols the kernel has", kSymbols);
        if (n == 0) return {};
        any = true;
        std::string_view text(buffer.data(), kept + n);
        for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
            std::string_view line = text.substr(0, end);
            size_t blank = line.find(' ');
            if (blank > 16 || line.size() < blank + 3) continue; // npos is more than 16, too
            std::string_view symbol = line.substr(blank + 3);
            if (size_t tab = symbol.find('\t'); tab != std::string_view::npos) symbol = symbol.substr(0, tab);
            // Static data of a kernel built with LTO carries a suffix.
            if (line[blank + 1] == 'd')
                if (size_t suffix = symbol.find(".llvm."); suffix != std::string_view::npos) symbol = symbol.substr(0, suffix);
            visit(line.substr(0, blank), symbol);
        }
        kept = text.size();
        if (kept == buffer.size()) return fail(Errc::bad_input, "{}: a line of more than {} bytes", kSymbols, kept);
        std::copy(text.begin(), text.end(), buffer.begin());
    }
}

// The addresses of these symbols. One that several symbols of different addresses share can't be told.
Result<void> find_addresses(std::map<std::string, Result<uint64_t>, std::less<>> &wanted) {
    std::map<std::string_view, uint64_t> found;
    for (auto &[name, address] : wanted) {
        address = fail(Errc::not_found, "kernel symbol {}: not in this kernel", name);
        found[name] = 0;
    }
    TRY(each_symbol([&](std::string_view hex, std::string_view symbol) {
        const auto it = found.find(symbol);
        if (it == found.end()) return;
        uint64_t value = 0;
        (void)std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
        Result<uint64_t> &answer = wanted.find(symbol)->second;
        if (value == 0)
            answer = Unexpected(make_error(Errc::permission, format("kernel symbol {}: its address is hidden", symbol),
                                           sys::hidden_addresses_hint(sys::facts())));
        else if (it->second != 0 && it->second != value)
            answer = fail(Errc::bad_input, "kernel symbol {}: several symbols have this name, at {:#x} and at {:#x}", symbol,
                          it->second, value);
        else
            answer = it->second = value;
    }));
    return {};
}

} // namespace

Result<const btf::Btf *> KernelSymbols::kernel() {
    if (given_) return given_;
    if (!kernel_) kernel_ = TRY(kernel_btf());
    if (!modules_) modules_.emplace(kernel_.get());
    return kernel_.get();
}

Result<const btf::Btf *> KernelSymbols::local() {
    if (spec_->btf.empty()) return nullptr;
    if (!local_) local_ = TRY(btf::Btf::parse(spec_->btf, format("{}: .BTF", spec_->name)));
    return &*local_;
}

Result<void> KernelSymbols::relocate(ObjectSpec &spec) {
    if (!has_core_relocations(spec)) return {};
    if (!needs_core(spec)) { // ids of the object's own types
        TRY(relocate_core(spec, CoreTargets{}));
        return {};
    }
    CoreTargets targets;
    if (given_) {
        targets.kernel = given_;
    } else if (btf_path_->empty()) {
        targets.kernel = TRY_IN(kernel(), "CO-RE relocations");
        targets.modules = [](void *context) { return static_cast<ModuleTypes *>(context)->types(); };
        targets.context = &*modules_;
    } else { // modules of the running kernel say nothing about another one
        if (!other_) other_ = TRY_IN(kernel_btf(*btf_path_), "CO-RE relocations");
        targets.kernel = other_.get();
    }
    TRY(relocate_core(spec, targets));
    return {};
}

Result<std::optional<KernelType>> KernelSymbols::find(std::string_view name, btf::Kind kind, std::string_view module) {
    const btf::Btf *kernel = TRY(this->kernel());
    if (module.empty() || module == "vmlinux")
        if (const std::optional<btf::TypeId> id = kernel->find(name, kind)) return KernelType{kernel, *id, nullptr};
    if (given_) return std::optional<KernelType>();
    for (const std::unique_ptr<ModuleBtf> &candidate : modules_->all()) {
        if (!module.empty() && candidate->name != module) continue;
        for (const btf::TypeId id : candidate->types.find_all(name)) // its own only
            if (TRY(candidate->types.type(id)).kind == kind) return KernelType{&candidate->types, id, candidate.get()};
    }
    return std::optional<KernelType>();
}

Result<bool> KernelSymbols::same_type(const Fixup &fixup, const KernelType &found) {
    const btf::Btf *own = TRY(local());
    if (!own) return true;                                  // nothing was declared that could differ
    const btf::Type there = TRY(found.btf->type(found.id)); // FUNC or VAR
    const btf::Type declared = TRY(own->type(fixup.type));  // FUNC, or the variable's type
    if (there.kind == btf::Kind::func) return btf::types_compatible(*own, declared.size_or_type, *found.btf, there.size_or_type);
    return btf::types_compatible(*own, TRY(own->resolve(fixup.type)).id, *found.btf,
                                 TRY(found.btf->resolve(there.size_or_type)).id);
}

Result<void> KernelSymbols::patch_call(ProgramSpec &program, const Fixup &fixup) {
    Insn &call = program.insns[fixup.insn];
    const std::string_view name = btf::essential_name(fixup.symbol);
    const std::optional<KernelType> function = TRY_IN(find(name, btf::Kind::func), "kernel function {}", fixup.symbol);
    std::string problem = "not in this kernel, nor in a module that is loaded";
    bool fits = function.has_value();
    if (fits && fixup.type != 0) {
        fits = TRY_IN(same_type(fixup, *function), "kernel function {}", fixup.symbol);
        if (!fits) problem = format("in {} it has other parameters than the object declares", function->btf->name());
    }
    if (!fits && !fixup.weak)
        return Unexpected(make_error(Errc::not_found, format("kernel function {}: {}", fixup.symbol, problem),
                                     function ? std::string() : near_kernel_function(*TRY(kernel()), name)));
    if (!fits) {
        call = Insn{BPF_JMP | BPF_CALL, 0, 0, 0, kPoisonFunction + static_cast<int32_t>(fixup.external)};
        program.poisoned.push_back({fixup.insn, format("kernel function {}: {}", fixup.symbol, problem)});
        return {};
    }
    call.src = BPF_PSEUDO_KFUNC_CALL;
    call.off = 0;
    call.imm = static_cast<int32_t>(function->id);
    if (!function->module) return {};
    const int fd = TRY_IN(modules_->fd_of(*function->module), "kernel function {}", fixup.symbol);
    if (fd_array_.empty()) fd_array_.push_back(0); // place 0 stands for the kernel itself
    size_t place = 1;
    while (place < fd_array_.size() && fd_array_[place] != fd) ++place;
    if (place == fd_array_.size()) fd_array_.push_back(fd);
    call.off = static_cast<int16_t>(place);
    return {};
}

Result<void> KernelSymbols::patch_address(Insn &low, Insn &high, const Fixup &fixup) {
    low.src = 0;
    low.imm = high.imm = 0;
    if (fixup.type != 0) {
        const std::string_view what = fixup.function ? "function" : "variable";
        const std::string_view name = fixup.function ? btf::essential_name(fixup.symbol) : std::string_view(fixup.symbol);
        const std::optional<KernelType> found =
            TRY_IN(find(name, fixup.function ? btf::Kind::func : btf::Kind::var), "kernel {} {}", what, fixup.symbol);
        if (!found && fixup.weak) return {};
        if (!found)
            return fail(Errc::not_found, "kernel {} {}: not in the kernel's BTF{}", what, fixup.symbol,
                        fixup.function ? "" : ", which lists per-CPU variables only");
        const bool fits = TRY_IN(same_type(fixup, *found), "kernel {} {}", what, fixup.symbol);
        if (!fits && fixup.weak && fixup.function) return {};
        if (!fits)
            return fail(Errc::unsupported, "kernel {} {}: in {} it has another type than the object declares", what, fixup.symbol,
                        found->btf->name());
        low.src = BPF_PSEUDO_BTF_ID;
        low.imm = static_cast<int32_t>(found->id);
        if (found->module) high.imm = TRY_IN(modules_->fd_of(*found->module), "kernel {} {}", what, fixup.symbol);
        return {};
    }
    Result<uint64_t> address = address_of(fixup.symbol);
    if (!address && fixup.weak && address.error().kind == Errc::not_found) return {};
    uint64_t value = TRY(std::move(address));
    low.imm = static_cast<int32_t>(value);
    high.imm = static_cast<int32_t>(value >> 32);
    return {};
}

Result<uint64_t> KernelSymbols::address_of(std::string_view symbol) {
    if (given_) return fail(Errc::unsupported, "kernel symbol {}: its address is known only when the kernel runs", symbol);
    if (addresses_.empty()) {
        for (const ExternSpec &external : spec_->externs)
            if (external.section == ".ksyms" && external.type == 0) addresses_.emplace(external.name, uint64_t{0});
        addresses_.emplace(symbol, uint64_t{0});
        if (Result<void> done = find_addresses(addresses_); !done) {
            addresses_.clear();
            return Unexpected(std::move(done).error());
        }
    }
    const auto known = addresses_.find(symbol);
    return known != addresses_.end() ? known->second : kernel_symbol_address(symbol);
}

Result<AttachTarget> KernelSymbols::attach_target(const ProgramSpec &program) {
    if (program.type == BPF_PROG_TYPE_EXT)
        return Unexpected(make_error(
            Errc::unsupported, "an extension (freplace) replaces a function of another program, and no such program was given",
            "name that program: rawbpf load --target ID, NAME or PIN"));
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
    std::string_view name = program.attach_target, module;
    if (const size_t colon = name.find(':'); colon != std::string_view::npos) {
        module = name.substr(0, colon);
        name.remove_prefix(colon + 1);
    }
    const std::optional<KernelType> target = TRY(find(format("{}{}", prefix, name), kind, module));
    if (!target) {
        Error error = make_error(Errc::not_found, format("{}{} is not in the BTF of {}{}", prefix, name,
                                                         module.empty() ? "the kernel" : "module ", module));
        if (const Result<const btf::Btf *> types = kernel(); types && module.empty())
            error.hint = near_target(**types, kind, prefix, name);
        if (error.hint.empty() && modules_ && modules_->all().empty() && sys::read_file("/proc/modules").value_or("").size() > 1)
            error.hint = "this kernel doesn't show the types of its modules (5.11, CONFIG_DEBUG_INFO_BTF_MODULES); a kprobe "
                         "needs no types";
        return Unexpected(std::move(error));
    }
    AttachTarget out{target->id};
    if (target->module) out.btf_fd = static_cast<uint32_t>(TRY(modules_->fd_of(*target->module)));
    return out;
}

Result<uint32_t> KernelSymbols::attach_module(const ProgramSpec &program) {
    const std::string_view target = program.attach_target, module = target.substr(0, target.find(':'));
    if (module.size() == target.size() || module == "vmlinux") return 0;
    TRY(kernel());
    for (const std::unique_ptr<ModuleBtf> &candidate : modules_->all())
        if (candidate->name == module) return static_cast<uint32_t>(TRY(modules_->fd_of(*candidate)));
    return Unexpected(make_error(Errc::not_found, format("{}: rawbpf found no types of a module {}", target, module),
                                 "load the module; if it is built into the kernel, leave out \"MODULE:\""));
}

Result<uint64_t> kernel_symbol_address(std::string_view name) {
    std::map<std::string, Result<uint64_t>, std::less<>> one;
    one.emplace(name, uint64_t{0});
    TRY(find_addresses(one));
    return one.begin()->second;
}

bool has_syscall_wrapper() {
    if (kHost.wrapper.empty()) return false;
    const std::string name = format("{}sys_bpf", kHost.wrapper);
    if (Result<std::shared_ptr<const btf::Btf>> types = kernel_btf(); types && (*types)->find(name, btf::Kind::func)) return true;
    const Result<uint64_t> address = kernel_symbol_address(name);
    return address || address.error().kind != Errc::not_found; // hidden, but there
}

} // namespace rawbpf::inline v0
