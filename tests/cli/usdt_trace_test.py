"""rawbpf usdt trace: arguments, semaphores, one process of many, containers."""
import json
import os
import re
import shutil
import signal
import subprocess
import time

from harness import *
from ticker import TICKER, Ticking, Tracing, needs_usdt_tracing, ticker
from traced import trace_events


@test
def usdt_trace_shows_each_probe_with_its_arguments():
    needs_usdt_tracing()
    rows, ledger = trace_events(f"usdt:{ticker()}:ticker", "--types", path("ticker.types"), "--", ticker(), "4")
    assert [r["probe"] for r in rows] == ["ticker:tick", "ticker:odd"] * 4, rows
    assert all((r["type"], r["provider"], r["name"], r["function"]) == ("call", "ticker", r["probe"][7:], r["probe"][7:]) for r in rows)
    ticks = [{a["name"]: a["value"] for a in r["args"]} for r in rows[::2]]
    assert ticks == [{"n": n, "text": ["one", "two"][n % 2], "memory": [-1, -300][n % 2], "low": n + 250, "five": 5} for n in range(4)], ticks
    assert [[a["value"] for a in r["args"]] for r in rows[1::2]] == [[10, 0], [1], [10, 2], [3]], rows[1::2]  # each site has its own
    assert ledger["functions"]["ticker:odd"]["fired"] == 4 and not ledger["degraded"], ledger
    text = good("usdt", "trace", f"{ticker()}:ticker:tick", "--types", path("ticker.types"), "--filter", "n >= 2", "--", ticker(), "4").out
    assert re.search(r'\] ticker\[\d+\]: ticker:tick\(n=2, text="one", memory=-1, low=252, five=5\)\n', text), text
    assert "n=1," not in text and "ticker:tick         : 2 calls\n" in text, text
    # Where arguments aren't asked for, sites have one program in common.
    assert re.search(r" 3 places, 1 programs?\n", good("usdt", "trace", ticker(), "-c", "-v", "-d", "0.05").err)
    # From the spec to the value.
    shown = good("usdt", "trace", f"{ticker()}:ticker:tick", "--types", path("ticker.types"), "--explain", "-q", "--", ticker(), "1")
    assert re.search(r"usdt:\S+:ticker:tick at offset 0x\w+\n +arg0  -4@\S+  s32 \S+\n +r7 = \*\(u64 \*\)\(r6 \+ \d+\)", shown.err), shown.err
    assert "tick(n=0, " in shown.out and "arg5  8@" in shown.err and "r7 = 5\n" in shown.err, (shown.out, shown.err)
    bad(1, "there are none", "trace", f"uprobe:{ticker()}:tick", "--explain", "--", ticker(), "1")
    # Without a table: what the notes say.
    raw = good("usdt", "trace", f"{ticker()}:ticker:tick", "--", ticker(), "1").out
    assert re.search(r"ticker:tick\(arg0=0, arg1=0x\w+|ticker:tick\(arg0=0, arg1=\d+, arg2=3, arg3=-1, arg4=250, arg5=5\)", raw), raw
    # Points in time, not calls that never return.
    graph = good("usdt", "trace", f"{ticker()}:ticker:tick", "--graph", "-q", "--", ticker(), "2")
    assert graph.out.count("): ") == 0 and "{" not in graph.out and graph.out.count("]: ticker:tick(") == 2, graph.out
    mixed, ledger = trace_events(f"usdt:{ticker()}:ticker:tick", f"uprobe:{ticker()}:tick", "-r", "--allow-unwind-risk", "--", ticker(), "2")
    assert [(r["type"], r["function"], r["depth"]) for r in mixed] == [("call", "tick", 0), ("call", "tick", 1), ("return", "tick", 0)] * 2, mixed
    assert not ledger["degraded"], ledger
    listed = good("usdt", "trace", "--list", f"{ticker()}:ticker:tick", "--types", path("ticker.types")).out
    assert listed == f"usdt:{ticker()}:ticker:tick(int n, const char *text, long text_len, s16 memory, u8 low, int five)\n", listed


