"""rawbpf usdt list and validate: probes of files and of processes."""
import os
import re
import shutil
import subprocess
import time

from harness import *
from probes import USDT_PROGRAM, as_readelf, readelf_probes, usdt_program, usdt_rows


@test
def usdt_list_says_what_readelf_says():
    libraries = [line.split()[2] for line in subprocess.run(["ldd", usdt_program("probes")], capture_output=True, text=True)
                 .stdout.splitlines() if "libstdc++" in line]
    assert len(libraries) == 1, libraries
    for file in [path("probes"), *libraries]:
        rows, theirs = usdt_rows("list", file), readelf_probes(file)
        assert rows and as_readelf(rows) == theirs, (file, as_readelf(rows), theirs)
        for r in rows:
            assert list(r) == ["type", "path", "provider", "name", "address", "file_offset", "semaphore", "args"], r
            assert r["path"] == file and all(list(a) == ["spec", "size", "signed", "location"] for a in r["args"]), r
    (probe,) = usdt_rows("list", path("probes"))
    assert [(a["size"], a["signed"]) for a in probe["args"]] == [(4, True), (2, True), (8, False), (4, True), (4, False)], probe
    assert probe["args"][3]["location"] == "-7" and "counter" in probe["args"][4]["location"], probe
    text = good("usdt", "list", path("probes")).out
    assert re.search(r"probes: 1 probe at 1 site, ", text) and re.search(r"app:places +0x\w+  semaphore 0x\w+  s32 ", text), text
    explained = good("usdt", "list", path("probes") + ":app:pl*", "--explain").out
    assert "arg4  4@" in explained and "call bpf_probe_read_user" in explained and "r7 = -7" in explained, explained
    assert "instructions" not in probe["args"][3]
    (again,) = usdt_rows("list", path("probes") + ":app", "--explain")
    assert again["args"][3]["instructions"] == ["r7 = -7"], again


@test
def usdt_list_of_a_process():
    if os.geteuid() != 0:
        raise Skip("needs root to look at mappings of deleted files")
    program = usdt_program("mapped-probes")
    p = subprocess.Popen([program], stdout=subprocess.PIPE)
    try:
        p.stdout.readline()
        rows = usdt_rows("list", "-p", str(p.pid))
        assert {(r["path"], r["provider"]) for r in rows} >= {(program, "app")}, rows
        assert any(r["path"].startswith("/") and "libstdc++" in r["path"] and r["name"] == "throw" for r in rows), rows
        assert {r["provider"] for r in usdt_rows("list", "-p", str(p.pid), ":app")} == {"app"}
        assert {r["name"] for r in usdt_rows("validate", "-p", str(p.pid), "mapped-probes")} == {"places"}
        bad(1, r"did you mean app", "usdt", "list", "-p", str(p.pid), ":apq")
        os.unlink(program)
        usdt_program("mapped-probes", "-DUNSOUND")  # an upgrade: the path has another file now
        rows = [r for r in usdt_rows("list", "-p", str(p.pid)) if r["provider"] == "app"]
        assert [(r["path"], r["name"]) for r in rows] == [(program + " (deleted)", "places")], rows
    finally:
        p.kill()
        p.wait()
    if shutil.which("chroot"):  # a container's files are its own
        os.makedirs(path("probes-jail"))
        usdt_program("probes-jail/inside", "-static")
        p = subprocess.Popen(["chroot", path("probes-jail"), "/inside"], stdout=subprocess.PIPE)
        try:
            p.stdout.readline()
            rows = usdt_rows("list", "-p", str(p.pid), "inside:app")
            assert [(r["path"].endswith("/inside"), r["name"]) for r in rows] == [(True, "places")], rows
        finally:
            p.kill()
            p.wait()
    bad(1, r"has exited", "usdt", "list", "-p", "999999")
    # Debian 13's C library has probes of its own, so this one has none.
    alone = compile_program("without-probes", 'extern "C" void _start() { for (;;) __asm__ volatile(""); }', "-nostdlib", "-static", "-fno-pie", "-no-pie")
    p = subprocess.Popen([alone])
    try:
        time.sleep(0.1)
        bad(1, r"no file with USDT probes", "usdt", "list", "-p", str(p.pid))
    finally:
        p.kill()
        p.wait()


