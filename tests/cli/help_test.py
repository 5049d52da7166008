"""What the command line says of itself: help, versions, words that it doesn't know, completions and man pages."""
import os
import re
import shutil
import subprocess

from harness import *
from kernel_objects import json_rows, needs_root
from prog_test import Pinned
from workloads import SPLIT


@test
def version_and_help():
    assert re.match(r"rawbpf \d+\.\d+", good("--version").out)
    (version,) = json_rows(RB, "version", "--json")
    assert good("--version").out == f"rawbpf {version['version']}\n"
    plain = good("version", "-v").out.splitlines()[1].split(", ")
    assert version["has"] == [f.split(" (")[0] for f in plain if not f.startswith("no ")], (version, plain)
    assert version["lacks"] == [f[3:].split(" (")[0] for f in plain if f.startswith("no ")], (version, plain)
    top = good("--help").out
    assert "profile" in top and "report" in top
    text = good("profile", "--help").out
    for option in ("--freq", "--hw", "--pid", "--cpu", "--cgroup", "--user-stacks", "--kernel-stacks", "--idle", "--duration", "--ps", "--format",
                   "--record", "--syscalls", "--ready-fd", "--as-root", "--unwind", "--unwind-memory", "--depth"):
        assert option in text, f"--help lacks {option}"
    assert "rawbpf profile" in text, "--help has no example"
    assert max(len(line) for line in text.splitlines()) <= 100


@test
def a_first_word_of_two_lists_what_follows_it():
    listed = good("--help").out.split("Commands")[1].split("Exit status")[0]
    names = re.findall(r"^  (\w+ \w+) ", listed, re.M)
    alone = set(re.findall(r"^  (\w+)  ", listed, re.M))
    groups = {name.split()[0] for name in names} - alone
    assert groups >= {"btf", "map", "prog"}, groups
    for group in groups:
        text = good(group, "--help").out
        assert text == good("help", group).out == good(group, "-h").out, group
        assert re.findall(r"^  (\w+ \w+) ", text.split("Commands")[1], re.M) == [n for n in names if n.split()[0] == group], text


@test
def unknown_words_are_answered_with_the_nearest():
    bad(2, r"--freq", "profile", "--frq", "99")
    bad(2, r"profile", "profil")
    bad(2, r".", "profile", "--no-such-option")
    bad(2, r"folded", "profile", "-f", "fodled")
    bad(2, r"freq", "profile", "--freq", "many")
    bad(2, r"freq", "profile", "--freq", "-5")
    bad(2, r"duration", "profile", "-d", "soon")
    bad(2, r"user", "profile", "--user-stacks", "--kernel-stacks", "-d", "1")
    bad(2, r"dwarf", "profile", "--unwind", "dwrf")
    for size in ("", "64Q", "M", "-1", "1K", "5G", "99999999999999999999", "17179869184G"):
        bad(2, r"--unwind-memory", "profile", "--unwind-memory", size)
    for depth in ("0", "256", "many"):
        bad(2, r"--depth", "profile", "--depth", depth)
    bad(2, r"--kernel-stacks", "profile", "--unwind", "dwarf", "--kernel")
    bad(2, r"--unwind dwarf needs rawbpf's own BPF program", "profile", "--unwind", "dwarf", "--object", "own.bpf.o")
    bad(2, r"--bpf clang: rawbpf no longer carries.*\n.*--object profile\.bpf\.o", "profile", "--bpf", "clang")
    bad(1, r"--object: nowhere\.bpf\.o: ", "profile", "--bpf", "nowhere.bpf.o", "-d", "0.1")


@test
def the_seeds_own_spellings():
    good("profile", "-freq", "199", "-ps", "-o", path("seed.txt"), "--", SPLIT, "1")
    assert "hot_a" in read("seed.txt") and "workload" in read("seed.txt")
    child = subprocess.Popen([SPLIT, "20"])
    try:
        good("profile", "-freq", "199", "-pid", str(child.pid), "-d", "1", "-f", "folded", "-o", path("seed.folded"))
    finally:
        child.kill()
        child.wait()
    assert "hot_a" in read("seed.folded")


@test
def bash_completes_options_values_and_commands():
    script = r"""
source "$1"
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMPREPLY=(); _rawbpf; printf '%s\n' "${COMPREPLY[*]}"; }
try rawbpf prof
try rawbpf profile --fre
try rawbpf profile -f folded
try rawbpf completion z
try rawbpf profile -q -- tru
try rawbpf bt
try rawbpf btf du
try rawbpf btf dump --form
try rawbpf help repo
try rawbpf helper ktime_get_n
try rawbpf isa jsl
try rawbpf load -i l
try "$2" lab start 01-
try "$2" trace tracep
try "$2" trace syscall:opena
try "$2" trace no-such-kind:x
"""
    with open(path("bash-completion"), "w") as f:
        f.write(good("completion", "bash").out)
    p = subprocess.run(["bash", "-c", script, "bash", path("bash-completion"), RB], capture_output=True, text=True, check=True)
    lines = p.stdout.splitlines()
    assert lines[:4] == ["profile", "--freq", "folded folded-ext", "zsh"], lines
    assert "true" in lines[4].split(), lines
    assert lines[5:9] == ["btf", "dump", "--format", "report"], lines
    assert lines[9:11] == ["ktime_get_ns", "jslt jslt32 jsle jsle32"], lines
    assert lines[11].split() == [name for name in sorted(os.listdir("/sys/class/net")) if name.startswith("l")], lines
    assert lines[12:14] == ["01-bytes", "tracepoint:"], lines
    # What stands before the colon is not replaced; without tracefs no system call is known.
    assert lines[14] == ("openat openat2" if os.path.isdir("/sys/kernel/tracing/events/syscalls") else ""), lines
    assert lines[15] == "", lines


