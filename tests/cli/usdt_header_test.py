"""<rawbpf/usdt.h>: probes by every compiler, what they cost, and what is traced of them."""
import os
import re
import shutil
import subprocess

from harness import *
from probes import INCLUDE, USDT_COMPILERS, USDT_FIRED, USDT_FIRED_CPP, as_readelf, compile_probes, readelf_probes, usdt_rows, usdt_traced


def check_fired(events, expected):
    assert [e["name"] for e in events] == [name for name, _ in expected], [e["name"] for e in events]
    for event, (name, values) in zip(events, expected):
        got = [a["value"] for a in event["args"]]
        assert len(got) == len(values), (name, got)
        for have, want in zip(got, values):
            if isinstance(want, int) and abs(want) >= 2**53:
                want = str(want)
            assert have == want if want is not None else int(have) > 4096, (name, got, values)


@test
def usdt_header_by_every_compiler_at_every_level():
    levels = [["-O0"], ["-O1", "-g"], ["-O2", "-fPIE", "-pie"], ["-O2", "-no-pie"], ["-O3", "-flto"]]
    seen = 0
    for compiler, standard in USDT_COMPILERS:
        fired = USDT_FIRED_CPP if "++" in compiler else USDT_FIRED
        names = sorted(name for name, _ in fired)
        for level in levels:
            flags = [*level, "-fuse-ld=lld"] if "-flto" in level and "clang" in compiler else level
            file = compile_probes("header-probes", compiler, standard, *flags)
            if not file:
                continue
            seen += 1
            rows = usdt_rows("validate", file)
            assert as_readelf(usdt_rows("list", file)) == readelf_probes(file), (compiler, level)
            assert sorted(r["name"] for r in rows) == names, (compiler, level, rows)
            for r in rows:
                assert r["ok"] and r["nop"] == "nop" and r["provider"] == "app", (compiler, level, r)
                assert (r["semaphore"] is not None) == (r["name"] == "lazy"), (compiler, level, r)
                assert all(a["insns"] for a in r["args"]), (compiler, level, r)
            # Nobody looks: what is only for those who look isn't worked out.
            out = subprocess.run([file, "-"], capture_output=True, text=True, check=True).stdout
            assert out == "sum 289, calls 0, i 2\n", (compiler, level, out)
    if not seen:
        raise Skip("no C compiler")


@test
def usdt_header_costs_one_nop():
    if not shutil.which("objdump"):
        raise Skip("needs objdump")
    source = path("one-nop.c")
    with open(source, "w") as f:
        f.write("#include <rawbpf/usdt.h>\nint function(int a, long b, int *p) { RAWBPF_USDT(app, one, a, 5, b, p); *p += a; return *p; }\n")
    for compiler in ("gcc", "clang"):
        if not shutil.which(compiler):
            continue
        code = []
        for flags in ([], ["-DRAWBPF_USDT_NONE"], ["-DRAWBPF_USDT_NOP10"]):
            compile_probes("one-nop.o", compiler, "-O2", "-fcf-protection=none" if os.uname().machine == "x86_64" else "-O2", "-c", *flags,
                           sources=(source,))
            text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path("one-nop.o")], capture_output=True, text=True, check=True).stdout
            lines = [line.split("\t", 1)[1].strip() for line in text.splitlines() if "\t" in line]
            code.append(lines[:next(i for i, line in enumerate(lines) if line.startswith("ret")) + 1])
        with_probe, without, ten = code
        assert with_probe.count("nop") == 1 and len(with_probe) == len(without) + 1, (compiler, code)
        assert len(ten) == len(with_probe) + (os.uname().machine == "x86_64"), (compiler, ten)
        assert compile_probes("no-probes", compiler, "-O1", "-DRAWBPF_USDT_NONE", "-Wno-unneeded-internal-declaration")
        bad(1, r"no USDT probes", "usdt", "list", path("no-probes"))


USDT_SHARED = r"""
#include <rawbpf/usdt.h>
template <class T> __attribute__((noinline)) T shared(T v) { RAWBPF_USDT(gc, shared, v); return v; }
struct Thing { __attribute__((noinline)) virtual int method(int x) { RAWBPF_USDT_LAZY(gc, method, x); return x; } };
int used(int);
#ifdef FIRST
int unused(int a) { RAWBPF_USDT(gc, unused, a); RAWBPF_USDT_WITH_SEMAPHORE(gc, unused_too, a); return a; }
int used(int a) { RAWBPF_USDT_WITH_SEMAPHORE(gc, used, a); return shared(a) + Thing().method(a); }
#else
int main(int c, char **) {
    Thing t;
    Thing *volatile p = &t;
    if (RAWBPF_USDT_ENABLED(gc, nowhere)) return 3;
    return used(c) + shared(c) + p->method(c) - 4 * c;
}
#endif
"""


