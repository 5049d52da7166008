"""rawbpf inspect, relocs, check and btf min: objects without a kernel."""
import os
import re
import shutil

from harness import *
from bpf_objects import VMLINUX, clangs, json_lines, needs_kernel_btf


def sample_object():
    """An object with CO-RE relocations, of which one field is asked for first and one isn't there at all."""
    source = """#include "vmlinux.h"
#include <rawbpf/bpf.h>
struct task_struct___gone { int no_such_field; } __attribute__((preserve_access_index));
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 64); __type(key, u32); __type(value, u64); } seen SEC(".maps");
const volatile int limit = 7;
SEC("raw_tp/sched_switch")
int on_switch(struct { u64 args[3]; } *ctx)
{
    struct task_struct *prev = (void *)ctx->args[1];
    u32 key;
    bpf_probe_read_kernel(&key, sizeof key, &prev->pid);
    struct task_struct___gone *gone = (void *)prev;
    if (bpf_core_field_exists(gone->no_such_field))
        bpf_probe_read_kernel(&key, sizeof key, &gone->no_such_field);
#ifdef BROKEN
    bpf_probe_read_kernel(&key, sizeof key, &gone->no_such_field);
#endif
    u64 value = limit;
    bpf_map_update_elem(&seen, &key, &value, 0);
    return 0;
}
char LICENSE[] SEC("license") = "GPL";
"""
    needs_kernel_btf()
    clang = clangs()[0]
    good("btf", "dump", "vmlinux", "-f", "c", "-o", path("vmlinux.h"))
    with open(path("sample.bpf.c"), "w") as f:
        f.write(source)
    include = os.path.join(HERE, "..", "..", "programs", "include")
    for name, *flags in (("sample.bpf.o",), ("broken.bpf.o", "-DBROKEN")):
        r = run("--target=bpf", "-g", "-O2", "-I", include, *flags, "-c", path("sample.bpf.c"), "-o", path(name), binary=clang)
        assert r.code == 0, r.err[:800]
    return path("sample.bpf.o"), path("broken.bpf.o")


@test
def inspect_shows_an_object_without_a_kernel():
    obj, _ = sample_object()
    text = good("inspect", obj).out
    for wanted in ("on_switch", "raw_tp/sched_switch", "HASH", "global limit : const volatile int = 7", "struct task_struct.pid"):
        assert wanted in text, f"lacks {wanted}: {text}"
    rows = json_lines(good("inspect", obj, "--json").out)
    assert {r["type"] for r in rows} >= {"object", "section", "program", "map", "global", "relocation"}
    assert "exit" not in text and len(good("inspect", obj, "-v").out) > len(text)
    if shutil.which("readelf"):
        sections = re.findall(r"^ *\[ *\d+\] (\S+)", run("-SW", obj, binary="readelf").out, re.M)
        ours = [r["name"] for r in rows if r["type"] == "section"]
        assert [s for s in sections if s != "NULL"] == ours, (sections, ours)


@test
def relocs_and_check_tell_what_is_missing_and_what_is_guarded():
    obj, broken = sample_object()
    text = good("relocs", obj).out
    assert re.search(r"byte_off +struct task_struct.pid +\d+ -> \d+", text), text
    assert "missing, guarded: struct task_struct has no field no_such_field" in text and "not " in text, text
    rows = json_lines(good("relocs", obj, "--json").out)
    assert any(r["kind"] == "field_exists" and r["after"] == "0" and r["candidates"][0]["fits"] is False for r in rows), rows
    assert good("check", obj).out.startswith("vmlinux: ok, ")
    r = run("check", broken)
    assert r.code == 1 and re.search(r"on_switch: instruction \d+: byte_off of struct task_struct___gone.no_such_field", r.out), r.out
    r = run("check", broken, "--btf", VMLINUX, "--btf", VMLINUX, "--json")
    assert r.code == 1
    assert [row["ok"] for row in json_lines(r.out) if row["type"] == "check"] == [False, False]


@test
def btf_min_gives_the_same_answers():
    obj, _ = sample_object()
    small = path("small.btf")
    assert re.search(r"\d+ types", good("btf", "min", VMLINUX, obj, "-o", small).err)
    assert os.path.getsize(small) < 4096
    answers = [[(r["insn"], r["kind"], r["after"], r["reason"]) for r in json_lines(good("relocs", obj, "--btf", btf, "--json").out)] for btf in (VMLINUX, small)]
    assert answers[0] == answers[1], answers
    if not shutil.which("bpftool"):
        raise Skip("all but the comparison: needs bpftool")
    assert run("gen", "min_core_btf", VMLINUX, path("theirs.btf"), obj, binary="bpftool").code == 0
    theirs = [(r["insn"], r["kind"], r["after"], r["reason"]) for r in json_lines(good("relocs", obj, "--btf", path("theirs.btf"), "--json").out)]
    assert theirs == answers[0], theirs
    # libbpf's own reader takes it.
    assert run("btf", "dump", "file", small, binary="bpftool").out == good("btf", "dump", small).out


@test
def object_commands_bad_input():
    for command in (("inspect",), ("relocs",), ("check",)):
        bad(1, r"no-such", *command, "/no-such.o")
        bad(1, r"BPF", *command, RB)
        bad(2, r".", *command)
    for command in (("inspect",), ("relocs",), ("check",), ("load",), ("gen", "skeleton")):
        for name, contents, advice in (("nothing.o", b"", r"hint: the file is empty"), ("source.bpf.c", b"int x;", r"hint: .*clang")):
            with open(path(name), "wb") as f:
                f.write(contents)
            bad(1, advice, *command, path(name))
    with open(path("cut.o"), "wb") as f:
        f.write(b"\x7fELF\x02\x01\x01" + b"\0" * 40)
    bad(1, r"cut.o", "inspect", path("cut.o"))
    bad(1, r"no-such", "btf", "min", "/no-such.btf", path("cut.o"), "-o", path("x"))
    assert not os.path.exists(path("x"))
