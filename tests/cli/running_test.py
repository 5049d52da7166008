"""rawbpf prog, map, link, btf: list and show, compared with bpftool field by field."""
import json
import os
import re
import shutil
import subprocess

from harness import *
from kernel_objects import *

BPFFS = "/sys/fs/bpf"


@test
def running_programs_are_listed():
    needs_root()
    with Attached(COUNT % {"name": "running_listed", "section": "raw_tp/sched_process_exec", "value": 0}) as a:
        program, = [p for p in json_rows(RB, "prog", "list", "--json") if p["name"] == "running_listed"]
        assert list(program)[:4] == ["type", "id", "prog_type", "name"], program
        assert [p["pid"] for p in program["pids"]] == [a.process.pid] and program["pids"][0]["comm"] == "rawbpf", program
        link, = [l for l in json_rows(RB, "link", "list", "--json") if l["prog_id"] == program["id"]]
        assert link["what"] == "raw_tp sched_process_exec" and link["prog_name"] == "running_listed", link
        map_row, = json_rows(RB, "map", "show", "--json", str(program["map_ids"][0]))
        assert map_row["name"] == "running_listed_"[:15] and map_row["map_type"] == "array" and map_row["max_entries"] == 4, map_row
        types, = [b for b in json_rows(RB, "btf", "list", "--json") if b["id"] == program["btf_id"]]
        assert program["id"] in types["prog_ids"], types
        # Ids have names beside them, and all of it is on one line.
        line, = [l for l in good("prog", "list").out.splitlines() if "running_listed" in l]
        assert re.search(rf"^ *{program['id']}  raw_tracepoint  running_listed .* {map_row['id']} running_listed_ .*rawbpf\[{a.process.pid}\]", line), line
        for way in (str(program["id"]), "running_listed"):
            assert good("prog", "show", way).out.startswith(f"program {program['id']} running_listed (raw_tracepoint)\n"), way
        assert f"program    {program['id']} running_listed\n" in good("link", "show", str(link["id"])).out
        assert good("map", "show", "running_listed_m").out.splitlines()[1] == "  size       key 4 B, value 8 B, 4 entries at most"
        # The program's own map says what it does; with statistics off it was never counted.
        assert program["run_cnt"] == 0 or program["run_time_ns"] > 0, program


@test
def running_programs_are_what_bpftool_says():
    needs_root()
    compared = 0
    for section, value in (("raw_tp/sched_process_exec", 0), ("xdp", 2), ("tcx/ingress", 0), ("iter/task", 0)):
        options = ("-i", "lo") if section in ("xdp", "tcx/ingress") else ()
        try:
            with Attached(COUNT % {"name": "running_compare_long_name", "section": section, "value": value}, *options) as a:
                # The kernel frees a program some time after the last file of it was closed: the one before may be listed, too.
                theirs = max((p for p in bpftool_rows("bpftool", "-f", "-j", "prog", "list") if p.get("name", "").startswith("running_compare")),
                             key=lambda p: p["id"])
                ours, = json_rows(RB, "prog", "show", "--json", str(theirs["id"]))
                compare(theirs, ours, "prog")
                assert ours["name"] == "running_compare_long_name", ours
                compared += 1
        except Skip as reason:
            if "no such program" not in str(reason):
                raise
    assert compared >= 2, compared


@test
def running_maps_of_all_types_are_what_bpftool_says():
    needs_root()
    if not shutil.which("bpftool"):
        raise Skip("needs bpftool")
    if not os.path.ismount(BPFFS):
        raise Skip(f"needs a bpf file system at {BPFFS}")
    folder = f"{BPFFS}/running_test_{os.getpid()}"
    os.mkdir(folder)
    made, missing = 0, []
    try:
        inner = ["bpftool", "map", "create", f"{folder}/inner", "type", "array", "key", "4", "value", "8", "entries", "3", "name", "running_inner"]
        assert run(*inner, binary=None).code == 0
        for kind, (key, value, entries, flags) in MAPS.items():
            words = ["bpftool", "map", "create", f"{folder}/{kind}", "type", kind, "key", str(key), "value", str(value), "entries", str(entries),
                     "name", f"running_{kind}"[:15], "flags", str(flags)]
            if kind.endswith("_of_maps"):
                words += ["inner_map", "pinned", f"{folder}/inner"]
            if run(*words, binary=None).code != 0:
                missing.append(kind)
                continue
            made += 1
            pin = f"{folder}/{kind}"
            theirs, = bpftool_rows("bpftool", "-f", "-j", "map", "show", "pinned", pin)
            ours, = json_rows(RB, "map", "show", "--json", pin)
            compare(theirs, ours, "map")
            assert ours["pinned"] == [pin] and ours["pids"] == [], ours
            row, = [m for m in json_rows(RB, "map", "list", "--json") if m["id"] == ours["id"]]
            assert row == ours, (row, ours)
    finally:
        shutil.rmtree(folder)
    assert made >= 20, f"this kernel makes too few types of maps: not {missing}"


