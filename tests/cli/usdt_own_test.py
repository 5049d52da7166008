"""Probes that a program makes while it runs, and those of OpenTelemetry's fork for Go."""
import json
import os
import shutil
import signal
import subprocess
import time

from harness import *
from probes import as_readelf, compile_probes, readelf_probes, usdt_rows, usdt_traced


def own_probes(name):
    p = subprocess.Popen([test_program(name)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    assert p.stdout.readline() == "up\n"
    return p


def check_probes_made_at_run_time(program):
    if os.geteuid() != 0:
        raise Skip("needs root to look at mappings of files in memory")
    p = own_probes(program)
    tracer = None
    try:
        rows = usdt_rows("validate", "-p", str(p.pid), ":own")
        assert [(r["name"], r["ok"], r["nop"], len(r["args"])) for r in rows] == [
            ("mixed", True, "nop", 7), ("twelve", True, "nop", 12), ("none", True, "nop", 0)], rows
        assert all(r["path"].startswith("/memfd:own") and r["semaphore"] for r in rows), rows
        listed = usdt_rows("list", "-p", str(p.pid), ":own")
        fds = [f"/proc/{p.pid}/fd/{fd}" for fd in os.listdir(f"/proc/{p.pid}/fd")]
        (file,) = [fd for fd in fds if "memfd:own" in os.readlink(fd)]
        assert as_readelf(listed) == readelf_probes(file), listed
        p.stdin.write("\n")
        assert p.stdout.readline() == "0\n", "nobody looks"
        if run("usdt", "trace", "--help").code != 0:
            raise Skip("this build doesn't trace (-Dparts)")
        with open(path("own.json"), "w") as out:
            tracer = subprocess.Popen([RB, "usdt", "trace", ":own", "-p", str(p.pid), "--json"], stdout=out, stderr=subprocess.PIPE, text=True)
        for _ in range(100):
            p.stdin.write("\n")
            if p.stdout.readline() == "1\n" or tracer.poll() is not None:
                break
            time.sleep(0.1)
        if tracer.poll() == 3:
            raise Skip("needs uprobes and the rights to load programs")
        time.sleep(0.3)
        tracer.send_signal(signal.SIGINT)
        error = tracer.communicate(timeout=30)[1]
        events = [e for e in map(json.loads, read("own.json").splitlines()) if e["type"] == "call"]
        assert [e["name"] for e in events[-3:]] == ["mixed", "twelve", "none"], (events, error)
        mixed, twelve, none = ([a["value"] for a in e["args"]] for e in events[-3:])
        assert mixed[:1] + mixed[2:] == [-7, 2.5, -0.25, 250, -1, str(2**64 - 1)], mixed
        assert twelve == [1, -2, -3, 100, 4000000000, 6, -7, -8, 65000, 10, 11.5, 1] and none == [], (twelve, none)
        p.stdin.write("\n")
        assert p.stdout.readline() == "0\n", "and nobody looks any more"
    finally:
        if tracer and tracer.poll() is None:
            tracer.kill()
            tracer.wait()
        p.kill()
        p.wait()


@test
def usdt_probes_made_at_run_time():
    check_probes_made_at_run_time("own-probes")


@test
def usdt_probes_made_at_run_time_in_c():
    check_probes_made_at_run_time("own-probes-c")
    r = run(test_program("own-probes-c"), "-", binary=None)
    assert (r.code, r.out) == (0, "right\n"), r


@test
def usdt_probes_made_at_run_time_as_bpftrace_sees_them():
    if os.geteuid() != 0:
        raise Skip("needs root")
    if not shutil.which("bpftrace"):
        raise Skip("needs bpftrace (Debian's package)")
    if run("usdt", "trace", f"{RB}:rawbpf:nothing").code == 3:
        raise Skip("needs uprobes and the rights to load programs")
    p = own_probes("own-probes")
    script = 'usdt:*:own:mixed { printf("mixed %d %s\\n", arg0, str(arg1)); } usdt:*:own:twelve { printf("twelve %d %d\\n", arg1, arg3); @n++; if (@n > 9) { exit(); } }'
    tracer = subprocess.Popen(["timeout", "-s", "INT", "40", "bpftrace", "-p", str(p.pid), "-e", script], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(300):
            if tracer.poll() is not None:
                break
            p.stdin.write("\n")
            p.stdout.readline()
            time.sleep(0.1)
        out, error = tracer.communicate(timeout=60)
        assert "mixed -7 hello\n" in out and "twelve -2 100\n" in out, (out, error[-500:])
    finally:
        if tracer.poll() is None:
            tracer.kill()
            tracer.wait()
        p.kill()
        p.wait()


GO_FORK = {("net_http", "server_request_start"), ("net_http", "server_request_end"), ("net_http", "client_request_start"),
           ("net_http", "client_response_received"), ("sql", "prepare"), ("sql", "exec"), ("sql", "query"), ("sql", "stmt_exec"),
           ("sql", "stmt_query"), ("sql", "tx_begin"), ("tls", "handshake_start"), ("tls", "handshake_end"), ("tls", "handshake_error"),
           ("net", "conn_accept"), ("net", "conn_close")}


@test
def usdt_notes_of_the_go_fork():
    for compiler, status in (("gcc", "-4@%eax" if os.uname().machine == "x86_64" else "-4@w0"), ("aarch64-linux-gnu-gcc", "-4@w0")):
        file = compile_probes("go-fork-" + compiler, compiler, "-O2", "-Wno-array-bounds", sources=("go_fork.c",))
        if not file:
            continue
        rows = usdt_rows("validate", file)
        assert {(r["provider"], r["name"]) for r in rows} == GO_FORK and len(rows) == 15, rows
        assert all(r["ok"] and r["nop"] == "nop" and r["semaphore"] is None for r in rows), rows
        (end,) = [r for r in rows if r["name"] == "server_request_end"]
        assert [a["spec"] for a in end["args"]] == [status], end
        assert as_readelf(usdt_rows("list", file)) == readelf_probes(file, padded=True)
    file = path("go-fork-gcc")
    if not os.path.exists(file):
        raise Skip("no gcc")
    events, _, _ = usdt_traced(file, "--", file, "-")
    seen = [(e["name"], [a["value"] for a in e["args"]]) for e in events]
    assert len(seen) == 15 and dict(seen[5:8]) == {"stmt_exec": [], "stmt_query": [], "tx_begin": []}, seen
    values = dict(seen)
    assert values["server_request_end"] == [200] and values["client_response_received"] == [404], values
    assert values["server_request_start"][0] == "GET" and "/load?num=5" in values["server_request_start"], values
    assert values["client_request_start"][0] == "POST" and "http://localhost:8080/" in values["client_request_start"], values
    assert values["query"][0] == "SELECT 1" and values["exec"][0] == "INSERT INTO t VALUES (1)", values