@test
def usdt_validate_finds_what_is_not_sound():
    file = usdt_program("sound-probes")
    out = good("usdt", "validate", file).out
    assert re.search(r"ok +app:places +0x\w+  nop, semaphore, 5 of 5 arguments in \d+ instructions", out), out
    assert out.endswith("1 site, all sound\n"), out
    file = usdt_program("unsound-probes", "-DUNSOUND")
    rows = {r["name"]: r for r in usdt_rows("validate", file, code=1)}
    assert [a["insns"] for a in rows["places"]["args"]][:4:3] == [3, 1], rows["places"]
    assert rows["places"]["ok"] and rows["places"]["nop"] == "nop" and rows["places"]["problems"] == [], rows["places"]
    real = rows["real"]
    assert not real["ok"] and "floating point register" in real["problems"][0], real
    assert [a["location"] is None for a in real["args"]] == [False, True, False] and real["args"][1]["size"] == 8, real
    assert real["args"][0]["location"] == real["args"][2]["location"], "its neighbours have kept their places"
    assert rows["moved"]["nop"] is None and "no nop is at its site" in rows["moved"]["problems"][0], rows["moved"]
    assert 'its provider, "a pp", is no name' in rows["spaced"]["problems"][0], rows["spaced"]
    r = run("usdt", "validate", file)
    assert r.code == 1 and "4 sites, 3 not sound" in r.out and r.out.count("BAD") == 3, r.out
    assert run("usdt", "validate", file + ":app:places").code == 0
    # The semaphore's segment, no longer writable.
    image = bytearray(open(path("sound-probes"), "rb").read())
    (probe,) = usdt_rows("list", path("sound-probes"))
    at, count = int.from_bytes(image[32:40], "little"), image[56]
    for i in range(count):
        header = at + i * 56
        address, size = (int.from_bytes(image[header + o:header + o + 8], "little") for o in (16, 32))
        if image[header] == 1 and address <= int(probe["semaphore"], 16) < address + size:
            image[header + 4] = 4
    with open(path("readonly-probes"), "wb") as f:
        f.write(image)
    (probe,) = usdt_rows("validate", path("readonly-probes"), code=1)
    assert probe["problems"] == ["its semaphore isn't in a writable segment"], probe


@test
def usdt_bad_input():
    file = usdt_program("input-probes")
    image = open(file, "rb").read()
    bad(1, r"no USDT probes.*\n.*postgresql-15", "usdt", "list", "/bin/ls")
    bad(1, r"not an ELF file", "usdt", "list", "/etc/passwd")
    bad(1, r"ENOENT", "usdt", "list", "/no-such-file")
    bad(1, r"not a regular file", "usdt", "list", "/dev/null")
    bad(1, r"did you mean app:places", "usdt", "list", file + ":app:place")
    bad(1, r"did you mean app\?", "usdt", "validate", file + ":apps")
    bad(1, r"its providers: app", "usdt", "list", file + ":nothing")
    bad(2, r"give a FILE", "usdt", "list")
    bad(2, r"there is usdt list, usdt validate", "usdt", "lst")
    with open(path("script-probes"), "w") as f:
        f.write("#!/usr/bin/interpreter -x\n")
    bad(1, r"/usr/bin/interpreter", "usdt", "list", path("script-probes"))
    for size in (0, 3, 63, 64, 1000, len(image) // 2, len(image) - 1):
        with open(path("cut-probes"), "wb") as f:
            f.write(image[:size])
        r = run("usdt", "list", path("cut-probes"))
        assert r.code == 1 and "cut-probes: " in r.err, (size, r.code, r.err)
    # A note whose size is absurd, behind one that is sound: what can be read is listed.
    subprocess.run([CXX, "-c", "-x", "c++", "-", "-o", path("probes.o")], input=USDT_PROGRAM.encode(), check=True)
    bad(1, r"object file", "usdt", "list", path("probes.o"))
    at = image.index(b"stapsdt\0")
    for field in (12, 8):  # namesz, descsz
        with open(path("absurd-probes"), "wb") as f:
            f.write(image[:at - field] + b"\xff\xff\xff\x7f" + image[at - field + 4:])
        r = run("usdt", "list", path("absurd-probes"))
        assert r.code == 1 and re.search(r"\.note\.stapsdt: offset 0x\w+: needs 2147483647 bytes", r.err), r.err
