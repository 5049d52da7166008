"""Lines and inlined functions, and debug files from a server."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

from harness import *
from draw import needs_lines


def build_id(program):
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes)[1]


@test
def lines_and_inlined_functions():
    draw = needs_lines()
    for command in (["profile", "--freq", "499", "-q"], ["report", path("draw.rec"), "-q"]):
        live = ["--", draw] if command[0] == "profile" else []
        stacks = good(*command, "--inline", "-f", "folded", "-o", path("i.folded"), *live) and read("i.folded")
        in_square = sum(int(n) for n in re.findall(r"^draw;[^\n]*area\(long\);square_\[i\](?:;\S*)? (\d+)$", stacks, re.M))
        assert in_square > 50, stacks
        plain = good(*command, "-f", "folded", "-o", path("p.folded"), *live) and read("p.folded")
        assert "_[i]" not in plain and "area(long)" in plain, plain
        good(*command, "--lines", "--inline", "--ps", "-o", path("l.txt"), *live)
        assert re.search(r"square \(inlined\) \(draw.cpp:4\)  \[draw\]\n.*area\(long\)\+0x\w+ \(draw.cpp:9\)  \[draw\]\n", read("l.txt")), read("l.txt")[:2000]
        # Without --inline a frame's line is one of its own function.
        good(*command, "--lines", "--ps", "-o", path("o.txt"), *live)
        assert re.search(r"area\(long\)\+0x\w+ \(draw.cpp:9\)  \[draw\]", read("o.txt")) and "inlined" not in read("o.txt"), read("o.txt")[:2000]
    if not has_json():
        return
    frames = {}
    for options in ((), ("--lines",), ("--inline",), ("--lines", "--inline")):
        out = [json.loads(line) for line in good("report", path("draw.rec"), "-q", "-f", "json", *options).out.splitlines()]
        ledger_of(out)
        frames[options] = [f for o in out if o["type"] == "sample" for f in o["user"]]
    assert not any({"file", "line", "inlined"} & set(f) for f in frames[()])
    assert not any("inlined" in f for f in frames["--lines",]) and any(f.get("line") == 9 for f in frames["--lines",])
    assert not any("file" in f for f in frames["--inline",]) and any(f.get("inlined") for f in frames["--inline",])
    both = frames["--lines", "--inline"]
    assert all(f["file"] == path("draw.cpp") for f in both if f["symbol"] == "square"), both[:3]
    assert all(f["symbol_offset"] is None for f in both if f.get("inlined"))


@test
def lines_say_what_is_missing():
    draw = needs_lines()
    folder = path("lines-alone")
    os.mkdir(folder)
    alone = os.path.join(folder, "rawbpf")
    shutil.copy(os.path.realpath(RB), alone)
    for option in ("--lines", "--inline"):
        r = run("report", path("draw.rec"), option, binary=alone)
        assert r.code == 0 or (r.code == 3 and "rawbpf-lines.so" in r.err), r.err  # an installed one may be found
    # No debug info: once a module, and everything else is there.
    os.rename(draw, path("draw.whole"))
    try:
        subprocess.run(["strip", "-g", "-o", draw, path("draw.whole")], check=True)
        r = good("report", path("draw.rec"), "--lines", "-f", "folded", env=dict(os.environ, DEBUGINFOD_URLS=""))
        assert len(re.findall(r"no lines for \S*/draw: no debug info here; DEBUGINFOD_URLS names no server", r.err)) == 1, r.err
        assert "area(long)" in r.out, r.out
    finally:
        os.rename(path("draw.whole"), draw)


@test
def debug_files_from_a_server():
    draw = needs_lines()
    if lacks("debuginfod"):
        raise Skip("this build was made without libdebuginfod")
    site = path("site")
    folder = os.path.join(site, "buildid", build_id(draw))
    os.makedirs(folder)
    subprocess.run(["objcopy", "--only-keep-debug", draw, os.path.join(folder, "debuginfo")], check=True)
    os.rename(draw, path("draw.whole"))
    subprocess.run(["strip", "-s", "-o", draw, path("draw.whole")], check=True)
    code = "import functools,http.server as h,sys;s=h.ThreadingHTTPServer(('127.0.0.1',0),functools.partial(h.SimpleHTTPRequestHandler,"\
           "directory=sys.argv[1]));print(s.server_port,flush=True);s.serve_forever()"
    server = subprocess.Popen([sys.executable, "-c", code, site], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port = int(server.stdout.readline())
    silent = socket.create_server(("127.0.0.1", 0))
    closed = socket.create_server(("127.0.0.1", 0))
    closed_port = closed.getsockname()[1]
    closed.close()
    number = [0]

    def asked(port, *options, **more):
        number[0] += 1
        env = dict(os.environ, DEBUGINFOD_URLS=f"http://127.0.0.1:{port}", DEBUGINFOD_CACHE_PATH=path(f"cache{number[0]}"), **more)
        start = time.monotonic()
        r = good("report", path("draw.rec"), "-f", "folded", *options, env=env)
        return r, time.monotonic() - start

    try:
        assert "area(long)" not in good("report", path("draw.rec"), "-f", "folded", env=dict(os.environ, DEBUGINFOD_URLS="")).out
        r, _ = asked(port)  # symbols: the variable is enough
        assert re.search(r"area\(long\) \d+$", r.out, re.M), (r.out, r.err)
        r, _ = asked(port, "--inline")
        assert "area(long);square_[i]" in r.out, (r.out, r.err)
        assert "no lines for /" not in r.err or "draw:" not in r.err, r.err
        # Another build's file is not believed.
        shutil.copy(os.path.join(folder, "debuginfo"), path("right"))
        subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", path("right"), os.path.join(folder, "debuginfo")], check=True)
        r, _ = asked(port, "--inline")
        assert "area(long)" not in r.out and "none at DEBUGINFOD_URLS" in r.err, (r.out, r.err)
        os.unlink(os.path.join(folder, "debuginfo"))  # 404
        r, _ = asked(port, "--inline")
        assert "area(long)" not in r.out and "none at DEBUGINFOD_URLS" in r.err and "not asked again" not in r.err, (r.out, r.err)
        # Nobody there; somebody who says nothing: once, and bounded.
        r, took = asked(closed_port, "--inline")
        assert r.err.count("not asked again") == 1 and took < 20, (took, r.err)
        r, took = asked(silent.getsockname()[1], "--inline", DEBUGINFOD_TIMEOUT="1")
        assert r.err.count("not asked again") == 1 and took < 20, (took, r.err)
        assert re.search(r"^draw;.* \d+$", r.out, re.M), r.out
    finally:
        server.kill()
        server.wait()
        silent.close()
        os.rename(path("draw.whole"), draw)