@test
def usdt_header_in_groups_libraries_and_collected_sections():
    sources = []
    for name, define in (("first.cpp", "#define FIRST\n"), ("second.cpp", "")):
        with open(path(name), "w") as f:
            f.write(define + USDT_SHARED)
        sources.append(path(name))
    for compiler in ("g++", "clang++"):
        for flags in ([], ["-fuse-ld=lld"], ["-flto"], ["-static"], ["-shared", "-fPIC"], ["-shared", "-fPIC", "-fuse-ld=lld"]):
            if not shutil.which(compiler) or ("-fuse-ld=lld" in flags and not shutil.which("ld.lld")) or (compiler, flags) == ("clang++", ["-flto"]):
                continue
            file = compile_probes("grouped", compiler, "-O2", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", *flags, sources=sources)
            rows = usdt_rows("validate", file)
            names = sorted(r["name"] for r in rows if r["provider"] == "gc")
            wanted = ["method", "shared", "used"] + ["unused", "unused_too"] * ("-shared" in flags)
            assert names == sorted(wanted), (compiler, flags, names)
            for r in rows:
                assert r["ok"] and (r["semaphore"] is not None) == (r["name"] in ("method", "used", "unused_too")), (compiler, flags, r)
            if "-shared" not in flags:
                assert subprocess.run([file]).returncode == 0, (compiler, flags)


@test
def usdt_header_refuses_what_is_no_argument():
    for compiler, text in (("gcc", "struct s { long a, b, c; } x"), ("g++", "struct s { long a, b, c; } x"), ("gcc", "long double x = 1"),
                           ("g++", "__int128 x = 1")):
        if not shutil.which(compiler):
            continue
        source = f"#include <rawbpf/usdt.h>\nvoid f(void) {{ {text}; RAWBPF_USDT(app, f, x); }}\n"
        r = subprocess.run([compiler, "-x", "c++" if "++" in compiler else "c", "-fsyntax-only", "-I", INCLUDE, "-"], input=source,
                           capture_output=True, text=True)
        assert r.returncode != 0 and "8 bytes at most" in r.stderr, (compiler, text, r.stderr[:600])


@test
def usdt_header_values_as_traced():
    done = 0
    for compiler, standard in USDT_COMPILERS:
        for level in ("-O0", "-O2"):
            file = compile_probes("traced-probes", compiler, standard, level)
            if not file:
                continue
            events, ledger, _ = usdt_traced(file + ":app", "--", file, "-")
            check_fired(events, USDT_FIRED_CPP if "++" in compiler else USDT_FIRED)
            done += 1
    if not done:
        raise Skip("no C compiler")
    # What a pointer points to is in memory when the probe is reached, though the program itself never reads it.
    with open(path("probes.types"), "w") as f:
        f.write("app:pointers(const char *text, const char *built, void *point, int x, void *nothing, const char *literal)\n")
    for compiler, standard in USDT_COMPILERS:
        file = compile_probes("traced-probes", compiler, standard, "-O2")
        if file:
            events, _, _ = usdt_traced(file + ":app:pointers", "--types", path("probes.types"), "--", file, "-")
            values = {a["name"]: a["value"] for a in events[0]["args"]}
            assert (values["text"], values["built"], values["x"], values["literal"]) == ("hello", "hello!", 3, "literal"), (compiler, values)


@test
def usdt_header_semaphore_is_up_while_traced():
    file = compile_probes("lazy-probes", "g++", "-O2")
    if not file:
        raise Skip("no g++")
    for target, calls in ((":app:lazy", 2), (":app:none", 0)):
        _, _, r = usdt_traced(file + target, "--", file, "-")
        assert f"sum 289, calls {calls}, i 2" in r.out + r.err, (target, r.out[-300:], r.err[-600:])
    assert "calls 0" in subprocess.run([file, "-"], capture_output=True, text=True).stdout, "and down again"


@test
def usdt_header_as_bpftrace_sees_it():
    if os.geteuid() != 0:
        raise Skip("needs root")
    if not shutil.which("bpftrace"):
        raise Skip("needs bpftrace (Debian's package)")
    for compiler, standard in (USDT_COMPILERS[1], USDT_COMPILERS[2]):
        file = compile_probes("bpftrace-probes", compiler, standard, "-O2")
        if not file:
            continue
        usdt_traced(file + ":app:none", "--", file, "-")  # or a SKIP that says what is missing
        script = "".join(f'usdt:{file}:app:{probe} {{ printf("{probe} {fmt}\\n", {args}); }}\n' for probe, fmt, args in (
            ("unsigned_ones", "%u %u %u %lu %u %u", "arg0, arg1, arg2, arg3, arg4, arg5"),
            ("signed_ones", "%d %d %d %ld %d", "(int8)arg0, (int16)arg1, (int32)arg2, arg3, (int32)arg4"),
            ("pointers", "%s %d", "str(arg1), arg3"), ("leaf", "%d %d %d", "arg0, arg1, arg2"),
            ("lazy", "%d %d", "arg0, arg1")))
        r = run("timeout", "-s", "INT", "40", "bpftrace", "-e", script, "-c", file + " -", binary=None)
        out = r.out
        lines = [line for line in out.splitlines() if re.match(r"(unsigned_ones|signed_ones|pointers|leaf|lazy) ", line)]
        assert lines == ["unsigned_ones 250 65000 4000000000 18364758544493064720 1 120", "signed_ones -5 -500 -70000 -5000000000 -3",
                         "pointers hello! 3", "leaf 10 20 30", "lazy 42 289", "lazy 8 289"], (compiler, out, r.err[-600:])


# Triplet, options, qemu's name. A kernel probes ARM code only (-marm); that Thumb code is right shows when it runs.
USDT_MACHINES = {
    "arm64": ("aarch64-linux-gnu", [], "aarch64"),
    "riscv64": ("riscv64-linux-gnu", [], "riscv64"),
    "arm": ("arm-linux-gnueabihf", ["-marm"], "arm"),
    "thumb": ("arm-linux-gnueabihf", ["-mthumb", "-fno-omit-frame-pointer"], "arm"),
}


def usdt_header_for(machine):
    triplet, options, emulator = USDT_MACHINES[machine]
    if not shutil.which(triplet + "-gcc"):
        raise Skip(f"needs {triplet}-gcc")
    for compiler, fired in ((triplet + "-gcc", USDT_FIRED), (triplet + "-g++", USDT_FIRED_CPP)):
        for level in ("-O0", "-O2", "-O3"):
            file = compile_probes(machine + "-probes", compiler, level, *options, "-static")
            if not file:
                continue
            rows = usdt_rows("validate", file, code=1 if machine == "thumb" else 0)
            assert sorted(r["name"] for r in rows if r["provider"] == "app") == sorted(name for name, _ in fired), (compiler, level)
            if machine != "thumb":
                assert all(r["ok"] and r["nop"] in ("nop", "c.nop") for r in rows), (compiler, level, rows)
            sizes = {r["name"]: [abs(int(a["spec"].split("@")[0].rstrip("f"))) for a in r["args"]] for r in rows}
            assert sizes["unsigned_ones"] == [1, 2, 4, 8, 1, 1] and sizes["real"] == [4, 8, 4, 8, 4], (compiler, level, sizes)
            assert as_readelf(usdt_rows("list", file)) == readelf_probes(file), (compiler, level)
            if shutil.which(f"qemu-{emulator}-static"):
                out = subprocess.run([f"qemu-{emulator}-static", file, "-"], capture_output=True, text=True).stdout
                assert out == "sum 289, calls 0, i 2\n", (compiler, level, out)


@test
def usdt_header_for_arm64():
    usdt_header_for("arm64")


@test
def usdt_header_for_riscv64():
    usdt_header_for("riscv64")


@test
def usdt_header_for_32_bit_arm():
    usdt_header_for("arm")


@test
def usdt_header_for_thumb():
    usdt_header_for("thumb")


@test
def usdt_header_for_other_machines():
    """A machine without probes: a warning says so, unless none are wanted."""
    if not shutil.which("arm-linux-gnueabihf-gcc"):
        raise Skip("needs arm-linux-gnueabihf-gcc")
    old = ("arm-linux-gnueabihf-gcc", "-march=armv5t", "-marm", "-mfloat-abi=soft", "-fsyntax-only", "-Werror", "-I", INCLUDE, "-x", "c", "-")
    text = "#include <rawbpf/usdt.h>\nint two(int n) { RAWBPF_USDT(app, two, n); return RAWBPF_USDT_ENABLED(app, two); }\n"
    r = subprocess.run(old, input=text, capture_output=True, text=True)
    assert r.returncode == 1 and "writes no probes for this machine: -DRAWBPF_USDT_NONE says that none are wanted" in r.stderr, r.stderr[-600:]
    r = subprocess.run([*old, "-DRAWBPF_USDT_NONE"], input=text, capture_output=True, text=True)
    assert r.returncode == 0 and not r.stderr, r.stderr[-600:]