LINKS = [  # what the section is, what else says where, the value to return, the field that is the kind's own
    ("raw_tp/sched_process_exec", (), 0, "tp_name"), ("xdp", ("-i", "lo"), 2, "ifindex"), ("tcx/ingress", ("-i", "lo"), 0, "attach_type"),
    ("cgroup_skb/egress", ("--cgroup", "CGROUP"), 1, "cgroup_id"), ("sk_lookup", ("--netns", "/proc/self/ns/net"), 1, "netns_ino"),
    ("iter/task", (), 0, "target_name"), ("tp_btf/sched_process_exec", (), 0, "tp_name"), ("tracepoint/sched/sched_process_exec", (), 0, "prog_id"),
    ("uprobe/PROGRAM:tick", (), 0, "prog_id"), ("uprobe.multi/PROGRAM:tick", (), 0, "prog_id"), ("fentry/do_exit", (), 0, "target_btf_id"),
    ("perf_event", ("-F", "1"), 0, "prog_id"),
]


@test
def running_links_are_what_bpftool_says():
    needs_root()
    program = compile_program("running_ticks", 'extern "C" __attribute__((noinline)) void tick() { asm volatile(""); }\nint main() { tick(); }')
    cgroup = next((c for c in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup") if os.path.exists(f"{c}/cgroup.procs")), None)
    seen = []
    for section, options, value, own in LINKS:
        if "CGROUP" in options and not cgroup:
            continue
        options = tuple(cgroup if o == "CGROUP" else o for o in options)
        text = COUNT % {"name": "running_link", "section": section.replace("PROGRAM", program), "value": value}
        try:
            with Attached(text, *options) as a:
                theirs = [l for l in bpftool_rows(*a.inside("bpftool", "-f", "-j", "link", "list")) if a.process.pid in [p["pid"] for p in l.get("pids", [])] or
                          run("prog", "show", str(l.get("prog_id", 0)), "--json").out.count('"name":"running_link"')]
                assert theirs, section
                for link in theirs:
                    ours, = json_rows(*a.inside(RB, "link", "show", "--json", str(link["id"])))
                    compare(link, ours, "link")
                    assert own in ours and [p["pid"] for p in ours["pids"]] == [a.process.pid], ours
                    seen.append((section, ours["what"]))
        except Skip as reason:
            if "no such program" not in str(reason):
                raise
    assert len({section for section, _ in seen}) >= 6, seen
    words = dict(seen)
    assert words.get("xdp", "xdp on lo") == "xdp on lo" and words.get("tcx/ingress", "tcx_ingress on lo") == "tcx_ingress on lo", words
    assert words.get("iter/task", "iter task") == "iter task", words
    assert words.get("tp_btf/sched_process_exec", "tp_btf sched_process_exec")== "tp_btf sched_process_exec", words


@test
def running_objects_that_are_not_there():
    needs_root()
    bad(1, r"no program has the id 4294967295\nhint: rawbpf prog list", "prog", "show", "4294967295")
    bad(1, r"no map called running_nobody is loaded\nhint: give its name, its id \(rawbpf map list\)", "map", "show", "running_nobody")
    bad(1, r"a link has no name, so eth0 can't name one\nhint: give the id", "link", "show", "eth0")
    bad(1, r"no BTF called running_nobody is loaded", "btf", "show", "running_nobody")
    bad(1, r"/sys/fs/bpf/running_nobody: .*nothing is pinned|No such file", "map", "show", "/sys/fs/bpf/running_nobody")
    bad(3, r"/: .*EACCES", "prog", "show", "/")
    bad(2, r"prog needs a second word\nhint: there is prog list", "prog")
    bad(2, r"did you mean prog list\?", "prog", "lits")
    bad(2, r".", "prog", "list", "12")


@test
def running_objects_need_privileges():
    needs_root()
    if not shutil.which("setpriv"):
        raise Skip("needs setpriv")
    os.chmod(WORK, 0o755)
    copy = path("rawbpf")
    shutil.copy(RB, copy)
    for kind in ("prog", "map", "link", "btf"):
        r = run("setpriv", "--reuid", "65534", "--clear-groups", copy, kind, "list", binary=None)
        assert r.code == 3 and "needs CAP_SYS_ADMIN" in r.err and not r.out, (kind, r.code, r.err)
