"""Labels of events: `trace`, `usdt trace` and `custom` with --label. Each event has the id that its thread said of itself in that moment."""
from labelled import caller
from protobuf import decoded_pprof, one

from harness import *

import threading

KEYS = ("--label", "trace_id", "--label", "span_id", "--label", "number", "--label", "service.name", "--label", "no.such.key")


def events_of(*words):
    r = run(*words)
    if r.code == 3:
        raise Skip(r.err.strip().splitlines()[-1])
    assert r.code == 0, r.err
    return r


def id_of(labels):
    """The request's id; trace, span and attribute are of one moment."""
    assert set(labels) == {"trace_id", "span_id", "number", "service.name"}, labels
    assert labels["trace_id"] == labels["span_id"] * 2 and labels["number"] == labels["span_id"] and labels["service.name"] == "shop", labels
    return int.from_bytes(bytes.fromhex(labels["span_id"]), "little")


def assert_own(events, said, mask=(1 << 64) - 1):
    """Events have their request's labels, but for the first moments of the process: until it is looked at, and its threads' variable is found."""
    labelled = [o for o in events if "span_id" in o.get("labels", {})]
    wrong = [o for o in labelled if id_of(o["labels"]) & mask != said(o) & mask]
    assert not wrong, wrong[:2]
    since = events[events.index(labelled[0]):] if labelled else []
    assert len(labelled) > 300 and len(labelled) > 0.99 * len(since) and len(since) > len(events) / 2, (len(labelled), len(since), len(events))
    assert len({o["labels"]["span_id"] for o in labelled}) > 300
    return labelled


def argument(at):
    return lambda o: int(str(o["args"][at]["value"]), 0)


def called(name, what, *options):
    events_of(*what, "-q", "--json", "-o", path(name), *options, "--", caller(), "calls", "1")
    return [o for o in rows(name) if o["type"] in ("call", "return", "trace")]


FUNCTION = ("trace", "uprobe:{}:handle", "--sig", "unsigned long")
PLACES = {"function": (FUNCTION, 0, (1 << 64) - 1), "usdt": (("usdt", "trace", "{}:otel:handle"), 0, (1 << 64) - 1),
          "syscall": (("trace", "syscall:getpriority"), 1, 0x3fffff)}


def place(name):
    words, at, mask = PLACES[name]
    return [w.format(caller()) for w in words], argument(at), mask


@test
def event_labels_bad_usage():
    bad(2, r"a key has a name", "trace", "syscall:write", "--label", "")
    bad(2, r"a key has a name", "usdt", "trace", "./x", "--label", "")
    bad(2, r"a key has a name", "custom", "./x:y", "--label", "")
    bad(2, r"perf-script has no place for labels", "trace", "syscall:write", "--label", "x", "-f", "perf-script")
    bad(2, r"perf-script has no place for labels", "custom", "./x:y", "--label", "x", "-f", "perf-script")
    for option in (("--count",), ("--by", "comm", "--count"), ("--hist", "duration")):
        bad(2, r"--label is about events, and counts and groups show none", "trace", "syscall:write", "--label", "x", *option)
    bad(2, r"spans have no place for labels", "trace", "syscall:write", "--label", "x", "--spans")


@test
def event_labels_are_of_the_thread_that_calls():
    if not has_json():
        raise Skip("this build writes no JSON")
    for name in PLACES:
        what, said, mask = place(name)
        assert_own(called("e.json", what, *KEYS), said, mask)
        events = called("e.json", what, *KEYS, "--stack")
        assert_own(events, said, mask)
        assert all("main" in str(o["stack"]) or "calls" in str(o["stack"]) for o in events if o["stack"]["user"]), events[0]
    # Returns have theirs, too; and without the option there are none.
    what, said, mask = place("function")
    events = called("e.json", what, "-r", "--label", "span_id", *KEYS)
    returned = [o for o in events if o["type"] == "return" and "span_id" in o.get("labels", {})]
    assert len(returned) > 200, len(returned)
    for o in returned:
        id_of(o["labels"])
    assert not any("labels" in o for o in called("e.json", what))