@test
def usdt_trace_raises_semaphores_and_drops_them_however_it_ends():
    needs_usdt_tracing()
    # The kernel raises it once for each site that is traced, by however many: tick has one, odd has two.
    with Ticking() as one:
        assert one.semaphore() == 0
        with Tracing(f"{ticker()}:ticker:tick", "--json", "-o", path("ticks.1")) as first:
            one.wait_for(1)
            with Ticking() as later:  # it wasn't there when we came
                later.wait_for(1)
                with Tracing(f"{ticker()}:ticker:*", "-o", "/dev/null") as second, \
                        Tracing(f"{ticker()}:ticker:*", "--json", "-o", path("ticks.3")) as third:
                    one.wait_for(3)
                    second.end(signal.SIGKILL)
                    time.sleep(0.1)
                    assert one.semaphore() == later.semaphore() == 3, (one.semaphore(), later.semaphore())
                    third.end()
                one.wait_for(1)
                later.wait_for(1)
            with Tracing("-p", str(one.pid), ":ticker:tick", "-n", "20", "--json", "-o", path("ticks.4")) as alone:
                alone.ended()
            one.wait_for(1)
            r = first.end()
            assert r.code == 0, r.err
        one.wait_for(0)
        with Tracing(f"{ticker()}:ticker:tick", "-o", "/dev/null") as killed:
            one.wait_for(1)
            killed.end(signal.SIGKILL)
        one.wait_for(0)
        pids = {o["pid"] for o in rows("ticks.1") if o["type"] == "call"}
        assert pids == {one.pid, later.pid}, pids
        for name in ("ticks.1", "ticks.3", "ticks.4"):
            assert ledger_of(rows(name))["shown"] > 10, rows(name)[-1]
        assert {o["pid"] for o in rows("ticks.4") if o["type"] == "call"} == {one.pid}


@test
def usdt_trace_of_one_process():
    needs_usdt_tracing()
    with Ticking() as one, Ticking():
        with Tracing("-p", str(one.pid), ":ticker:tick", "-n", "20", "--json") as tracing:
            r = tracing.ended()
        seen = [json.loads(line) for line in r.out.splitlines()]
        assert {o["pid"] for o in seen if o["type"] == "call"} == {one.pid} and ledger_of(seen)["shown"] == 20, seen[-1]
        # Its libraries: libstdc++ has probes, though nothing is thrown here.
        listed = good("usdt", "trace", "--list", "-p", str(one.pid)).out
        assert re.search(r"usdt:/proc/\d+/root/\S*/ticker:ticker:tick\(", listed) and "libstdcxx:throw(ptr object, ptr type)" in listed, listed
    # Upgraded while it runs: what it has mapped is traced, not what is at the path now.
    shutil.copy(ticker(), path("upgraded"))
    with Ticking(program=path("upgraded")) as one:
        shutil.copy(ticker(), path("upgraded.new"))
        os.rename(path("upgraded.new"), path("upgraded"))
        for args in ((":ticker:tick",), ("upgraded:ticker:tick", "--stack")):
            r = good("usdt", "trace", "-p", str(one.pid), *args, "-n", "3", "-d", "10", "-q")
            assert r.out.count(f"upgraded[{one.pid}]: ticker:tick(") == 3, (r.out, r.err)
    with Ticking() as one:  # it ends while it is traced
        tracing = Tracing("-p", str(one.pid), ":ticker:tick")
        one.wait_for(1)
    r = tracing.ended()
    assert r.code == 0 and "the process has ended" in r.err, r.err
    bad(1, f"there is no process {one.pid}", "usdt", "trace", "-p", str(one.pid))


