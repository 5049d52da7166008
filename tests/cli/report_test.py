"""rawbpf report: captures agree with the profile that made them, also cut, through a pipe, beside another, and under another root."""
import json
import os
import re
import shutil
import subprocess
import xml.dom.minidom

from harness import *
from workloads import FAMILY, SOURCE_SPLIT, SPLIT


@test
def differences_of_two_captures():
    for name, program in (("before", SPLIT), ("after", FAMILY)):
        good("profile", "--freq", "499", "--record", path(name + ".rec"), "--", program)
    before, after = (folded_stacks(good("report", path(name), "-q", "-f", "folded").out) for name in ("before.rec", "after.rec"))
    text = good("report", path("before.rec"), "--diff", path("after.rec"), "-q").out
    seen = {line.rsplit(" ", 2)[0]: tuple(map(int, line.rsplit(" ", 2)[1:])) for line in text.splitlines()}
    assert seen == {stack: (before.get(stack, 0), after.get(stack, 0)) for stack in {*before, *after}}, text[:500]
    assert list(seen) == sorted(seen, key=lambda stack: stack.encode())
    svg = good("report", path("before.rec"), "--diff", path("after.rec"), "-q", "-f", "svg", "--icicle").out
    assert xml.dom.minidom.parseString(svg).documentElement.getAttribute("class") == "icicle"
    assert 'class="f g5"' in svg and "Differential flame graph" in svg and "100.0 % of them in stacks that are gone" in svg
    # The same twice: nothing has changed.
    svg = good("report", path("before.rec"), "--diff", path("before.rec"), "-q", "-f", "svg").out
    assert not re.search(r'class="f [gs]\d"', svg) and 'class="f z"' in svg
    good("profile", "-e", "page-faults", "--record", path("faults.rec"), "--", "true")
    bad(1, r"before\.rec has samples of cpu-clock, .*faults\.rec has samples of page-faults: report can't compare them", "report", path("before.rec"), "--diff",
        path("faults.rec"))
    bad(2, r"-f top can't show differences", "report", path("before.rec"), "--diff", path("after.rec"), "-f", "top")
    bad(1, r"no-such-capture", "report", path("before.rec"), "--diff", "/no-such-capture")
    bad(2, r"both captures name standard input", "report", "-", "--diff", "-")
    with open(path("not.rec"), "w") as f:
        f.write("nothing")
    bad(1, r"not\.rec", "report", path("before.rec"), "--diff", path("not.rec"))


@test
def record_and_report_agree_with_the_live_profile():
    good("profile", "--freq", "499", "--record", path("rec"), "--", SPLIT, "1")
    r = good("report", path("rec"), "-f", "folded")
    assert re.search(r"^split;.*hot_a.* \d+$", r.out, re.M), r.out[:300]
    as_json = good("report", path("rec"), "--json").out.splitlines()
    objects = [json.loads(line) for line in as_json]
    led = ledger_of(objects)
    assert led["shown"] == sum(int(line.rsplit(" ", 1)[1]) for line in r.out.splitlines())
    assert objects[0]["command"], "the header lost the recorded command"
    # Through a pipe, and cut at many places: an error that names the file, never a crash.
    piped = subprocess.run([RB, "profile", "--freq", "199", "-q", "--record", "-", "--", SPLIT, "0.3"], capture_output=True)
    assert piped.returncode == 0, piped.stderr
    with open(path("rec.pipe"), "wb") as f:
        f.write(piped.stdout)
    assert "hot_a" in good("report", path("rec.pipe"), "-f", "folded").out
    whole = open(path("rec"), "rb").read()
    for size in [0, 1, 7, 8, 16, 40, 100, len(whole) // 3, len(whole) // 2, len(whole) - 1]:
        with open(path("rec.cut"), "wb") as f:
            f.write(whole[:size])
        r = run("report", path("rec.cut"), "-f", "folded")
        assert r.code == 1 and "rec.cut" in r.err, (size, r.code, r.err)
        if size > 100:  # what is whole is shown, with where that ends
            assert "hot_a" in r.out and f"the capture ends early, at byte {size}" in r.err, (size, r.err)
    assert "1 of" in r.err and r.out.count("\n") <= good("report", path("rec"), "-f", "folded").out.count("\n"), r.err
    # Cut as a full disk or an end by KILL cuts it, through a pipe, and beside a whole one.
    cut = subprocess.run([RB, "report", "-", "--json", "-q"], input=whole[:len(whole) // 2], capture_output=True)
    last = json.loads(cut.stdout.splitlines()[-1])
    assert cut.returncode == 1 and last["type"] == "ledger" and last["fired"] == last["shown"] > 0, cut
    assert b"standard input: the capture ends early" in cut.stderr, cut.stderr
    r = run("report", path("rec"), "--diff", path("rec.cut"))
    assert r.code == 1 and "ends early" in r.err and "hot_a" in r.out, r.err


@test
def report_names_from_another_root():
    root = path("symfs")
    real = os.path.join(root, SPLIT.lstrip("/"))
    os.makedirs(os.path.dirname(real))
    gone = path("gone")
    shutil.copy(SPLIT, gone)
    good("profile", "--freq", "199", "--record", path("rec2"), "--", gone, "0.5")
    os.remove(gone)
    where = os.path.join(root, gone.lstrip("/"))
    shutil.copy(SPLIT, where)
    assert "hot_a" in good("report", path("rec2"), "--symfs", root, "-f", "folded").out
    # A file of another build at that place must not be used for names.
    other = compile_program("other", SOURCE_SPLIT.replace("hot_a", "cold_x"), "-Wl,--build-id=sha1")
    shutil.copy(other, where)
    r = good("report", path("rec2"), "--symfs", root, "-f", "folded")
    assert "cold_x" not in r.out, "named from the wrong file"


@test
def a_capture_has_few_bytes_a_frame():
    """What a slow line carries: under 16 bytes a frame, the first occurrences of stacks and names included."""
    good("profile", "-q", "--freq", "999", "--record", path("dense.rec"), "--", SPLIT, "1")
    stacks = folded_stacks(good("report", path("dense.rec"), "-q", "-f", "folded").out)
    frames = sum(n * (stack.count(";") + 1) for stack, n in stacks.items())
    size = os.path.getsize(path("dense.rec"))
    assert frames > 500 and size < 16 * frames, f"{size} bytes for {frames} frames"


@test
def a_capture_through_a_pipe():
    p = subprocess.Popen([RB, "profile", "-q", "--freq", "499", "--record", "-", "--", SPLIT, "0.5"], stdout=subprocess.PIPE)
    r = subprocess.run([RB, "report", "-", "-q", "-f", "top"], stdin=p.stdout, capture_output=True, text=True, timeout=60)
    p.stdout.close()
    assert p.wait(timeout=20) == 0 and r.returncode == 0, r.stderr
    assert re.search(r"hot_a", r.stdout) and "FUNCTION" in r.stdout, r.stdout


@test
def a_terminal_is_spared_the_bytes_of_a_capture():
    if not shutil.which("script"):
        raise Skip("needs script(1)")
    p = subprocess.run(["script", "-qec", f"{RB} profile --record - -d 0.2", "/dev/null"], capture_output=True, timeout=30,
                       stdin=subprocess.DEVNULL)
    assert p.returncode == 2 and b"terminal" in p.stdout and b"\0" not in p.stdout, (p.returncode, p.stdout[:200])