@test
def event_labels_in_every_format():
    what, said, mask = place("function")
    command = ("--", caller(), "calls", "1")
    label = ("--label", "span_id")
    text = events_of(*what, "-q", *label, *command).out
    found = re.findall(r"handle\(.*?\) \{span_id=\"([0-9a-f]{16})\"\}$", text, re.M)
    assert len(set(found)) > 300, text[:500]
    graph = events_of(*what, "-q", "--graph", *label, *command).out
    assert len(set(re.findall(r"; \{span_id=\"([0-9a-f]{16})\"\}$", graph, re.M))) > 200, graph[:500]
    folded = events_of(*what, "-q", "--stack", "-f", "folded", *label, *command).out
    lines = re.findall(r"^span_id=([0-9a-f]{16});.*;handle 1$", folded, re.M)
    assert len(set(lines)) == len(lines) > 300, folded[:500]
    calls = events_of(*what, "-q", "-f", "folded", "--label", "service.name", *command).out
    assert re.search(r"^service\.name=shop;otel-caller;handle \d+$", calls, re.M), calls[:500]
    # Stacks that are counted in the kernel: two threads' are one, and all but the first moments' have the label.
    counted = events_of(*what, "-q", "--stack", "-f", "folded", "--label", "service.name", "--label", "no.such.key", *command).out
    shares = {}
    for line in counted.splitlines():
        stack, n = line.rsplit(" ", 1)
        shares[stack.startswith("service.name=shop;")] = shares.get(stack.startswith("service.name=shop;"), 0) + int(n)
    assert shares.get(True, 0) > 300 and shares.get(False, 0) < shares[True], counted
    if not has_json():
        return
    events_of(*what, "-q", "-f", "chrome", "-o", path("e.chrome"), *label, *command)
    with open(path("e.chrome")) as f:
        spans = {e["args"]["labels"]["span_id"] for e in json.load(f)["traceEvents"] if "labels" in e.get("args", {})}
    assert len(spans) > 300, len(spans)
    if shutil.which("protoc"):
        events_of(*what, "-q", "--stack", "-f", "pprof", "-o", path("e.pprof"), *label, *command)
        p = decoded_pprof("e.pprof")
        texts = p["string_table"]
        spans = {texts[one(l, "str")] for s in p["sample"] for l in s["label"] if texts[one(l, "key")] == "span_id"}
        assert len(spans) > 300, len(spans)


@test
def event_labels_in_recordings():
    """What a live run shows, a report shows."""
    what, said, mask = place("function")
    for more in ((), ("--stack",)):
        events_of(*what, "-q", *KEYS, *more, "--record", path("e.rec"), "--", caller(), "calls", "1")
        if has_json():
            good("report", path("e.rec"), "-q", "--json", "-o", path("e.json"))
            assert_own([o for o in rows("e.json") if o["type"] == "call"], said, mask)
        text = good("report", path("e.rec"), "-q").out
        assert len(set(re.findall(r"span_id=\"([0-9a-f]{16})\"", text))) > 300, text[:500]
    good("report", path("e.rec"), "-q", "-f", "folded", "-o", path("e.folded"))
    assert len(re.findall(r"^trace_id=[0-9a-f]{32};span_id=[0-9a-f]{16};number=[0-9a-f]{16};service\.name=shop;.*;handle 1$", read("e.folded"), re.M)) > 300


