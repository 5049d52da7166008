"""Labels of the running request: `profile --label`, of programs that publish an OpenTelemetry context; and what doctor says of them."""
from labelled import assert_shares, assert_stay, assert_waits, by_label, compiled, doctor_row, label_runs, profiled, writer
from protobuf import decoded_pprof, one

from harness import *

@test
def labels_are_the_running_requests():
    bad(2, r"a key has a name", "profile", "--label", "", "--", "true")
    bad(2, r"perf-script has no place for labels", "profile", "--label", "x", "-f", "perf-script", "--", "true")
    bad(2, r"needs rawbpf's own BPF program", "profile", "--label", "x", "--object", "own.o", "--", "true")
    r = profiled(["true"], "--label", "http_route", "-f", "folded", "-o", path("l.none"))
    assert "no process that was sampled has published an OpenTelemetry context" in r.err, r.err
    profiled([writer(), "shares", "2"], "-q", "-F", "499", "--label", "http_route", "--label", "service.name", "-f", "folded", "-o", path("l.folded"))
    assert_shares(by_label("l.folded", "http_route"))
    assert re.search(r"^http_route=/a;service\.name=shop;otel-writer;.*work_a", read("l.folded"), re.M), read("l.folded")
    assert re.search(r"^service\.name=shop;otel-writer;.*work_none", read("l.folded"), re.M), read("l.folded")
    # Without the option the same program has none, and its stacks are as ever.
    profiled([writer(), "shares", "0.3"], "-q", "-F", "499", "-f", "folded", "-o", path("l.folded"))
    assert "=" not in read("l.folded"), read("l.folded")


@test
def labels_in_json_pprof_and_recordings():
    if not has_json():
        raise Skip("this build writes no JSON")
    keys = ("--label", "trace_id", "--label", "http_route", "--label", "user", "--label", "no.such.key")
    profiled([writer(), "shares", "1"], "-q", "-F", "499", *keys, "--record", path("l.rec"), "--json", "-o", path("l.json"))
    samples = [o for o in rows("l.json") if o["type"] == "sample"]
    assert_stay(samples)
    for o in samples:
        labels, names = o.get("labels", {}), stack_names(o)
        assert set(labels) <= {"trace_id", "http_route", "user"}, labels
        if labels.get("http_route") == "/a":
            assert labels["user"] == "alice" and labels["trace_id"] in ("a0" * 16, "a1" * 16), labels
            assert "work_b" not in names, o
        elif labels:
            assert labels["http_route"] == "/b" and labels["user"] == "bob" and labels["trace_id"] in ("b0" * 16, "b1" * 16), labels
    labelled = [o["labels"] for o in samples if "labels" in o]
    assert len({l["trace_id"] for l in labelled}) == 4, labelled[:5]  # two threads, two requests each
    # A recording has the same.
    good("report", path("l.rec"), "-q", "--json", "-o", path("l.again"))
    assert [o.get("labels") for o in rows("l.again") if o["type"] == "sample"] == [o.get("labels") for o in samples]
    good("report", path("l.rec"), "-q", "-f", "folded", "-o", path("l.folded"))
    assert sum(n for (route, _), n in by_label("l.folded", "http_route").items() if route) == len(labelled)
    if shutil.which("protoc"):
        good("report", path("l.rec"), "-q", "-f", "pprof", "-o", path("l.pprof"))
        p = decoded_pprof("l.pprof")
        texts = p["string_table"]
        count = 0
        for sample in p["sample"]:
            labels = {texts[one(l, "key")]: texts[one(l, "str")] for l in sample["label"] if "str" in l}
            if "http_route" in labels:
                assert {"/a": "alice", "/b": "bob"}[labels["http_route"]] == labels["user"], labels
                count += sample["value"][0]
        assert count == len(labelled), (count, len(labelled))


@test(long=True)
def labels_wherever_the_variable_lies():
    """A library from the start, or opened later with and without a fixed place for its variables; by both ways of compilers."""
    dialect = ("-mtls-dialect=gnu2",) if os.uname().machine == "x86_64" else ("-mtls-dialect=desc",)
    other = ("-mtls-dialect=gnu",) if os.uname().machine == "x86_64" else ("-mtls-dialect=trad",)
    ways = []
    for name, flags in (("desc", dialect), ("gd", other)):
        for size, large in (("", ()), ("large", ("-DLARGE",))):
            library = compiled(f"libotel{name}{size}.so", "variable.c", "-fPIC", "-shared", *flags, *large)
            ways.append((compiled("otel-opens", "writer.c", "-DOPENED"), library))
            if not large:
                ways.append((compiled(f"otel-{name}", "writer.c", library), library))
    ways.append((compiled("otel-no-pie", "writer.c", "variable.c", "-no-pie", "-Wl,--export-dynamic"), ""))
    for program, library in ways:
        command = ["env", "OTEL_LIBRARY=" + library, program, "shares", "0.8"]
        profiled(command, "-q", "-F", "499", "--label", "http_route", "-f", "folded", "-o", path("l.folded"))
        counts = by_label("l.folded", "http_route")
        assert counts.get(("/a", "work_a"), 0) > 20 and counts.get(("/b", "work_b"), 0) > 5, (program, library, counts)
        assert not {k for k in counts if k in (("/a", "work_b"), ("/b", "work_a"), ("/a", "work_none"), ("/b", "work_none"))}, counts


