"""Names of functions: of code made at run time, from files of symbols beside the program, and of what has none."""
import os
import re
import shutil
import subprocess
import time

from harness import *
from workloads import JIT, SPLIT


@test
def names_of_a_jit():
    p = subprocess.Popen([JIT, "20"])
    try:
        time.sleep(0.3)
        good("profile", "--freq", "299", "-p", str(p.pid), "-d", "1", "--json", "-o", path("jit.json"))
        names = [n for o in rows("jit.json") if o["type"] == "sample" for n in stack_names(o)]
        assert any(n == "jitted::loop" for n in names), sorted(set(names))
    finally:
        p.kill()
        p.wait()
        try:
            os.remove(f"/tmp/perf-{p.pid}.map")
        except FileNotFoundError:
            pass


@test
def names_of_a_jit_that_has_gone_with_its_tmp():
    if os.geteuid() != 0 or not shutil.which("unshare"):
        raise Skip("needs root and unshare")
    private = path("private-tmp")
    os.makedirs(private)
    inside = f'mount --bind "{private}" /tmp'
    program = "/var/tmp/rawbpf-cli-jit"  # what hides /tmp may hide the scratch folder, too
    shutil.copy(JIT, program)
    try:
        if run("unshare", "-mpf", "--mount-proc", "sh", "-c", inside, binary=None).code != 0:
            raise Skip("needs to be allowed a mount namespace")
        good("profile", "--freq", "499", "-f", "folded", "-o", path("jit-gone.folded"), "--", "unshare", "-mpf", "--mount-proc", "sh", "-c",
             f"{inside}; {program} 1; sleep 0.3")
    finally:
        os.remove(program)
    assert "jitted::loop" in read("jit-gone.folded"), read("jit-gone.folded")[:600]


@test
def names_from_separate_and_compressed_symbols():
    if not shutil.which("objcopy"):
        raise Skip("needs objcopy")
    stripped = path("stripped")
    debug = path("stripped.debug")
    for command in (["objcopy", "--only-keep-debug", SPLIT, debug], ["objcopy", "--strip-all", SPLIT, stripped],
                    ["objcopy", f"--add-gnu-debuglink={debug}", stripped]):
        subprocess.run(command, check=True)
    good("profile", "--freq", "299", "-f", "folded", "-o", path("s.folded"), "--", stripped, "0.5")
    assert "hot_a" in read("s.folded"), "the separate debug file was not read"
    if shutil.which("xz"):
        mini = path("mini")
        subprocess.run(["objcopy", "--strip-all", SPLIT, mini], check=True)
        shutil.copy(debug, path("mini.symbols"))
        subprocess.run(["xz", "-kf", path("mini.symbols")], check=True)
        subprocess.run(["objcopy", f"--add-section=.gnu_debugdata={path('mini.symbols')}.xz", mini], check=True)
        r = run("profile", "--freq", "299", "-f", "folded", "-o", path("m.folded"), "--", mini, "0.5")
        assert r.code == 0
        if "hot_a" not in read("m.folded"):
            assert "liblzma" in good("--version", "-v").out and False, "the compressed symbols were not read"


@test
def functions_without_names_are_told_apart():
    if not shutil.which("objcopy") or not shutil.which("readelf"):
        raise Skip("needs objcopy and readelf")
    nameless = path("nameless")
    subprocess.run(["objcopy", "--strip-all", SPLIT, nameless], check=True)
    text = subprocess.run(["readelf", "-lsW", SPLIT], stdout=subprocess.PIPE, check=True, text=True).stdout
    load = next(line.split() for line in text.splitlines() if re.match(r"\s*LOAD .* R E ", line))  # LOAD offset address ...
    moved = int(load[1], 16) - int(load[2], 16)
    starts = {line.split()[7]: int(line.split()[1], 16) + moved for line in text.splitlines() if re.search(r" FUNC .* _Z\d+hot_[ab]", line)}
    hot_a, hot_b = (f"[nameless+{starts[name]:#x}]" for name in sorted(starts))
    good("profile", "--freq", "299", "--record", path("nameless.rbpf"), "--", nameless, "0.5")

    def shown(*format):
        return good("report", path("nameless.rbpf"), "-f", *format).out
    assert re.search(rf"^ *\d\d\.\d % +\d\d\.\d % +{re.escape(hot_a)} +nameless$", shown("top"), re.M), shown("top")
    for format in ("svg", "speedscope", "firefox") if has_json() else ("svg",):
        assert hot_a in shown(format) and hot_b in shown(format), f"{format} lacks {hot_a} or {hot_b}"
    # As stackcollapse-perf has it.
    assert ";[nameless];[nameless]" in shown("folded") and "+0x" not in shown("folded"), shown("folded")