@test
def event_labels_of_custom_traces():
    what = ("custom", caller() + ":handle")
    said = lambda o: int(o["context"], 16)
    command = ("--", caller(), "calls", "1")
    if has_json():
        assert_own(called("e.json", what, *KEYS), said)
        assert not any("labels" in o for o in called("e.json", what))
    text = events_of(*what, "-q", "--label", "span_id", *command).out
    found = re.findall(r"^Context Value: (\d+) .*\nPID: .*\nLabels: \{span_id=\"([0-9a-f]{16})\"\}$", text, re.M)
    assert len(found) > 300 and all(int(n) == int.from_bytes(bytes.fromhex(s), "little") for n, s in found), (len(found), text[:500])
    folded = events_of(*what, "-q", "-f", "folded", "--label", "service.name", *command).out
    assert sum(int(l.rsplit(" ", 1)[1]) for l in folded.splitlines() if l.startswith("service.name=shop;")) > 300, folded
    events_of(*what, "-q", *KEYS, "--record", path("e.rec"), *command)
    if has_json():
        good("report", path("e.rec"), "-q", "--json", "-o", path("e.json"))
        assert_own([o for o in rows("e.json") if o["type"] == "trace"], said)
    # Waits, and samples, have those of their thread.
    r = run(*what, "-q", "--off-cpu", "-F", "499", "--json", "-o", path("e.json"), *KEYS, *command)
    if r.code == 0 and has_json():
        waits = [o for o in rows("e.json") if o["type"] == "trace" and o["origin"] == "off_cpu" and "labels" in o and "span_id" in o["labels"]]
        assert len(waits) > 300, len(waits)
        for o in waits:
            id_of(o["labels"])


@test
def event_labels_of_a_process_that_runs():
    """With --pid it is looked at before its first event."""
    if not has_json():
        raise Skip("this build writes no JSON")
    p = subprocess.Popen([caller(), "calls", "20"], stdout=subprocess.PIPE)
    try:
        p.stdout.readline()
        for name in ("function", "usdt"):
            what, said, mask = place(name)
            events_of(*what, "-q", "--json", "-o", path("e.json"), *KEYS, "-d", "1", "-p", str(p.pid))
            events = [o for o in rows("e.json") if o["type"] == "call"]
            assert len(assert_own(events, said, mask)) == len(events), [o for o in events if "labels" not in o][:2]
            # Counted in the kernel they have them, too.
            counts = folded_stacks(events_of(*what, "-q", "--stack", "-f", "folded", "--label", "service.name", "-d", "1", "-p", str(p.pid)).out)
            assert sum(counts.values()) > 300 and all(stack.startswith("service.name=shop;") for stack in counts), counts
    finally:
        p.kill()
        p.wait()


@test(long=True)
def event_labels_of_a_process_that_has_ended_or_executed_another():
    """What it did last is shown after its end, where rawbpf comes late: all of it has labels, as what came before."""
    if not has_json():
        raise Skip("this build writes no JSON")
    for name, how in (("function", "calls"), ("syscall", "leaves")):
        what, said, mask = place(name)
        target = subprocess.Popen([caller(), how, "1000" if how == "calls" else "5"], stdout=subprocess.PIPE)
        target.stdout.readline()
        tool, is_ready = until_ready(*what, "-q", "--json", *KEYS, "-p", str(target.pid), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            if not is_ready:
                raise Skip(tool.stderr.read().decode().strip())
            time.sleep(4)  # nobody reads meanwhile; more events wait than are shown between two looks at the process
            if how == "leaves":
                until(lambda: read(f"/proc/{target.pid}/comm") == "sleep\n", lambda: "it hasn't executed sleep")
                time.sleep(0.3)  # until it is looked at again
                threading.Timer(1.5, target.kill).start()
            else:
                target.kill()
                target.wait()
                time.sleep(0.2)
            out, err = tool.communicate(timeout=60)
        finally:
            target.kill()
            target.wait()
            tool.kill()
        assert tool.returncode == 0, err
        events = [o for o in map(json.loads, out.splitlines()) if o["type"] in ("call", "trace") and o["comm"] != "sleep"]
        assert len(assert_own(events, said, mask)) == len(events) > 600, (name, how, len(events), [o for o in events if "labels" not in o][:1])
