"""Spans of probes and of functions."""
import json
import os
import re

from harness import *
from probes import compile_probes
from traced import TRACED_PROGRAM, TRACED_SIG


def spans_of(command, *args, code=0, env=None):
    """The spans that a command shows, its ledger, and the run."""
    if run(*command, "--help").code != 0:
        raise Skip("this build doesn't trace (-Dparts)")
    r = run(*command, "--spans", "--json", "-o", path("spans.json"), *args, env=env)
    if r.code == 3:
        raise Skip("needs uprobes and the rights to load programs")
    assert r.code == code, (args, r.code, r.err[-800:])
    lines = [json.loads(line) for line in read("spans.json").splitlines()]
    assert {l["type"] for l in lines[1:-1]} <= {"span"}, lines
    return lines[1:-1], lines[-1], r


@test
def spans_of_the_go_forks_probes_by_goroutine():
    file = compile_probes("go-fork-spans", "gcc", "-O2", "-Wno-array-bounds", "-DLINKED_BY_GO", sources=("go_fork.c",))
    if not file:
        raise Skip("no gcc")
    spans, ledger, r = spans_of(("usdt", "trace"), file, "--", file, "-")
    by_name = {s["name"]: s for s in spans}
    # All in one thread, and interleaved: only the goroutines tell them apart.
    get, post = by_name["GET"], by_name["POST"]
    assert get["kind"] == "server" and get["attributes"]["http.response.status_code"] == 200, get
    assert get["attributes"]["url.path"] == "/load?num=5".split("?")[0] and get["parent_id"] is None, get
    assert post["kind"] == "client" and post["attributes"]["http.response.status_code"] == 404 and post["status"] == "error", post
    assert post["trace_id"] != get["trace_id"], (get, post)
    for name in ("SELECT", "INSERT"):
        inner = by_name[name]
        assert inner["parent_id"] == post["span_id"] and inner["trace_id"] == post["trace_id"], (inner, post)
        assert inner["duration_ns"] == 0, inner
    assert by_name["INSERT"]["attributes"]["db.query.text"] == "INSERT INTO t VALUES (?)", by_name["INSERT"]
    assert get["attributes"]["rawbpf.goroutine"] == "0xc000001", get
    n = ledger["spans"]
    assert n["made"] == len(spans) and n["paired"] == 3 and n["ignored"] == 2 and n["ends_alone"] == 1 and n["export"] is None, n
    assert "spans" in r.err, r.err
    spans, _, _ = spans_of(("usdt", "trace"), file, "--keep-literals", "--", file, "-")
    assert "INSERT INTO t VALUES (1)" in [s["attributes"].get("db.query.text") for s in spans], spans
    r = run("usdt", "trace", file, "--spans", "-q", "--", file, "-")
    assert r.code == 0 and re.search(r"\] ?\S*go-fork-spans\S*\[\d+\]: GET .* server trace=[0-9a-f]{8} ", r.out), r.out
    bad(1, r"none of these probes begins or ends a span", "usdt", "trace", file + ":net", "--spans", "--", file, "-")


@test
def spans_of_functions():
    file = compile_program("spanned", TRACED_PROGRAM, "-fno-exceptions")
    names = [f"uprobe:{file}:{f}" for f in ("work", "mid", "leaf")]
    spans, ledger, _ = spans_of(("trace",), *names, "--sig", TRACED_SIG, "--", file)
    work, mids, leaves = ([s for s in spans if s["name"] == f"spanned:{f}"] for f in ("work", "mid", "leaf"))
    assert len(work) == 1 and len(mids) == 3 and len(leaves) == 6, [s["name"] for s in spans]
    assert {s["parent_id"] for s in mids} == {work[0]["span_id"]} and {s["trace_id"] for s in spans} == {work[0]["trace_id"]}, spans
    assert {s["parent_id"] for s in leaves} == {s["span_id"] for s in mids}, spans
    assert work[0]["duration_ns"] >= sum(s["duration_ns"] for s in mids) > 0, spans
    assert ledger["spans"]["paired"] == 10 and ledger["spans"]["expired"] == 0, ledger
    short, ledger, _ = spans_of(("trace",), *names, "--min-duration", "1us", "--", file)  # paired in the kernel
    assert ledger["spans"]["paired"] == len(short) == ledger["shown"], ledger


@test
def spans_bad_input():
    if run("usdt", "trace", "--help").code != 0:
        raise Skip("this build doesn't trace (-Dparts)")
    for command in (["usdt", "trace", "/bin/ls"], ["trace", "uprobe:/bin/ls:main"]):
        for words, pattern in ((["--spans", "--count"], r"--count keeps no times"), (["--spans", "-f", "chrome"], r"text or json"),
                               (["--spans", "--graph"], r"--graph"), (["--spans", "--stack"], r"no stacks"),
                               (["--otlp-encoding", "json"], r"--otlp URL"), (["--span-timeout", "5"], r"--span-timeout is about spans"),
                               (["--keep-literals"], r"--keep-literals is about spans"), (["--spans", "--span-timeout", "0"], r"--span-timeout"),
                               (["--otlp-encoding", "xml", "--otlp", "http://x"], r"protobuf.*json"),
                               (["--otlp", "localhost:4318"], r"doesn't start with http"), (["--otlp", "http://"], r"no address of a receiver"),
                               (["--otlp", "http://user:secret@host"], r"has a user's name in it"),
                               (["--otlp", "http://host:99999"], r"no address of a receiver"),
                               (["--prometheus", "host"], r"a port is a number"), (["--prometheus", "http://host:1"], r"no address to listen at")):
            r = bad(2, pattern, *command, *words)
            assert "secret" not in r.err, r.err
    for words, pattern in ((["--otlp", "localhost:4318"], r"doesn't start with http"), (["--otlp-encoding", "json"], r"--otlp URL"),
                           (["--otlp", "http://x", "-f", "svg"], r"-f svg adds up equal stacks"), (["--otlp=http://x", "-o", "x"], r"with --otlp and without -f")):
        bad(2, pattern, "profile", "-d", "0.1", *words)
    r = run("usdt", "trace", "/bin/ls", "--otlp", "env", env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "nonsense"})
    assert r.code == 2 and "OTEL_EXPORTER_OTLP_ENDPOINT" in r.err, (r.code, r.err)
