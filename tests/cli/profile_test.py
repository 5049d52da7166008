"""rawbpf profile: what is sampled, of whom, for how long; and what can't be."""
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import *
from kernel_objects import held_by
from workloads import FAMILY, SOURCE_SPLIT, SPLIT


@test
def events_are_named_and_counted():
    bad(2, r'there is no event "page-fault".*major-faults(.|\n)*did you mean page-faults', "profile", "-e", "page-fault", "-d", "1")
    bad(2, r"CATEGORY:NAME", "profile", "-e", "tracepoint:sched", "-d", "1")
    bad(2, r"--freq is for cpu-clock and cycles(.|\n)*--period N", "profile", "-e", "page-faults", "-F", "99", "-d", "1")
    bad(2, r"-F HZ", "profile", "-c", "10", "-d", "1")
    bad(2, r"exclude each other", "profile", "-e", "cycles", "-c", "10", "-F", "99", "-d", "1")
    for count in ("0", "2147483648", "many"):
        bad(2, r"--count|-c", "profile", "-e", "page-faults", "-c", count, "-d", "1")
    bad(2, r"spans of time", "profile", "-e", "page-faults", "--otlp", "http://localhost:1", "-d", "1")
    bad(1, r"sched/sched_swich: not in this kernel(.|\n)*sched_switch", "profile", "-e", "tracepoint:sched:sched_swich", "-d", "1")
    bad(1, r"sched/sched_switch", "profile", "-e", "nowhere:sched_switch", "-d", "1")

    touch = [sys.executable, "-c", "b=bytearray(40<<20)\nfor i in range(0,len(b),4096): b[i]=1"]
    r = good("profile", "-e", "page-faults", "-c", "5", "--record", path("faults.rec"), "-f", "folded", "-o", path("faults.folded"),
             "--", *touch)
    assert re.search(r"samples in [^:]*: page-faults, one in 5\n", r.err), r.err
    counts = [int(line.rsplit(" ", 1)[1]) for line in read("faults.folded").splitlines()]
    assert sum(counts) > 50 and all(n % 5 == 0 for n in counts), counts[:10]
    # A capture says so, too, in every format.
    assert re.search(r"samples in [^:]*: page-faults, one in 5\n", good("report", path("faults.rec"), "-f", "folded", "-o", path("again")).err)
    assert sum(int(line.rsplit(" ", 1)[1]) for line in read("again").splitlines()) == sum(counts)
    first = good("report", "-q", path("faults.rec"), "-f", "perf-script").out.splitlines()[0]
    assert re.search(r" 5 page-faults: $", first), first
    svg = good("report", "-q", path("faults.rec"), "-f", "svg").out
    assert "page-faults flame graph" in svg and "one in 5 sampled" in svg
    raw = subprocess.run([RB, "report", "-q", path("faults.rec"), "-f", "pprof"], capture_output=True, check=True).stdout
    packed = gzip.decompress(raw)
    assert b"page-faults" in packed and b"\x0bnanoseconds" not in packed
    if has_json():
        lines = [json.loads(l) for l in good("report", "-q", path("faults.rec"), "--json").out.splitlines()]
        assert lines[0]["event"] == "page-faults" and lines[0]["period"] == 5, lines[0]
        assert all(l["weight"] == 5 for l in lines[1:-1]), lines[1]
        ledger_of(lines)


@test
def threads_apart():
    threads = [sys.executable, "-c", "import threading,time\nend=time.time()+0.6\n"
               "def f():\n while time.time()<end: sum(range(1000))\n"
               "t=[threading.Thread(target=f) for _ in range(2)]\n[x.start() for x in t]\n[x.join() for x in t]"]
    good("profile", "-F", "997", "--record", path("threads.rec"), "-t", "-f", "folded", "-o", path("threads.folded"), "--", *threads)
    heads = {line.split(";")[0].rsplit(" ", 1)[0] for line in read("threads.folded").splitlines()}
    assert all(re.search(r"-\d+/\d+$", h) for h in heads), heads
    assert len(heads) >= 3, heads  # the first thread starts the two, and whoever was it before its exec
    assert len({h.rsplit("/")[-1] for h in heads}) >= 3, heads
    top = good("report", "-q", path("threads.rec"), "--per-thread", "-f", "top").out
    assert "  TOTAL  THREAD\n" in top and re.search(r"thread \S.*-\d+/\d+\n", top), top  # Python 3.14 names its threads "Thread-1 (f)"
    merged = good("report", "-q", path("threads.rec"), "-f", "folded").out
    assert sum(int(l.rsplit(" ", 1)[1]) for l in merged.splitlines()) == \
        sum(int(l.rsplit(" ", 1)[1]) for l in read("threads.folded").splitlines())


