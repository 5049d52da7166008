"""rawbpf btf dump: types as bpftool lists them, and as C that clang takes."""
import json
import os
import re
import shutil

from harness import *
from bpf_objects import VMLINUX, clangs, needs_kernel_btf


def raw_types(text):
    """A listing (format raw) as id -> {kind, name, fields, members}."""
    types, current = {0: {"kind": "VOID", "name": "void", "members": []}}, None
    for line in text.splitlines():
        if line.startswith("["):
            m = re.match(r"\[(\d+)\] (\w+) '(.*?)'(.*)$", line)
            current = {"kind": m[2], "name": "" if m[3] == "(anon)" else m[3], "members": []}
            current.update(re.findall(r"(\w+)=(\(?\w+\)?)", m[4]))
            types[int(m[1])] = current
        elif m := re.match(r"\t'(.*?)'(.*)$", line):
            member = dict(re.findall(r"(\w+)=(-?\w+)", m[2]))
            member["name"] = "" if m[1] == "(anon)" else m[1]
            current["members"].append(member)
    return types


def layouts(types):
    """(kind, name without flavour) -> sorted list of (size, members with offset, bits and size; anonymous ones unfolded)."""
    def strip(i):
        while types[i]["kind"] in ("CONST", "VOLATILE", "RESTRICT", "TYPEDEF", "TYPE_TAG"):
            i = int(types[i]["type_id"])
        return i

    def size(i):
        t = types[strip(i)]
        if t["kind"] == "ARRAY":
            return int(t["nr_elems"]) * size(int(t["type_id"]))
        return 8 if t["kind"] == "PTR" else int(t.get("size", 0))

    def members(i, base):
        out = []
        for m in types[i]["members"]:
            at, of = base + int(m["bits_offset"]), strip(int(m["type_id"]))
            record = types[of]["kind"] in ("STRUCT", "UNION")
            if m["name"].startswith("__pad_"):
                continue
            if record and not m["name"]:
                out += members(of, at)
            else:
                inner = tuple(members(of, 0)) if record and not types[of]["name"] else ()
                out.append((m["name"], at, int(m.get("bitfield_size", 0)), size(int(m["type_id"])), inner))
        return out

    table = {}
    for i, t in types.items():
        if t["kind"] in ("STRUCT", "UNION") and t["name"]:
            key = (t["kind"], re.sub(r"___\d+$", "", t["name"]))
            table.setdefault(key, []).append((int(t["size"]), tuple(members(i, 0))))
    return table


@test
def btf_dump_lists_types_as_bpftool_does():
    needs_kernel_btf()
    ours = good("btf", "dump", "vmlinux").out
    rows = [json.loads(line) for line in good("btf", "dump", "vmlinux", "--json").out.splitlines()]
    assert rows[0]["type"] == "header" and rows[0]["command"][1:3] == ["btf", "dump"], rows[0]
    assert len(rows) - 1 == sum(line.startswith("[") for line in ours.splitlines())
    (task,) = [r for r in rows if r.get("name") == "task_struct" and r["kind"] == "struct"]
    assert any(m["name"] == "pid" for m in task["members"])
    one = good("btf", "dump", "vmlinux", "struct task_struct").out
    assert one.startswith(f"[{task['id']}] STRUCT 'task_struct'") and one in ours
    if not shutil.which("bpftool"):
        raise Skip("all but the comparison: needs bpftool")
    theirs = run("btf", "dump", "file", VMLINUX, binary="bpftool").out
    differ = [(a, b) for a, b in zip(ours.splitlines(), theirs.splitlines()) if a != b]
    assert not differ and len(ours) == len(theirs), differ[:3]