@test
def labels_of_a_writer_that_never_rests():
    """Ids that change all the time are those of one moment: trace, span and attribute agree."""
    keys = ("--label", "trace_id", "--label", "span_id", "--label", "number")
    profiled([writer(), "torn", "1.5"], "-q", "-F", "1999", *keys, "-f", "folded", "-o", path("l.folded"))
    seen = set()
    for line in read("l.folded").splitlines():
        labels = dict(f.split("=", 1) for f in line.split(";") if re.match(r"(trace_id|span_id|number)=", f))
        if labels:
            assert labels["trace_id"] == labels["span_id"] * 2 and labels["number"] == labels["span_id"], line
            seen.add(labels["span_id"])
    assert len(seen) > 50, len(seen)


@test
def labels_that_come_later_and_go():
    """A key that a process adds, and an attribute that it changes; a program that it executes has none of it."""
    if has_json():
        keys = ("http_route", "tenant", "service.name")
        profiled([writer(), "late", "2"], "-q", "-F", "499", *(word for key in keys for word in ("--label", key)), "--json", "-o", path("l.json"))
        own = [o for o in rows("l.json") if o["type"] == "sample" and {"work_a", "work_b"} & set(stack_names(o))]
        runs = label_runs(own, keys)
        early, late = ("/early", None, "shop"), ("/early", "north", "shop-2")
        # What was published is seen at the next look at the process: until then the labels are the earlier ones, and the new key has no name.
        # At first nothing is known of the process, or not yet where its threads' variable lies.
        assert [labels for labels, _ in runs[-2:]] == [early, late] and all(not any(labels[:2]) for labels, _ in runs[:-2]), [(l, len(o)) for l, o in runs]
        assert all(len(with_it) > 20 for _, with_it in runs[-2:]), [(l, len(o)) for l, o in runs]
        assert all("work_a" in stack_names(o) for labels, its in runs[:-2] for o in its) and all("work_b" in stack_names(o) for o in runs[-1][1]), runs[-1][1][0]
    profiled([writer(), "execs", "0.5"], "-q", "-F", "499", "--label", "http_route", "--label", "service.name", "-f", "folded", "-o", path("l.folded"))
    of_shell = [l for l in read("l.folded").splitlines() if re.search(r"(^|;)sh;", l)]
    assert len(of_shell) > 3 and all(l.startswith("sh;") for l in of_shell), of_shell[:5]
    assert re.search(r"^http_route=/a;service\.name=shop;otel-writer;", read("l.folded"), re.M), read("l.folded")


@test
def labels_of_waits():
    if not has_json():
        raise Skip("this build writes no JSON")
    profiled([writer(), "waits", "1.5"], "-q", "--off-cpu", "--label", "http_route", "--json", "-o", path("l.json"))
    assert_waits([o for o in rows("l.json") if o["type"] == "sample" and o["comm"] == "otel-writer"], {"/a": 30_000_000, "/b": 10_000_000})


@test
def doctor_tells_of_a_processs_context():
    p = subprocess.Popen([writer(), "waits", "20"], stdout=subprocess.PIPE)
    try:
        p.stdout.readline()
        text = good("doctor", "-p", str(p.pid)).out
        assert "OpenTelemetry context: service.name=shop, keys of threads: trace_id, span_id, http_route, user." in text, text
        if has_json():
            row = doctor_row(p.pid, "context")
            assert row["attributes"] == {"service.name": "shop"} and row["threads"] and row["keys"] == ["http_route", "user"], row
            assert row["schema"] == "tls_v1" and row["pid"] == p.pid, row
        # A process that ran before the profile began.
        r = run("profile", "-q", "--off-cpu", "--label", "http_route", "-f", "folded", "-d", "1", "-p", str(p.pid), "-o", path("l.folded"))
        if r.code == 0:
            counts = by_label("l.folded", "http_route", ())
            assert min(counts.get(("/a", ""), 0), counts.get(("/b", ""), 0)) > 0, counts
    finally:
        p.kill()
        p.wait()
    assert "OpenTelemetry" not in good("doctor", "-p", str(os.getpid())).out


@test
def a_context_that_lies_is_told_of():
    code = ("import mmap, os, struct, sys, time; f = os.memfd_create('OTEL_CTX'); os.ftruncate(f, 4096); m = mmap.mmap(f, 4096)\n"
            "m[:32] = b'OTEL_CTX' + struct.pack('<IIQQ', *map(int, sys.argv[1:5])); print('ready', flush=True); end = time.time() + 20\n"
            "while time.time() < end: sum(range(1000))")
    for header, why in (((2, 100, 5, 1), "the payload at 0x1 of the OTEL_CTX mapping can't be read"), ((3, 0, 5, 0), "has version 3; rawbpf reads version 2"),
                        ((2, 1 << 31, 5, 0), "has a payload of 2147483648 bytes"), ((2, 0, 0, 0), "is being changed")):
        p = subprocess.Popen(["/usr/bin/python3", "-c", code, *map(str, header)], stdout=subprocess.PIPE)
        try:
            p.stdout.readline()
            text = good("doctor", "-p", str(p.pid)).out
            assert re.search(r"OpenTelemetry context: not read: .*" + re.escape(why), text), text
            if header[0] == 3:
                r = run("profile", "-d", "0.5", "-p", str(p.pid), "--label", "x", "-f", "folded", "-o", path("l.lies"))
                if r.code != 3:
                    assert r.code == 0 and f"process {p.pid} has no labels: the OTEL_CTX mapping" in r.err and "version 3" in r.err, r.err
        finally:
            p.kill()
            p.wait()