@test
def words_are_what_completions_offer():
    needs_root()
    with Pinned() as p:
        assert "prog_filter" in good("words", "programs").out.split() and "passed" in good("words", "maps", "pas").out.split()
        assert good("words", "programs", "no-such-prefix").out == ""
    assert all(word.isdigit() for word in good("words", "links").out.split()) and "vmlinux" in good("words", "btf").out.split()
    assert good("words", "probes", "k").out.split() == ["kprobe:", "kretprobe:"]
    assert f"uprobe:{os.path.dirname(RB)}/" in good("words", "probes", f"uprobe:{os.path.dirname(RB)}").out.split()
    # Other tests' files may begin with its name.
    files = good("words", "probes", f"uprobe:{SPLIT}").out.split()
    assert f"uprobe:{SPLIT}:" in files and all(file.startswith(f"uprobe:{SPLIT}") for file in files), files
    assert f"uprobe:{SPLIT}:hot_a" in good("words", "probes", f"uprobe:{SPLIT}:hot").out.split()
    if os.path.isdir("/sys/kernel/tracing/events/sched"):
        assert "tracepoint:sched:" in good("words", "probes", "tracepoint:sch").out.split()
        assert "tracepoint:sched:sched_switch" in good("words", "probes", "tracepoint:sched:sched_sw").out.split()
    # Nothing that can't be found out is an error.
    assert good("words", "probes", "uprobe:/no/such/file:x").out == good("words", "nothing").out == ""


@test
def completions_are_accepted():
    for shell, check in (("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]), ("fish", ["fish", "-n"])):
        text = good("completion", shell).out
        assert "profile" in text and "freq" in text, shell
        with open(path("completion." + shell), "w") as f:
            f.write(text)
        if shutil.which(check[0]):
            subprocess.run([*check, path("completion." + shell)], check=True)


@test
def man_pages_are_well_formed():
    for command in ("profile", "report", "btf dump"):
        text = good("man", *command.split()).out
        assert ".TH" in text and ".SH" in text
        if shutil.which("man"):
            page = path(command.replace(" ", "-") + ".1")
            with open(page, "w") as f:
                f.write(text)
            p = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8", "MANPAGER": "cat"})
            assert p.returncode == 0 and b"warning" not in p.stderr, p.stderr


@test
def encode_and_decode_take_instructions_apart():
    shown = good("decode", "b7 00 00 00 2a 00 00 00").out
    assert shown.startswith("r0 = 42\nmov: dst = the number"), shown
    assert "b7           .....111  class      alu64" in shown and "1011....  operation  mov" in shown, shown
    # There and back, for each instruction of the table: the bytes of one are the bytes of the other, and JSON's fields make them up.
    for line in good("isa").out.splitlines()[1:]:
        text = line[19:65].strip()
        if not text or text.startswith("goto") or "goto" in text or text.startswith("call") or text.startswith("may_goto"):
            continue
        made = [json.loads(l) for l in good("encode", text, "--json").out.splitlines()]
        assert made[0]["type"] == "header" and len(made) == 2, (text, made)
        one = made[1]
        again = json.loads(good("decode", one["bytes"], "--json").out.splitlines()[1])
        assert again == one and one["undefined"] is None, (text, one, again)
        raw = bytearray(len(one["bytes"].split()))
        for f in one["fields"]:
            n = int.from_bytes(raw[f["byte"]:f["byte"] + 4], "little") | f["value"] << f["low_bit"]
            raw[f["byte"]:f["byte"] + 4] = n.to_bytes(4, "little")
        assert raw == bytes.fromhex(one["bytes"]), (text, one)
    r = run("decode", "ff 01 00 00 00 00 00 00")
    assert r.code == 1 and "no instruction has the opcode 0xff" in r.out, r
    r = run("decode", "b7 10 00 00 2a 00 00 00")
    assert r.code == 1 and "src is 1, but must be 0" in r.out, r
    bad(1, "lacks 6", "decode", "18 00")
    bad(1, "the last 8 are missing", "decode", "18 00 00 00 01 00 00 00")
    bad(1, "that is no instruction", "encode", "r1 ++ 5")
    bad(1, "it has no instructions", "encode", "")


@test
def isa_and_helper_tell_of_one_and_of_all():
    assert len(good("isa").out.splitlines()) == 183
    assert "if r1 s< r2 goto +3" in good("isa", "jslt").out
    rows = [json.loads(line) for line in good("isa", "--json").out.splitlines()[1:]]
    assert len(rows) == 182 and {r["type"] for r in rows} == {"instruction"}
    one = json.loads(good("isa", "--json", "0xdb").out.splitlines()[1])
    assert one["opcode"] == 0xdb and one["example"] and one["does"] and one["cpu"] in ("v1", "v3", None), one
    bad(1, "did you mean `jslt`", "isa", "jslr")
    assert len(good("helper").out.splitlines()) >= 211
    assert "void *bpf_map_lookup_elem(void *map, const void *key);" in good("helper", "bpf_map_lookup_elem").out
    rows = [json.loads(line) for line in good("helper", "--json").out.splitlines()[1:]]
    assert len(rows) >= 211 and rows[4]["name"] == "bpf_ktime_get_ns" and rows[4]["since"] == "4.1" and rows[4]["gpl_only"] is False
    one = json.loads(good("helper", "--json", "5").out.splitlines()[1])
    assert one["prototype"] == "__u64 bpf_ktime_get_ns(void)" and isinstance(one["here"], list), one
    assert good("helper", "5").out == good("helper", "ktime_get_ns").out
    bad(1, "did you mean ktime_get_ns", "helper", "ktime_get_n")