@test(long=True)
def btf_dump_c_is_a_header_that_clang_takes():
    needs_kernel_btf()
    good("btf", "dump", "-f", "c", "-o", path("vmlinux.h"))
    header = read("vmlinux.h")
    assert "struct task_struct {" in header and " /* " not in header.replace("#endif /* __VMLINUX_H__ */", ""), "something couldn't be said in C"
    # The last struct of each 25; all of them with RAWBPF_ALL_LAYOUTS=1 (clang needs 15 s for that).
    records = re.findall(r"^(struct|union) (\w+) \{", header, re.M)[:: 1 if os.environ.get("RAWBPF_ALL_LAYOUTS") else 25]
    with open(path("layouts.bpf.c"), "w") as f:
        f.write('#include "vmlinux.h"\nstruct every_struct {\n')
        f.writelines(f"{kind} {name} m{i};\n" for i, (kind, name) in enumerate(records))
        f.write("} *every_struct;\n")
    kernel = layouts(raw_types(good("btf", "dump", "vmlinux").out))
    for clang in clangs():
        r = run("--target=bpf", "-g", "-O2", "-Wall", "-Wextra", "-Werror", "-c", path("layouts.bpf.c"), "-o", path("layouts.o"), binary=clang, timeout=120)
        assert r.code == 0, f"{clang}: {r.err[:600]}"
        compiled = layouts(raw_types(good("btf", "dump", path("layouts.o")).out))
        wanted = {("STRUCT" if kind == "struct" else "UNION", re.sub(r"___\d+$", "", name)) for kind, name in records}
        assert wanted <= set(compiled), f"{clang}: {sorted(wanted - set(compiled))[:3]}"
        for key, versions in compiled.items():
            if key[1] != "every_struct":
                for version in versions:
                    assert version in kernel.get(key, []), f"{clang}: {key}: {version} isn't among {kernel.get(key)}"


@test
def btf_dump_c_serves_programs_written_for_libbpf():
    needs_kernel_btf()
    if not os.path.exists("/usr/include/bpf/bpf_core_read.h"):
        raise Skip("needs libbpf's headers")
    good("btf", "dump", "-f", "c", "-o", path("vmlinux.h"))
    with open(path("tool.bpf.c"), "w") as f:
        f.write("""#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 64); __type(key, u32); __type(value, u64); } seen SEC(".maps");
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    u32 key = prev->pid;
    u64 parent = BPF_CORE_READ(next, real_parent, tgid);
    bpf_map_update_elem(&seen, &key, &parent, BPF_ANY);
    return bpf_core_enum_value(enum pid_type, PIDTYPE_TGID);
}
SEC("kprobe/vfs_read")
int BPF_KPROBE(on_read, struct file *file) { return BPF_CORE_READ(file, f_inode, i_ino) == 0; }
char LICENSE[] SEC("license") = "GPL";
""")
    for clang in clangs():
        r = run("--target=bpf", "-g", "-O2", "-D__TARGET_ARCH_x86", "-Wall", "-Werror", "-I/usr/include", "-c", path("tool.bpf.c"), "-o", path("tool.o"), binary=clang)
        assert r.code == 0, f"{clang}: {r.err[:600]}"
    assert "DATASEC '.maps'" in good("btf", "dump", path("tool.o")).out


@test
def btf_dump_bad_input():
    bad(2, r"btf dump", "btf")
    bad(2, r"did you mean btf dump", "btf", "dmp")
    bad(1, r"there is no file no-such", "btf", "dump", "no-such")
    bad(1, r"no type no_such_type", "btf", "dump", VMLINUX, "no_such_type") if os.path.exists(VMLINUX) else None
    bad(1, r"module", "btf", "dump", "module", "no_such_module")
    bad(2, r"module needs the name of a kernel module", "btf", "dump", "module")
    bad(2, r"not the name", "btf", "dump", "module", "../../etc")
    bad(1, r"no section .BTF", "btf", "dump", RB)
    with open(path("junk.btf"), "wb") as f:
        f.write(b"\x9f\xeb\x01\x00" + b"\xff" * 40)
    bad(1, r"junk.btf", "btf", "dump", path("junk.btf"))
    bad(1, r"no-such-dir", "btf", "dump", "-o", "/no-such-dir/x") if os.path.exists(VMLINUX) else None
