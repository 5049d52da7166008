"""rawbpf doctor on files and processes."""
import json
import os
import re
import subprocess

from harness import *
from probes import usdt_program, usdt_rows

DOCTOR_PROGRAM = r"""
#include <cstdio>
#include <unistd.h>
__attribute__((noinline)) int inner(int n) { return printf("%d", n) + n; }
__attribute__((noinline)) int outer(int n) { int v = inner(n); return v * inner(v); }
int main(int argc, char **) { int v = outer(argc); puts("ready"); fflush(stdout); sleep(100); return v; }
"""


def doctor_program(name, *options):
    subprocess.run([CXX, "-O1", "-x", "c++", "-", "-o", path(name), *options], input=DOCTOR_PROGRAM.encode(), check=True)
    return path(name)


def doctor_rows(*args):
    lines = [json.loads(line) for line in good("doctor", *args, "--json").out.splitlines()]
    assert lines[0]["type"] == "header" and lines[0]["command"][:2] == ["rawbpf", "doctor"], lines[0]
    return lines[1:]


@test
def doctor_looks_at_a_file():
    with_fp = doctor_program("with-fp", "-fno-omit-frame-pointer", "-g")
    without = doctor_program("without-fp", "-fomit-frame-pointer", "-s")
    rows = doctor_rows(with_fp, without)
    assert [r["path"] for r in rows] == [with_fp, without], rows
    fdes = len(re.findall(r" FDE ", subprocess.run(["readelf", "-wf", with_fp], capture_output=True, text=True).stdout))
    assert rows[0]["functions"] == fdes > 3, (rows[0], fdes)
    assert rows[0]["frame_pointers"] >= 3 > rows[1]["frame_pointers"], rows
    assert rows[0]["debug_info"] == with_fp and rows[0]["symbols_from"] == ".symtab", rows[0]
    assert rows[1]["debug_info"] is None and rows[1]["symbols_from"] != ".symtab", rows[1]
    assert rows[0]["bad_entries"] == 0 and rows[0]["bytes"] >= rows[0]["rows"] * 4 > 0, rows[0]
    text = good("doctor", without).out
    assert "by frame pointers alone" in text and "whole stacks through it by unwind tables" in text, text
    probes = usdt_program("doctor-probes")
    assert doctor_rows(probes)[0]["probes"] == len(usdt_rows("list", probes))


@test
def doctor_looks_at_a_process():
    program = doctor_program("doctor-process")
    p = subprocess.Popen([program], stdout=subprocess.PIPE)
    try:
        p.stdout.read(1)
        rows = [r for r in doctor_rows("-p", str(p.pid)) if r["type"] == "module"]
        assert {r["pid"] for r in rows} == {p.pid}, rows
        names = [os.path.basename(r["path"]) for r in rows]
        assert "doctor-process" in names and "libc.so.6" in names, names
        assert sum(r["rows"] for r in rows) > 10000, rows
        text = good("doctor", "-p", str(p.pid)).out
        assert f"process {p.pid}" in text and f" of {len(rows)} modules" in text, text
    finally:
        p.kill()
        p.wait()