@test
def containers_and_budgets_are_checked():
    bad(2, r"exclude each other", "profile", "--cgroup", "/sys/fs/cgroup", "--container", "abc", "-d", "1")
    bad(1, r"--container: container no-such-one: ", "profile", "--container", "no-such-one", "-d", "1")
    bad(1, r"--container: there is no process 4194305", "profile", "--container", "4194305", "-d", "1")
    for percent in ("0", "101%", "-1", "many", "1h", "%"):
        bad(2, r"isn't a share of a CPU", "profile", "--max-cpu=" + percent, "-d", "1")
    bad(2, r"a larger --period", "profile", "--max-cpu", "1%", "-e", "page-faults", "-d", "1")
    bad(2, r"leaves ticks out", "profile", "--max-cpu", "1%", "--otlp", "http://localhost:1", "-d", "1")


@test
def a_budget_lowers_the_rate():
    # A thousandth of a percent is less than any profile needs, so that the rate has to fall.
    r = good("profile", "-v", "-F", "499", "--max-cpu", "0.001%", "-f", "folded", "-o", path("budget.folded"), "--", SPLIT, "5")
    assert re.search(r"warning: to stay within 0.001 % of a CPU the clock ticked at less than 499 Hz for \d+ % of the time", r.err), r.err
    assert re.search(r"% of a CPU: now at \S+ Hz", r.err), r.err
    shown = int(re.search(r"shown +([\d,]+)", r.err).group(1).replace(",", ""))
    counted = sum(int(line.rsplit(" ", 1)[1]) for line in read("budget.folded").splitlines())
    assert counted > shown, (counted, shown)  # samples stand for those left out


@test
def bad_input_is_named():
    bad(1, r"999999", "profile", "-p", "999999", "-d", "1")
    limit = open("/proc/sys/kernel/perf_event_max_sample_rate").read().strip()
    r = bad(1, r"perf_event_max_sample_rate", "profile", "--freq", "9000000", "-d", "1")
    assert limit in r.err, r.err
    bad(1, r"no-such-dir", "profile", "-d", "1", "-f", "svg", "-o", "/no-such-dir/x.svg")
    bad(1, r"no-such-program", "profile", "-d", "1", "--", "/no-such-program")
    bad(1, r"no-such-file", "report", "/no-such-file")
    with open(path("orphan"), "w") as f:
        f.write("#!/no-such-interpreter\n")
    os.chmod(path("orphan"), 0o755)
    bad(1, r"orphan.*interpreter.*ENOENT", "profile", "-q", "-f", "folded", "--", path("orphan"))
    bad(1, r"cpu|CPU", "profile", "--cpu", "4095", "-d", "1")
    bad(1, r"cgroup", "profile", "--cgroup", "/no-such-cgroup", "-d", "1")


@test
def hardware_clock_without_a_pmu():
    if os.path.exists("/sys/bus/event_source/devices/cpu") or os.path.exists("/sys/bus/event_source/devices/armv8_pmuv3_0"):
        good("profile", "--hw", "-d", "0.2", "-o", "/dev/null", "--", "true")
        return
    bad(3, r"(?i)pmu|hardware", "profile", "--hw", "-d", "1")


@test
def without_privileges_the_capabilities_are_named():
    if os.geteuid() != 0:
        raise Skip("needs root to drop privileges")
    copy = path("rawbpf-copy")
    shutil.copy(RB, copy)
    os.chmod(copy, 0o755)
    r = run("setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", copy, "profile", "-d", "1",
            binary=None)
    assert r.code == 3 and re.search("CAP_BPF|CAP_PERFMON", r.err), (r.code, r.err)


