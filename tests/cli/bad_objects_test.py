"""Objects of another byte order, of another machine, and cut; headers of bundles that are cut: each is refused with its name and the reason."""
import shutil
import subprocess

from harness import *
from bpf_objects import clangs, compile_bpf

SOURCE = '#include <rawbpf/bpf.h>\nLICENSE("GPL");\n__u64 sum;\nSEC("socket") int f(void *c) { return sum; }\n'
# Whatever reads an object, with the words around its name.
READERS = (["inspect", "{}"], ["relocs", "{}"], ["check", "{}"], ["verify", "{}"], ["explain", "{}"], ["load", "{}"], ["draw", "{}"], ["disasm", "{}"],
           ["bundle", "{}"], ["gen", "skeleton", "{}"], ["link", "{}", "-o", "{}.linked"], ["exec", "--packet", "{}", "00"],
           ["btf", "min", "/sys/kernel/btf/vmlinux", "{}", "-o", "{}.min"])


def readers(name):
    for words in READERS:
        if words[0] == "btf" and not os.path.exists(words[2]):
            continue
        yield words, run(*[word.format(name) for word in words])


@test
def objects_of_another_machine_or_byte_order_are_named():
    good_one = compile_bpf("other.bpf.o", SOURCE)
    with open(good_one, "rb") as f:
        data = bytearray(f.read())
    kinds = {}
    for number, name in ((62, "x86_64"), (183, "arm64"), (243, "RISC-V"), (3, "32-bit x86")):
        data[18:20] = number.to_bytes(2, "little")
        kinds[name.replace(" ", "") + ".o"] = (bytes(data), (1,), f"it isn't a BPF object: it has {name} code", "hint: compile it for BPF: clang --target=bpf")
    with open(path("other.bpf.c"), "w", encoding="ascii") as f:
        f.write(SOURCE)
    include = os.path.join(HERE, "..", "..", "programs", "include")
    subprocess.run([clangs()[0], "--target=bpfeb", "-O2", "-g", "-I", os.path.join(HERE, "..", ".."), "-I", include, "-c", path("other.bpf.c"), "-o",
                    path("big.o")], check=True)
    with open(path("big.o"), "rb") as f:
        kinds["big.o"] = (f.read(), (1, 3), "a 64-bit big-endian object", "hint: clang --target=bpfel")
    for name, (contents, codes, why, hint) in kinds.items():
        with open(path(name), "wb") as f:
            f.write(contents)
        for words, r in readers(path(name)):
            said = r.out + r.err
            assert r.code in codes and name in said and why in said and hint in said, (words, r.code, said)
            assert not os.path.exists(path(name + ".linked")) and not os.path.exists(path(name + ".min")), words


@test
def an_object_that_is_cut_is_refused_with_its_name():
    with open(compile_bpf("whole.bpf.o", SOURCE), "rb") as f:
        data = f.read()
    # The table of sections is the last thing in it: without its end nothing is left that can be read.
    for size in [*range(0, 70, 7), *range(70, len(data) - 1, len(data) // 12), len(data) - 1]:
        with open(path("cut.bpf.o"), "wb") as f:
            f.write(data[:size])
        for words, r in readers(path("cut.bpf.o")):
            said = r.out + r.err
            assert r.code == 1 and "cut.bpf.o" in said and "internal error" not in said, (size, words, r.code, said)


@test
def a_header_that_is_cut_does_not_compile():
    if not shutil.which("cc"):
        raise Skip("needs cc")
    good("bundle", compile_bpf("packed.bpf.o", SOURCE), "-o", path("packed.h"))
    header = read("packed.h")
    with open(path("product.c"), "w", encoding="ascii") as f:
        f.write('#include "packed.h"\nint main(void) { return rawbpf_bundle_load(&packed, 0); }\n')
    compiled = ["cc", "-std=c99", "-fsyntax-only", "-I", os.path.join(HERE, "..", "..", "runtime", "core"), "-I", path("."), path("product.c")]
    assert subprocess.run(compiled, capture_output=True, check=False).returncode == 0
    lines = header.splitlines(keepends=True)
    for count in range(1, len(lines), max(1, len(lines) // 12)):
        with open(path("packed.h"), "w", encoding="ascii") as f:
            f.write("".join(lines[:count]))
        r = subprocess.run(compiled, capture_output=True, text=True, check=False)
        assert r.returncode != 0, (count, lines[count - 1])


@test
def what_asks_for_more_than_a_quarter_of_the_memory_is_refused():
    """In an address space of 64 MB, as on a board."""
    for command, option in ((("profile", "-F", "99", "-d", "0.1"), "--ring"), (("trace", "-d", "0.1", "tracepoint:sched:sched_process_exec"), "--ring"),
                            (("profile", "-F", "99", "-d", "0.1"), "--unwind-memory"), (("custom", "/bin/true:main"), "--ring")):
        r = run("sh", "-c", 'ulimit -v 65536; exec "$0" "$@"', RB, *command, option, "64M", binary=None)
        assert r.code == 3, (command, r.code, r.err)
        assert f"{option}: 64M is more than a quarter of the 64.0 MB of memory here" in r.err and "hint: at most 16M; rawbpf doctor" in r.err, r.err
    r = run("sh", "-c", 'ulimit -v 65536; exec "$0" "$@"', RB, "doctor", binary=None)
    for row in ("ring of trace, custom +1 MiB", "unwind tables +up to 4 MiB", "--ring, --unwind-memory +at most 16 MiB each"):
        assert re.search(r"yes  " + row.replace(" +", r" +"), r.out), (row, r.out)