@test
def doctor_looks_at_files_in_memory():
    """A program is judged as one; what a runtime keeps its code in is code that no file is behind."""
    program = doctor_program("doctor-memory")
    in_memory = ("import os, sys; f = os.memfd_create('doctored'); os.write(f, open(sys.argv[1], 'rb').read()); "
                 "os.execve(f, sys.argv[1:], os.environ)")
    p = subprocess.Popen(["python3", "-c", in_memory, program], stdout=subprocess.PIPE)
    try:
        p.stdout.read(1)
        (row,) = [r for r in doctor_rows("-p", str(p.pid)) if r.get("path", "").startswith("/memfd:doctored")]
        (of_file,) = doctor_rows(program)
        told = ("functions", "frame_pointers", "rows", "bytes", "symbols", "symbols_from")
        assert [row[k] for k in told] == [of_file[k] for k in told] and row["rows"] > 0, (row, of_file)
        text = good("doctor", "-p", str(p.pid)).out
        assert "/memfd:doctored" in text and "that no file is behind" not in text, text
    finally:
        p.kill()
        p.wait()
    jit = ("import mmap, os, sys; print(flush=True); sys.stdin.readline(); f = os.memfd_create('jit'); os.write(f, b'\\xc3' * 8192); "
           "all = [mmap.mmap(f, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC, offset=o) for o in (0, 4096)]; print(flush=True); "
           "sys.stdin.readline()")
    p = subprocess.Popen(["python3", "-c", jit], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        regions = []
        for _ in range(2):
            p.stdout.readline()
            text = good("doctor", "-p", str(p.pid)).out
            assert "/memfd:" not in text, text
            found = re.search(r"and (\d+) regions? of code that no file is behind", text)
            mapped = sum("x" in line.split()[1] and "/memfd:jit" in line for line in open(f"/proc/{p.pid}/maps"))
            regions.append((int(found[1]) if found else 0) - mapped)
            p.stdin.write(b"\n")
            p.stdin.flush()
        assert mapped > 0 and regions[0] == regions[1], (regions, mapped)
    finally:
        p.kill()
        p.wait()


@test
def doctor_says_how_well_python_is_seen():
    deep = "import time, sys\ndef f(n):\n  if n: return f(n - 1)\n  print(flush=True); time.sleep(100)\nf(12)"
    p = subprocess.Popen(["/usr/bin/python3", "-c", deep], stdout=subprocess.PIPE)
    try:
        p.stdout.readline()
        (row,) = [r for r in doctor_rows("-p", str(p.pid)) if r["type"] == "runtime"]
        assert row["language"] == "Python" and row["functions"], row
        text = good("doctor", "-p", str(p.pid)).out
        if os.uname().machine == "x86_64":
            # The same that a profile learns, which proves it: see python_test.py.
            assert re.fullmatch(r"CPython 3\.\d+\.\d+", row["version"]) and "learnt from its first thread just now" in row["how"], row
            assert row["version"] in text and "learnt from 14 frames" in text, text
    finally:
        p.kill()
        p.wait()


@test
def doctor_says_who_names_compiled_code():
    code = ("import mmap, os, sys; m = mmap.mmap(-1, 8192, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC); print(flush=True); "
            "sys.stdin.readline(); open(f'/tmp/perf-{os.getpid()}.map', 'w').write('1000 10 a\\n2000 10 b\\n'); print(flush=True); "
            "sys.stdin.readline(); os.unlink(f'/tmp/perf-{os.getpid()}.map')")
    p = subprocess.Popen(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        for names in (r"none: .*perf-\d+\.map.*", "2 functions in its perf map"):
            p.stdout.readline()
            (row,) = [r for r in doctor_rows("-p", str(p.pid)) if r["type"] == "compiled_code"]
            assert row["regions"] >= 1 and re.fullmatch(names, row["names"]), row
            text = good("doctor", "-p", str(p.pid)).out
            assert re.search(f"names of code made at run time: {names}", text), text
            p.stdin.write(b"\n")
            p.stdin.flush()
    finally:
        p.communicate(timeout=20)


@test
def doctor_bad_input():
    file = doctor_program("doctor-input")
    image = open(file, "rb").read()
    bad(1, r"ENOENT", "doctor", "/no-such-file")
    bad(1, r"not an ELF file", "doctor", "/etc/passwd")
    bad(1, r"not a regular file", "doctor", "/dev/null")
    bad(1, r"has exited", "doctor", "-p", "999999")
    bad(2, r"isn't a process id", "doctor", "-p", "x")
    r = run("doctor", "/no-such-file", file)  # the other one is shown
    assert r.code == 1 and "doctor-input" in r.out, r.out
    for size in (0, 63, 64, 1000, len(image) // 2, len(image) - 1):
        with open(path("cut-doctor"), "wb") as f:
            f.write(image[:size])
        r = run("doctor", path("cut-doctor"))
        assert r.code == 1 and "cut-doctor: " in r.err, (size, r.code, r.err)
    # What .eh_frame says is nonsense: counted, and what can be read stays.
    at = int(re.search(r" \.eh_frame +PROGBITS +\w+ +(\w+)", subprocess.run(["readelf", "-SW", file], capture_output=True,
                                                                          text=True).stdout)[1], 16)
    with open(path("odd-doctor"), "wb") as f:
        f.write(image[:at] + b"\xff" * 64 + image[at + 64:])
    row = doctor_rows(path("odd-doctor"))[0]
    assert row["bad_entries"] == 1 and ".eh_frame: offset 0x0: it doesn't fit" in row["first_bad"], row