@test
def a_split_of_three_to_one_is_seen():
    good("profile", "--freq", "999", "-f", "json", "-o", path("split.json"), "--", SPLIT, "3")
    objects = rows("split.json")
    assert objects[0]["type"] == "header" and objects[0]["schema"] == 1
    led = ledger_of(objects)
    assert sum(led["lost"].values()) == 0, led
    samples = [o for o in objects if o["type"] == "sample"]
    assert all(o["comm"] == "split" for o in samples if o["user"]), {o["comm"] for o in samples}
    a = sum("hot_a" in n for o in samples for n in stack_names(o))
    b = sum("hot_b" in n for o in samples for n in stack_names(o))
    # On a machine with other work the program gets less than a CPU: what counts is the share, within the error of that many.
    assert a + b > 60, (a, b, led)
    assert abs(100 * a / (a + b) - 75) < max(4, 4 * 43 / (a + b) ** 0.5), (a, b)
    hot = next(o for o in samples if any("hot_a" in n for n in stack_names(o)))
    names = stack_names(hot)
    assert "hot_a" in names[0] and any("workload" in n for n in names), names  # leaf first
    frame = hot["user"][0]
    assert set(frame) == {"addr", "symbol", "symbol_offset", "module", "file_offset", "build_id"}, frame
    assert frame["module"].endswith("/split") and frame["addr"].startswith("0x")


@test
def both_bpf_programs_give_the_same_profile():
    in_c = os.path.join(os.path.dirname(RB), "programs/profile/profile.bpf.o")
    if not os.path.exists(in_c):
        raise Skip("built without clang")
    for variant in (["--object", in_c], ["--bpf", "dsl"], []):
        r = run("profile", *variant, "--freq", "499", "-f", "json", "-o", path("v.json"), "--", SPLIT, "2")
        assert r.code == 0, r.err
        objects = rows("v.json")
        ledger_of(objects)
        samples = [o for o in objects if o["type"] == "sample"]
        names = [n for o in samples for n in stack_names(o)]
        a, b = sum("hot_a" in n for n in names), sum("hot_b" in n for n in names)
        assert a + b > 20, (variant, a, b)  # the error below is by their number
        assert abs(100 * a / (a + b) - 75) < max(4, 4 * 43 / (a + b) ** 0.5), (variant, a, b)
        deepest = max((stack_names(o) for o in samples if any("hot_" in n for n in stack_names(o))), key=len)
        assert {"hot_a(long)", "workload(double)", "main"} & set(deepest) and "main" in deepest, (variant, deepest)


@test
def live_on_a_terminal():
    bad(2, r"--live draws on a terminal", "profile", "--live", "--", "true")
    bad(2, r"--live shows -f top, not svg", "profile", "--live", "-f", "svg", "--", "true")
    import pty
    target = subprocess.Popen([SPLIT, "30"])
    try:
        pid, fd = pty.fork()
        if pid == 0:
            os.execv(RB, ["rawbpf", "profile", "--live", "-q", "--freq", "499", "-p", str(target.pid)])
        text, started, interrupted = b"", time.time(), False
        while time.time() - started < 40:
            try:
                text += os.read(fd, 65536)
            except OSError:
                break
            # Two screens with something on them, then Ctrl-C.
            if not interrupted and text.count(b"\x1b[H") >= 2 and b"hot_a" in text:
                os.write(fd, b"\x03")
                interrupted = True
        os.close(fd)
        _, status = os.waitpid(pid, 0)
    finally:
        target.kill()
        target.wait()
    assert status == 0 and interrupted, (status, text[-300:])
    screens, end = text.split(b"\x1b[?1049l")
    assert screens.startswith(b"\x1b[?1049h") and re.search(rb"of the last \d+ s, [\d,]+:", screens), screens[:200]
    last = screens.split(b"\x1b[H")[-1]
    assert len(last.replace(b"\x1b[K", b"").replace(b"\x1b[J", b"").split(b"\r\n")) <= 24, last
    assert b"hot_a" in end and b"HOTTEST STACKS" in end and b"\x1b[H" not in end, end[:300]


@test
def a_workloads_own_output_and_status():
    r = run("profile", "-f", "folded", "-o", path("w.folded"), "--", "sh", "-c", "echo to-stdout; echo to-stderr >&2; exit 7")
    assert r.code == 0, "rawbpf's exit status is its own"
    assert r.out == "to-stdout\n", r.out
    assert "to-stderr" in r.err and re.search(r"\b7\b", r.err), r.err
    r = run("profile", "-o", "/dev/null", "--", "sh", "-c", "kill -SEGV $$")
    assert r.code == 0 and "SEGV" in r.err, r.err


