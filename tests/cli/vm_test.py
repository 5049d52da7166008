"""rawbpf vm, run --kernel, bench --kernel: other kernels, in guests. What boots one needs QEMU and a kernel that was fetched before."""
from harness import *

KERNEL = "6.12"
LOOP = """param n = 10
asm {
.program p "xdp"
    r0 = 0
    r1 = 0
again:
    r0 += r1
    r1 += 1
    if r1 < $n goto again
    r0 = 2
    exit
}
attach p nowhere
packet 00112233445566778899aabbccdd to p times 200
measure result = packet.result
measure ns = packet.ns
workload cat /proc/version
wait workload
expect workload.status == 0
"""


def needs_guests():
    cache = os.environ.get("RAWBPF_VM_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "rawbpf-vm")
    if not shutil.which("qemu-system-x86_64") or os.uname().machine != "x86_64":
        raise Skip("no qemu-system-x86_64")
    if not os.path.isdir(os.path.join(cache, "kernels", KERNEL)):
        raise Skip(f"kernel {KERNEL} has not been fetched (./dev vm --fetch {KERNEL})")
    if not os.path.exists("/bin/busybox") and not os.path.exists("/usr/bin/busybox"):
        raise Skip("no busybox")


@test
def vm_says_what_is_wrong():
    names = good("vm", "--list").out.split()
    assert KERNEL in names, names
    rows = [json.loads(line) for line in good("vm", "--list", "--json").out.splitlines()]
    assert rows[0]["type"] == "header" and [row["name"] for row in rows[1:]] == names, rows
    assert all(row["arch"] == (row["name"].split("-")[0] if "-" in row["name"] else "amd64") for row in rows[1:]), rows
    bad(2, "--json is about --list", "vm", "--json", "--", "true")
    bad(2, r"no command was given\n.*rawbpf vm -- rawbpf doctor", "vm")
    bad(2, r"no kernel is called 6.13; there are: 5.10", "vm", "--kernel", "6.13", "--", "true")
    bad(2, r"--kernel 5.10,: a name is empty", "vm", "--kernel", "5.10,", "--", "true")
    bad(2, r"there is no /nowhere", "vm", "--file", "/nowhere", "--", "true")
    bad(2, r"DIR is missing", "vm", "bundle")
    bad(2, r"is there already\nhint: nothing is overwritten", "vm", "bundle", path("."))
    bad(2, r"there is no folder /nowhere for class", "vm", "bundle", "/nowhere/class")
    bad(2, r"no kernel is called 6.13; there are: 5.10", "vm", "bundle", "--kernel", "6.13", path("class"))
    assert not os.path.exists(path("class"))
    file = written("guest.exp", LOOP)
    bad(2, r"--clock needs --kernel.*\n.*--kernel", "run", "--count", "instructions", file)
    bad(1, r"has no figures to compare", "run", "--kernel", KERNEL, "--repeat", "2", written("unmeasured.exp", "wait 1s\n"))
    bad(1, r"guest_wrong.exp:1:1", "run", "--kernel", KERNEL, written("guest_wrong.exp", "wibble\n"))
    bad(3, r"c_source.exp:1: a guest has no compiler for C\n.*object FILE.bpf.o", "run", "--kernel", KERNEL,
        written("c_source.exp", "c {\nint x;\n}\nwait 1s\n"))
    bad(1, r"nowhere.bin", "run", "--kernel", KERNEL, written("absent.exp", "workload ./nowhere.bin\nwait workload\n"))
    bad(2, r"no kernel is called 6.13", "run", "--kernel", "6.13", file)
    # Where the scripts aren't installed.
    os.makedirs(path("alone"), exist_ok=True)
    shutil.copy(RB, path("alone/rawbpf"))
    r = run("vm", "--list", binary=path("alone/rawbpf"))
    assert r.code == 3 and "the scripts that boot guests aren't installed here" in r.err, r.err


@test
def experiments_run_in_guests_by_their_own_clock():
    needs_guests()
    file = written("guest.exp", LOOP)
    command = ("run", "--kernel", KERNEL, "--count", "instructions", "--set", "n=10,20", "--repeat", "2")
    r = good(*command, "--json", file, timeout=300)
    lines = [json.loads(line) for line in r.out.splitlines()]
    assert lines[0] == {"type": "guest", "name": KERNEL, "clock": "instructions"} and lines[1]["kernel"].startswith(KERNEL), lines[:2]
    figures = {(l["variant"], l["figure"]): l["values"] for l in lines if l["type"] == "figure"}
    assert figures["n=10", "result"] == [2, 2] and figures["n=20", "ns"][0] > figures["n=10", "ns"][0] > 0, figures
    r = good(*command, file, timeout=300)
    assert re.search(rf"^{KERNEL} n=10 +result +2 +2 +2 ", r.out, re.M) and "1 ns is one" in r.out, r.out
    table = {tuple(m): float(n) for *m, n in re.findall(rf"^{KERNEL} (n=\d+) +(ns) +2 +\S+ +(\S+)", r.out, re.M)}
    # The same figure, however busy this machine is.
    for n in ("n=10", "n=20"):
        assert abs(table[n, "ns"] - sum(figures[n, "ns"]) / 2) < 0.1, (table, figures)


@test
def commands_run_in_guests():
    needs_guests()
    program = written("quick.asm", "r0 = 0\nexit\n")
    r = good("bench", "--kernel", KERNEL, "--repeat", "60", "--json", program, timeout=300)
    lines = [json.loads(line) for line in r.out.splitlines()]
    assert lines[0]["kernel"].startswith(KERNEL) and lines[1]["type"] == "variant" and lines[1]["verified_insns"] == 2, lines
    r = run("vm", "--kernel", KERNEL, "-q", "--file", program, "--", "sh", "-c", f"uname -r; test -s {program}; echo gone >&2; exit 7", timeout=300)
    assert r.code == 7 and r.out.startswith(KERNEL) and r.err == "gone\n", (r.code, r.out, r.err)
