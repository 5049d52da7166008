"""The formats of a profile: well formed, and the same samples in each."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
import xml.dom.minidom

from harness import *
from protobuf import decoded_pprof, one
from workloads import FAMILY, SPLIT


@test
def every_format_is_well_formed():
    odd = path("odd name\\x")
    shutil.copy(SPLIT, odd)
    for f in ("table", "folded", "folded-ext", "json", "svg"):
        good("profile", "--freq", "199", "-f", f, "-o", path("o." + f), "--", odd, "1")
    table = read("o.table").splitlines()
    assert table[0].split() == ["TIME", "COMM", "PID", "CPUID", "KStackSz", "UStackSz"], table[0]
    assert len(table) > 20 and all(len(line.split()) == 6 for line in table[1:]), table[:3]
    for line in read("o.folded").splitlines():
        assert re.fullmatch(r"[^ ;]+(;[^;]+)+ \d+", line), line
        assert line.startswith(r"odd\x20name\x5cx;"), line
    for line in read("o.folded-ext").splitlines():
        assert re.match(r"\d{19} odd\\x20name\\x5cx \d+ \d+ \d+ \S", line), line
    dom = xml.dom.minidom.parseString(read("o.svg"))
    assert dom.documentElement.tagName == "svg"
    assert "http" not in read("o.svg").replace("http://www.w3.org", ""), "the flame graph refers to something outside"
    for o in rows("o.json"):
        assert list(o)[0] == "type"


# What others' tools take perf script's text apart by: stackcollapse-perf's rules for headers, events and frames.
def collapsed(text):
    out, comm, frames, times = {}, None, [], []
    for line in text.splitlines():
        if not line:
            assert comm is not None, "an empty line without a sample"
            stack = ";".join([comm, *reversed(frames)])
            out[stack] = out.get(stack, 0) + 1
            comm, frames = None, []
        elif line[0] not in " \t":
            header = re.match(r"(\S.+?)\s+(\d+)/*(\d+)*\s+\[\d+\]\s+(\d+\.\d+):\s", line)
            event = re.search(r":\s*(\d+)*\s+(\S+):\s*$", line)
            assert header and event and event.group(2) == "cpu-clock" and comm is None, line
            comm = header.group(1)
            times.append(float(header.group(4)))
        else:
            frame = re.match(r"\s*(\w+)\s*(.+) \((\S*)\)$", line)
            assert frame, line
            int(frame.group(1), 16)
            name = re.sub(r"\+0x[\da-f]+$", "", frame.group(2))
            if name == "[unknown]" and frame.group(3) != "[unknown]":
                name = "[" + os.path.basename(frame.group(3)).strip("[]") + "]"
            frames.append(name + ("_[k]" if frame.group(3).startswith("[kernel") else ""))
    assert comm is None, "the last sample has no end"
    assert max(times) - min(times) < 60 and abs(min(times) - time.time()) < 600, times[:3]
    return out


@test
def pprof_is_what_protoc_reads():
    if not shutil.which("protoc"):
        raise Skip("needs protoc (protobuf-compiler)")
    if lacks("gzip"):
        raise Skip("this build doesn't compress (zlib)")
    good("profile", "--freq", "499", "--record", path("pp.rec"), "--", SPLIT, "1")
    good("report", path("pp.rec"), "-q", "-f", "pprof", "-o", path("pp.gz"))
    folded = folded_stacks(good("report", path("pp.rec"), "-q", "-f", "folded").out)
    p = decoded_pprof("pp.gz")
    strings = p["string_table"]
    assert strings[0] == "" and len(strings) == len(set(strings)), strings
    kinds = [(strings[one(k, "type")], strings[one(k, "unit")]) for k in p["sample_type"]]
    assert kinds == [("samples", "count"), ("cpu", "nanoseconds")], kinds
    period = one(p, "period")
    assert period == round(1e9 / 499), period
    assert strings[one(one(p, "period_type"), "type")] == "cpu"
    assert abs(one(p, "time_nanos") / 1e9 - time.time()) < 600 and 0.9e9 < one(p, "duration_nanos") < 60e9, p["duration_nanos"]
    mappings = {one(m, "id"): m for m in p["mapping"]}
    functions = {one(f, "id"): strings[one(f, "name")] for f in p["function"]}
    locations = {one(l, "id"): l for l in p["location"]}
    assert 0 not in mappings and 0 not in functions and 0 not in locations
    names, counts = {}, {}
    for i, location in locations.items():
        m = mappings[one(location, "mapping_id")] if one(location, "mapping_id") else None
        assert m is None or one(m, "memory_start") <= one(location, "address") < one(m, "memory_limit"), (location, m)
        where = strings[one(m, "filename")] if m else ""
        line = location.get("line", [])
        name = functions[one(line[0], "function_id")] if line else "[" + os.path.basename(where).strip("[]") + "]" if m else "[unknown]"
        names[i] = name + ("_[k]" if where.startswith("[kernel") else "")
    assert strings[one(p["mapping"][0], "filename")] == os.path.realpath(SPLIT), "the first mapping isn't the program"
    note = subprocess.run(["readelf", "-n", SPLIT], capture_output=True, text=True).stdout
    assert strings[one(p["mapping"][0], "build_id")] in note, note
    for sample in p["sample"]:
        labels = {strings[one(l, "key")]: strings[one(l, "str")] or one(l, "num") for l in sample["label"]}
        assert labels["comm"] == "split" and labels["pid"] == labels["tid"] > 1, labels
        stack = ";".join(["split", *(names[i] for i in reversed(sample["location_id"]))])
        assert sample["value"][1] == sample["value"][0] * period
        counts[stack] = counts.get(stack, 0) + sample["value"][0]
    assert counts == folded, (counts, folded)
    assert any("--record" in strings[c] for c in p["comment"]) and any(strings[c].startswith("samples: fired") for c in p["comment"])


@test
def other_tools_formats_count_as_folded_does():
    odd = path("a \"b\";c (1)\n")
    shutil.copy(SPLIT, odd)
    good("profile", "--freq", "499", "--record", path("odd.rec"), "--", odd, "0.5")
    folded = folded_stacks(good("report", path("odd.rec"), "-q", "-f", "folded").out)
    perf = collapsed(good("report", path("odd.rec"), "-q", "-f", "perf-script").out)
    assert perf == folded, (perf, folded)

    def only_file(name):  # of a place without a name, where the format says the offset as well
        return re.sub(r"^\[(.+)\+0x[\da-f]+\]$", r"[\1]", name)

    if not has_json():
        raise Skip("this build writes no JSON")
    s = json.loads(good("report", path("odd.rec"), "-q", "-f", "speedscope").out)
    assert s["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = [f["name"] for f in s["shared"]["frames"]]
    counts = {}
    for p in s["profiles"]:
        assert p["type"] == "sampled" and p["unit"] == "nanoseconds" and len(p["samples"]) == len(p["weights"])
        assert p["startValue"] == 0 and p["endValue"] == sum(p["weights"])
        comm = p["name"].rsplit(" ", 1)[0]
        assert comm == os.path.basename(odd)[:15], p["name"]
        for sample, weight in zip(p["samples"], p["weights"]):
            stack = tuple(only_file(frames[i]) for i in sample)
            counts[stack] = counts.get(stack, 0) + round(weight * 499 / 1e9)
    wanted = {tuple(stack.split(";")[1:]): n for stack, n in folded.items()}
    assert counts == wanted, (counts, wanted)
    # Gecko's tables, a thread each; every index leads somewhere.
    gecko = json.loads(good("report", path("odd.rec"), "-q", "-f", "firefox").out)
    assert gecko["meta"]["version"] == 24 and abs(gecko["meta"]["interval"] - 1000 / 499) < 0.01, gecko["meta"]
    counts = {}
    for thread in gecko["threads"]:
        assert thread["name"] == os.path.basename(odd)[:15], thread["name"]
        table = {k: thread[k]["data"] for k in ("samples", "stackTable", "frameTable")}
        times = [t for _, t, _ in table["samples"]]
        assert times == sorted(times)
        for stack, _, _ in table["samples"]:
            names = []
            while stack is not None:
                prefix, frame = table["stackTable"][stack]
                assert prefix is None or prefix < stack
                names.append(only_file(thread["stringTable"][table["frameTable"][frame][0]].rsplit(" (in ", 1)[0]))
                stack = prefix
            names = tuple(reversed(names))
            counts[names] = counts.get(names, 0) + 1
    assert counts == wanted, (counts, wanted)
    # Threads are profiles of their own, in the order of time.
    good("profile", "--freq", "499", "-q", "-f", "speedscope", "-o", path("threads.json"), "--", FAMILY)
    names = [p["name"] for p in json.loads(read("threads.json"))["profiles"]]
    assert len(names) == len(set(names)) > 2, names
    # As they come: a reader at the other end of a pipe sees samples before the end.
    p = subprocess.Popen([RB, "profile", "--freq", "499", "-q", "-f", "perf-script", "--", SPLIT, "20"], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL)
    try:
        assert b"cpu-clock:" in p.stdout.readline()
    finally:
        p.send_signal(signal.SIGINT)
        p.stdout.close()
        assert p.wait(20) == 0


@test
def other_tools_formats_need_no_other_file():
    folder = path("board")
    os.mkdir(folder)
    alone = os.path.join(folder, "rawbpf-board")
    shutil.copy(os.path.realpath(RB), alone)
    for f in ("pprof", "perf-script", "speedscope", "firefox"):
        good("profile", "-q", "-f", f, "-o", "/dev/null", "--", "true", binary=alone)
        bad(1, r"no-such-capture", "report", f"--format={f}", "/no-such-capture", binary=alone)
    bad(2, r"pprof", "profile", "-f", "pproff")
    bad(1, r"no-such-dir", "profile", "-f", "pprof", "-o", "/no-such-dir/x", "--", "true")
    bad(1, r"no-such-capture", "report", "-f", "speedscope", "/no-such-capture")
    bad(1, r"no-such-a", "report", "no-such-a.rec", "--diff", "no-such-b.rec", "-f", "folded", binary=alone)
    bad(2, r"standard output isn't one", "profile", "--live", binary=alone)
    # A COMMAND's options are its own.
    assert good("profile", "-q", "-f", "folded", "-o", "/dev/null", "--", "echo", "-f", "pprof", binary=alone).out == "-f pprof\n"
