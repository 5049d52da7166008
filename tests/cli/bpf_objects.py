"""What tests of BPF objects need: clang, and the kernel's types."""
import json
import os
import shutil

from harness import *

VMLINUX = "/sys/kernel/btf/vmlinux"


def needs_kernel_btf():
    if not os.path.exists(VMLINUX):
        raise Skip("needs the kernel's BTF (CONFIG_DEBUG_INFO_BTF)")


def clangs():
    found = [c for c in ["clang"] + [f"clang-{n}" for n in range(14, 23)] if shutil.which(c)]
    works = [c for c in found if run("--target=bpf", "-x", "c", "-c", "/dev/null", "-o", "/dev/null", binary=c).code == 0]
    if not works:
        raise Skip("needs clang with the BPF target")
    return works


def json_lines(text):
    rows = [json.loads(line) for line in text.splitlines()]
    assert rows[0]["type"] == "header" and all(list(row)[0] == "type" for row in rows), rows[0]
    return rows[1:]


def compile_bpf(name, source):
    clang = clangs()[0]
    with open(path(name + ".c"), "w") as f:
        f.write(source)
    include = os.path.join(HERE, "..", "..", "programs", "include")
    r = run("--target=bpf", "-mcpu=v3", "-g", "-O2", "-I", include, "-c", path(name + ".c"), "-o", path(name), binary=clang)
    assert r.code == 0, r.err[:800]
    return path(name)
