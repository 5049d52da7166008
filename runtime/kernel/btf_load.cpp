// Loads an object's BTF. BTF is useful but not necessary: without it programs run and maps hold data, but maps can't be
// printed with types and the verifier can't name source lines. So no failure here makes the object fail.
#include "runtime/kernel/btf_load.h"

#include <optional>

#include "runtime/base/format.h"
#include "runtime/btf/btf.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0 {
namespace {

bool takes(const btf::Writer &writer) { return sys::btf_load(writer.finish()).has_value(); }

BtfSupport probe_support() {
    sys::Because why("a probe: which kinds of BTF does this kernel know?");
    using btf::Writer;
    BtfSupport support;
    {
        Writer w;
        btf::TypeId n = w.add_int("int", 4, true);
        btf::TypeId var = w.add_var("v", n, 1);
        w.add_datasec(".bss", 4, {{var, 0, 4}});
        support.var_datasec = takes(w);
    }
    {
        Writer w;
        btf::TypeId n = w.add_int("int", 4, true);
        btf::TypeId var = w.add_var("v", n, 1);
        w.add_datasec("?.bss", 4, {{var, 0, 4}});
        support.any_name = takes(w);
    }
    {
        Writer w;
        w.add_func("f", w.add_func_proto(w.add_int("int", 4, true), {}), 1);
        support.func_global = takes(w);
    }
    {
        Writer w;
        w.add_float("float", 4);
        support.float_kind = takes(w);
    }
    {
        Writer w;
        btf::TypeId n = w.add_int("int", 4, true);
        w.add_decl_tag("tag", w.add_struct("s", 4, {{"m", n, 0}}), -1);
        support.decl_tag = takes(w);
    }
    {
        Writer w;
        w.add_ptr(w.add_type_tag("tag", w.add_int("int", 4, true)));
        support.type_tag = takes(w);
    }
    {
        Writer w;
        w.add_enum("e", 8, {{"V", 0x100000000}});
        support.enum64 = takes(w);
    }
    return support;
}

} // namespace

const BtfSupport &btf_support() {
    static const BtfSupport support = probe_support();
    return support;
}

Fd load_btf(Bytes btf, std::vector<std::string> &notes) {
    Result<Fd> fd = [&] {
        sys::Because why("types and line positions, so that maps can be printed and the verifier can name source lines");
        return sys::btf_load(btf);
    }();
    if (fd) return std::move(*fd);
    if (fd.error().kind == Errc::permission) return Fd(); // what follows will fail for the same reason, and say so
    const BtfSupport &support = btf_support();
    if (!support.everything()) {
        Result<std::vector<std::byte>> older = sanitize_btf(btf, support);
        if (older) {
            sys::Because why("the same without the kinds that this kernel doesn't know");
            Result<Fd> again = sys::btf_load(*older);
            if (again) {
                notes.push_back("some kinds of BTF were replaced, since this kernel doesn't know them");
                return std::move(*again);
            }
        }
    }
    std::string log;
    sys::Because why("once more with a log: why was the BTF refused?");
    Result<Fd> last = sys::btf_load(btf, &log);
    if (last) return std::move(*last);
    notes.push_back(format("loaded without BTF: {}{}{}", last.error().message(), log.empty() ? "" : ": ", log));
    return Fd();
}

} // namespace rawbpf::inline v0