@test
def usdt_trace_beside_containers():
    needs_usdt_tracing()
    own = ("unshare", "--pid", "--fork", "--mount-proc")
    if not shutil.which("unshare") or not shutil.which("nsenter") or run(*own, "true", binary=None).code != 0:
        raise Skip("needs to be allowed a new pid namespace with its own /proc")
    three = ("--types", path("ticker.types"), "-n", "3", "-d", "10", "-q")
    with Ticking(*own, "--kill-child") as inside, Ticking() as outside:
        assert inside.own_pid == "1"
        target, pid = f"{ticker()}:ticker:tick", str(inside.pid)
        for args in (("--pidns", pid), ("--mntns", pid)):
            r = good("usdt", "trace", target, *args, *three)
            assert r.out.count(f"ticker[{pid}]: ticker:tick(n=") == 3 and f"[{outside.pid}]" not in r.out, (args, r.out, r.err)
        # A tracer in the same pid namespace, with mounts of its own: a sidecar.
        sidecar = ("nsenter", "-t", pid, "-p", "unshare", "--mount", "--mount-proc", RB)
        for args in ((target,), ("-p", "1", ":ticker:tick")):
            r = run(*sidecar, "usdt", "trace", *args, *three, binary=None)
            assert r.code == 0 and r.out.count("ticker[1]: ticker:tick(n=") >= (1 if args == (target,) else 3), (args, r.out, r.err)
        # One in a pid namespace beside it has no numbers for its processes; and knows those that it starts itself.
        r = run(*own, RB, "usdt", "trace", target, *three, binary=None)
        assert r.code == 0 and r.out.count("ticker[0]: ticker:tick(n=") == 3, (r.out, r.err)
        r = run(*own, RB, "usdt", "trace", target, "-q", "--types", path("ticker.types"), "--", "sh", "-c", f"{ticker()} 2; true",
                binary=None)
        numbers = re.findall(r"ticker\[(\d+)\]: ticker:tick\(n=(\d)", r.out)
        assert r.code == 0 and [n for _, n in numbers] == ["0", "1"] and all(0 < int(p) < 100 for p, _ in numbers), (r.out, r.err)


@test
def usdt_trace_bad_input():
    needs_usdt_tracing()
    bad(1, r"no USDT probes.*\n.*postgresql-15", "usdt", "trace", "/bin/ls", "--", "true")
    bad(1, r"not an ELF file", "usdt", "trace", "/etc/passwd", "--", "true")
    bad(1, r"not a regular file", "usdt", "trace", "/etc", "--", "true")
    bad(1, r"ENOENT", "usdt", "trace", "/no-such-file", "--", "true")
    bad(1, r"did you mean ticker:tick\?", "usdt", "trace", f"{ticker()}:ticker:tic", "--", "true")
    bad(1, r"of ticker it has tick, odd", "usdt", "trace", f"{ticker()}:ticker:nothing", "--", "true")
    bad(1, r"has no numbr", "usdt", "trace", f"{ticker()}:ticker:tick", "--filter", "numbr == 1", "--", "true")
    bad(1, r"there is no process 999999", "usdt", "trace", "-p", "999999")
    bad(1, r"have no returns", "usdt", "trace", ticker(), "--latency", "--", "true")
    for table, message in (("ticker tick", r"ticker\.bad:1: .*isn't PROVIDER:NAME"), ("# ok\nticker:tick(int", r"ticker\.bad:2"),
                           ("ticker:tick(no such type x)", r"ticker\.bad:1")):
        with open(path("ticker.bad"), "w") as f:
            f.write(table)
        bad(2, message, "usdt", "trace", ticker(), "--types", path("ticker.bad"), "--", "true")
    bad(2, r"ENOENT", "usdt", "trace", ticker(), "--types", "/no-such-file", "--", "true")
    if shutil.which("setpriv"):
        bad(3, r"CAP_BPF|CAP_PERFMON|CAP_SYS_ADMIN|root", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", RB, "usdt", "trace",
            ticker(), "-d", "1", binary=None)
    # Stripped: the notes stay, names are gone.
    if shutil.which("strip"):
        subprocess.run(["strip", "-o", path("ticker.bare"), ticker()], check=True)
        rows_, _ = trace_events(f"usdt:{path('ticker.bare')}:ticker:tick", "--", path("ticker.bare"), "2")
        assert [r["args"][0]["value"] for r in rows_] == [0, 1], rows_
    # A semaphore that can't be raised: who asks for it never passes there. This program doesn't ask.
    compile_program("ticker.readonly", TICKER.replace("volatile unsigned short semaphore_tick", "extern const unsigned short semaphore_tick"))
    r = good("usdt", "trace", path("ticker.readonly") + ":ticker:tick", "--", path("ticker.readonly"), "2")
    assert "its semaphore can't be written" in r.err and r.out.count("]: ticker:tick(") == 2, (r.out, r.err)
