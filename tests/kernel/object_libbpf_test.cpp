// The same object through libbpf and through us: the instructions that reach the kernel must be the same.
//
// libbpf is taken at run time (dlopen), where the system has one: nothing of it is needed to build, and without it the test is
// skipped. What can't agree is left out: descriptors of maps are numbers that differ from process to process.
#include <dlfcn.h>
#include <unistd.h>

#include "runtime/object/core.h"
#include "runtime/object/elf_object.h"
#include "runtime/sys/file.h"
#include "tests/support/test.h"

namespace rawbpf::inline v0 {
extern const std::span<const std::byte> golden_clang14, golden_clang19;
}
using namespace rawbpf;

namespace {

/// The few functions of libbpf that are needed, by their ABI (libbpf.h, 1.0).
struct Peer {
    void *library = dlopen("libbpf.so.1", RTLD_NOW);
    ~Peer() {
        if (library) dlclose(library);
    }
    template <class F> F *get(const char *name) const { return reinterpret_cast<F *>(dlsym(library, name)); }
    void *(*open)(const void *, size_t, const void *) = nullptr;
    int (*load)(void *) = nullptr;
    void (*close)(void *) = nullptr;
    void *(*next)(const void *, void *) = nullptr;
    const char *(*name)(const void *) = nullptr;
    int (*set_autoload)(void *, bool) = nullptr;
    const Insn *(*insns)(const void *) = nullptr;
    size_t (*count)(const void *) = nullptr;

    bool find() {
        if (!library) return false;
        open = get<void *(const void *, size_t, const void *)>("bpf_object__open_mem");
        load = get<int(void *)>("bpf_object__load");
        close = get<void(void *)>("bpf_object__close");
        next = get<void *(const void *, void *)>("bpf_object__next_program");
        name = get<const char *(const void *)>("bpf_program__name");
        set_autoload = get<int(void *, bool)>("bpf_program__set_autoload");
        insns = get<const Insn *(const void *)>("bpf_program__insns");
        count = get<size_t(const void *)>("bpf_program__insn_cnt");
        return open && load && close && next && name && set_autoload && insns && count;
    }
};

void compare(const Peer &peer, Bytes object, const btf::Btf &kernel) {
    auto spec = parse_object(object, "golden.o");
    REQUIRE(spec);
    for (ProgramSpec &program : spec->programs) program.autoload = true;
    const btf::Btf *targets[] = {&kernel};
    auto report = relocate_core(*spec, targets);
    REQUIRE(report);
    void *theirs = peer.open(object.data(), object.size(), nullptr);
    REQUIRE(theirs);
    for (void *p = peer.next(theirs, nullptr); p; p = peer.next(theirs, p)) peer.set_autoload(p, true);
    if (peer.load(theirs) != 0) {
        peer.close(theirs);
        SKIP("libbpf could not load the object (no privileges, or no bpf_loop, 5.17)");
    }
    size_t compared = 0;
    for (void *p = peer.next(theirs, nullptr); p; p = peer.next(theirs, p)) {
        const ProgramSpec *ours = spec->find_program(peer.name(p));
        REQUIRE(ours);
        CAPTURE(ours->name);
        REQUIRE(ours->insns.size() == peer.count(p));
        size_t fixup = 0;
        for (size_t i = 0; i < ours->insns.size(); ++i, ++compared) {
            Insn expected = peer.insns(p)[i];
            if (fixup < ours->fixups.size() && ours->fixups[fixup].insn == i) {
                expected.imm = 0; // their descriptor
                ++fixup;
            }
            CAPTURE(i);
            CHECK(bool(ours->insns[i] == expected));
        }
    }
    CHECK(compared > 150);
    peer.close(theirs);
}

} // namespace

TEST_CASE("object: the final instructions are libbpf's") {
    Peer peer;
    if (!peer.find()) SKIP("needs libbpf.so.1, to compare with");
    auto file = sys::read_file("/sys/kernel/btf/vmlinux");
    if (!file) SKIP("needs the kernel's BTF: " + file.error().message());
    auto kernel = btf::Btf::parse(bytes_of(*file), "vmlinux");
    REQUIRE(kernel);
    compare(peer, golden_clang14, *kernel);
    compare(peer, golden_clang19, *kernel);
}