@test
def the_ready_descriptor_and_an_interrupt():
    p, is_ready = until_ready("profile", "-f", "folded", "-o", path("int.folded"), "-p", str(os.getpid()), stderr=subprocess.PIPE)
    assert is_ready, "nothing came over the ready descriptor"
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=20)
    assert p.returncode == 0, (p.returncode, err)
    assert b"fired" in err, err
    assert read("int.folded"), "an interrupted profile showed nothing"


@test
def threads_children_and_short_lives():
    good("profile", "--freq", "997", "--json", "-o", path("family.json"), "--", FAMILY)
    objects = rows("family.json")
    ledger_of(objects)
    names = {n for o in objects if o["type"] == "sample" for n in stack_names(o)}
    for want in ("in_thread", "in_child", "shape::Area<int>::compute"):
        assert any(want in n for n in names), (want, sorted(names)[:60])
    tids = {o["tid"] for o in objects if o["type"] == "sample" and any("in_thread" in n for n in stack_names(o))}
    pids = {o["pid"] for o in objects if o["type"] == "sample" and any("in_thread" in n for n in stack_names(o))}
    assert len(tids) >= 2 and len(pids) == 1, (tids, pids)
    # Every one of the short-lived children (some 30 ms each) is named, though each is gone long before the end.
    children = {o["pid"] for o in objects if o["type"] == "sample" and o["user"] and o["pid"] not in pids}
    named = {o["pid"] for o in objects if o["type"] == "sample" and any("in_child" in n for n in stack_names(o))}
    assert len(named) >= 0.8 * len(children) and len(named) >= 5, (len(named), len(children))


@test
def an_exec_changes_the_names():
    good("profile", "--freq", "997", "--json", "-o", path("exec.json"), "--", "sh", "-c", f"for i in 1 2 3 4 5 6; do {SPLIT} 0.3; done")
    objects = rows("exec.json")
    samples = [o for o in objects if o["type"] == "sample" and o["comm"] == "split"]
    pids = {o["pid"] for o in samples}
    named = {o["pid"] for o in samples if any("hot_a" in n for n in stack_names(o))}
    assert len(pids) == 6 and named == pids, (pids, named)


@test
def only_the_asked_process():
    a, b = subprocess.Popen([SPLIT, "1000"]), subprocess.Popen([FAMILY, "1000"])
    try:
        good("profile", "--freq", "299", "-p", str(a.pid), "-d", "1", "--json", "-o", path("pid.json"))
        objects = rows("pid.json")
        pids = {o["pid"] for o in objects if o["type"] == "sample"}
        assert pids == {a.pid}, (pids, a.pid)
        both = ("profile", "--freq", "299", "-p", str(a.pid), "-p", str(b.pid), "-d", "1", "--json", "-o", path("pid2.json"))
        good(*both, "--no-children")
        pids = {o["pid"] for o in rows("pid2.json") if o["type"] == "sample"}
        assert pids == {a.pid, b.pid}, pids
        good(*both)
        pids = {o["pid"] for o in rows("pid2.json") if o["type"] == "sample"}
        assert pids > {a.pid, b.pid} and len(pids) < 200, pids  # and what the second one starts
    finally:
        for p in (a, b):
            p.kill()
            p.wait()


@test
def one_half_of_the_stacks():
    good("profile", "--freq", "499", "--user-stacks", "--json", "-o", path("u.json"), "--", FAMILY)
    good("profile", "--freq", "499", "--kernel-stacks", "--json", "-o", path("k.json"), "--", FAMILY, "3")  # enough, too, on a busy machine
    u = [o for o in rows("u.json") if o["type"] == "sample"]
    k = [o for o in rows("k.json") if o["type"] == "sample"]
    assert u and all(not o["kernel"] for o in u) and any(o["user"] for o in u)
    assert k and all(not o["user"] for o in k) and any(o["kernel"] for o in k)


@test
def only_these_cpus():
    good("profile", "--freq", "499", "--cpu", "0", "--json", "-o", path("cpu.json"), "--", FAMILY)
    cpus = {o["cpu"] for o in rows("cpu.json") if o["type"] == "sample"}
    assert cpus <= {0}, cpus


@test
def a_cgroup():
    mount = next((line.split()[1] for line in open("/proc/mounts") if line.split()[2] == "cgroup2"), None)
    if not mount:
        raise Skip("needs a cgroup2 mount")
    group = os.path.join(mount, f"rawbpf-test-{os.getpid()}")
    os.mkdir(group)
    p = subprocess.Popen([SPLIT, "20"])
    other = subprocess.Popen([SPLIT, "20"])
    try:
        with open(os.path.join(group, "cgroup.procs"), "w") as f:
            f.write(str(p.pid))
        good("profile", "--freq", "199", "--cgroup", group, "-d", "1", "--json", "-o", path("cg.json"))
        objects = rows("cg.json")
        led = ledger_of(objects)
        pids = {o["pid"] for o in objects if o["type"] == "sample"}
        assert pids == {p.pid}, pids
        assert led["filtered"] > 0, led
    finally:
        for q in (p, other):
            q.kill()
            q.wait()
        os.rmdir(group)


@test
def inside_another_root():
    if os.geteuid() != 0 or not shutil.which("chroot"):
        raise Skip("needs root and chroot")
    jail = path("jail")
    os.makedirs(jail)
    compile_program("jail/inside", SOURCE_SPLIT, "-static")
    p = subprocess.Popen(["chroot", jail, "/inside", "20"])
    try:
        time.sleep(0.3)
        good("profile", "--freq", "299", "-p", str(p.pid), "-d", "1", "-f", "folded", "-o", path("jail.folded"))
        assert "hot_a" in read("jail.folded"), read("jail.folded")[:300]
    finally:
        p.kill()
        p.wait()


@test
def inside_a_pid_namespace():
    if os.geteuid() != 0 or not shutil.which("unshare"):
        raise Skip("needs root and unshare")
    if run("unshare", "--pid", "--fork", "--mount-proc", "true", binary=None).code != 0:
        raise Skip("needs to be allowed a new pid namespace with its own /proc")
    r = run("unshare", "--pid", "--fork", "--mount-proc", RB, "profile", "--freq", "299", "--json", "-o", path("ns.json"), "--", SPLIT, "1",
            binary=None)
    assert r.code == 0, r.err
    samples = [o for o in rows("ns.json") if o["type"] == "sample" and o["comm"] == "split"]
    assert samples and all(o["pid"] < 100 for o in samples), samples[:1]
    assert any("hot_a" in n for o in samples for n in stack_names(o))


@test
def the_narrator_shows_the_system_calls():
    r = good("profile", "--freq", "199", "-d", "1", "--syscalls", "-o", "/dev/null", "--", "true")
    for want in (r"bpf\(BPF_MAP_CREATE, \{map_type=BPF_MAP_TYPE_RINGBUF", r"bpf\(BPF_PROG_LOAD, \{prog_type=BPF_PROG_TYPE_PERF_EVENT",
                 r"perf_event_open\(\{", r"enable_on_exec=1", r"ioctl\(\d+<perf event>, PERF_EVENT_IOC_DISABLE", r"mmap\("):
        assert re.search(want, r.err), f"the narration lacks /{want}/:\n{r.err[:3000]}"


@test
def the_ledger_on_stderr():
    r = good("profile", "--freq", "499", "-f", "folded", "-o", "/dev/null", "--", SPLIT, "0.5")
    for want in ("fired", "shown", "filtered", "lost"):
        assert want in r.err, r.err
    assert re.search(r"(ns|us|µs)\b.*sample", r.err), f"no cost per sample: {r.err}"
    quiet = good("profile", "-q", "--freq", "499", "-f", "folded", "-o", "/dev/null", "--", SPLIT, "0.2")
    assert quiet.err == "", quiet.err


@test
def kill_9_leaves_nothing_behind():
    p, _ = until_ready("profile", "-o", "/dev/null", "-p", str(os.getpid()), stderr=subprocess.DEVNULL)
    ours = held_by(p.pid)
    p.kill()
    p.wait()
    assert len(ours) >= 3, f"it holds no BPF objects while it runs: {ours}"
    left = {(pid, i) for pid in filter(str.isdigit, os.listdir("/proc")) for i in held_by(pid) & ours}
    assert not left, left
