"""Programs of others that join custom traces by pinned maps."""
import os
import re
import shutil
import signal
import subprocess
import time

from harness import *
from reporter import CustomRun, SOURCE_CUSTOM, custom


@test
def custom_foreign_programs_join_by_pins():
    here = os.path.join(HERE, "../../programs/custom/example/")
    if not os.path.exists("/sys/fs/bpf") or not shutil.which("clang"):
        raise Skip("needs a bpf file system and clang")
    linked = subprocess.run([os.environ.get("CC", "cc").split()[0], "-o", path("join"), here + "join_libbpf.c", "-lbpf"], capture_output=True)
    if linked.returncode != 0:
        raise Skip("needs libbpf to build with (Debian's libbpf-dev)")
    custom(path("reporter") + ":report_trace", "-q", "--", path("reporter"))  # or a SKIP that says what is missing
    pins = f"/sys/fs/bpf/rawbpf-cli-{os.getpid()}"
    arch, triple = ("x86", "x86_64") if os.uname().machine == "x86_64" else ("arm64", "aarch64")
    subprocess.run(["clang", "--target=bpf", f"-D__TARGET_ARCH_{arch}", "-DWITH_LIBBPF", "-O2", "-g", "-I", f"/usr/include/{triple}-linux-gnu",
                    "-c", here + "example_tailcall.bpf.c", "-o", path("libbpf.o")], check=True)
    p = subprocess.Popen([RB, "custom", "--pin", pins, "--json", "-o", path("pinned.json"), "-v"], stderr=subprocess.PIPE, text=True)
    joined = None
    try:
        deadline = time.time() + 20
        while not os.path.exists(pins + "/custom_context_by_thread") and time.time() < deadline and p.poll() is None:
            time.sleep(0.05)
        assert sorted(os.listdir(pins)) == ["custom__generic", "custom__generic_perf_event", "custom__generic_tracepoint",
                                            "custom_context_by_thread", "custom_context_map"], p.poll()
        joined = subprocess.Popen([path("join"), pins, path("libbpf.o"), path("reporter"), "report_trace"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        assert joined.stdout.readline() == "joined\n"
        subprocess.run([path("reporter")], check=True)
        joined.communicate(timeout=20)
        assert joined.returncode == 0
    finally:
        if joined and joined.poll() is None:
            joined.kill()
            joined.wait()
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=20)
    assert p.returncode == 0 and not os.path.exists(pins)
    objects = rows("pinned.json")
    assert [int(o["context"], 16) for o in objects if o["type"] == "trace"] == list(range(4096, 4101)), objects
    assert ledger_of(objects)["fired"] == 5


@test
def custom_what_can_not_join_says_why_and_what_helps():
    custom(path("reporter") + ":report_trace", "-q", "--", path("reporter"))
    target = path("reporter") + ":report_trace"
    r = bad(1, "no_such_function", "custom", path("reporter") + ":no_such_function", "-d", "0.1")
    r = bad(1, r"report_trac\b.*", "custom", path("reporter") + ":report_trac", "-d", "0.1")
    assert "report_trace" in r.err, r.err
    copy = path("rawbpf-copy") # where everybody may run it
    shutil.copy(os.path.realpath(RB), copy)
    os.chmod(copy, 0o755)
    r = run("setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", copy, "custom", target, "-d", "0.1", binary=None)
    assert r.code == 3 and re.search("CAP_BPF|CAP_PERFMON", r.err), (r.code, r.err)
    if not shutil.which("clang"):
        raise Skip("the rest needs clang")
    include = os.path.join(HERE, "../../programs/include")

    def refused(name, source, pattern, hint):
        with open(path(name + ".bpf.c"), "w", encoding="utf-8") as f:
            f.write('#include <rawbpf/bpf.h>\nLICENSE("GPL");\n' + source)
        arch = "x86" if os.uname().machine == "x86_64" else "arm64"
        subprocess.run(["clang", "--target=bpf", f"-D__TARGET_ARCH_{arch}", "-O2", "-g", "-I", include, "-c", path(name + ".bpf.c"), "-o", path(name + ".o")],
                       check=True)
        said = bad(1, pattern, "custom", "--object", path(name + ".o"), target, "--", path("reporter")).err
        assert re.search(hint, said), said

    contexts = """struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 10240); __type(key, __u64); __type(value, __u64); }
        custom_context_by_thread SEC(".maps");\n"""
    array = """struct { __uint(type, BPF_MAP_TYPE_PROG_ARRAY); __uint(max_entries, 1); __uint(key_size, 4); __uint(value_size, 4); } jumps SEC(".maps");\n"""
    body = """ int example(void *ctx) {
        __u64 one = bpf_get_current_pid_tgid();
        bpf_map_update_elem(&custom_context_by_thread, &one, &one, BPF_ANY);
        %s
        return 0;
    }\n"""
    jump = "bpf_tail_call(ctx, &jumps, 0);"
    refused("other_type", contexts + array + 'SEC("raw_tp/sched_switch")' + body % jump,
            "there is no generic program of its type, BPF_PROG_TYPE_RAW_TRACEPOINT", "one for kprobes and uprobes, one for perf events and one for tracepoints")
    refused("no_jump", contexts + 'SEC("uprobe")' + body % "", "jumps through a prog array that is empty", "define a BPF_MAP_TYPE_PROG_ARRAY")
    refused("no_context", array + """SEC("uprobe") int example(void *ctx) { bpf_tail_call(ctx, &jumps, 0); return 0; }""",
            "neither of the maps for contexts", "custom_context_by_thread .hash, u64 -> u64, 10240 entries.")
    refused("wrong_key", contexts.replace("__type(key, __u64)", "__type(key, __u32)") + array + 'SEC("uprobe")' + body % jump,
            "keys of 8 bytes, the programs were compiled for keys of 4 bytes", "custom_context_by_thread")


@test
def custom_a_program_that_bpftool_loaded_joins_by_pins():
    here = os.path.join(HERE, "../../programs/custom/example/")
    missing = [tool for tool in ("clang", "bpftool", "nm") if not shutil.which(tool)]
    if missing or not os.path.exists("/sys/fs/bpf"):
        raise Skip("needs a bpf file system, " + " ".join(missing))
    if subprocess.run([os.environ.get("CC", "cc").split()[0], "-o", path("attach"), here + "attach_pinned.c", "-lbpf"], capture_output=True).returncode != 0:
        raise Skip("needs libbpf to build with (Debian's libbpf-dev)")
    custom(path("reporter") + ":report_trace", "-q", "--", path("reporter"))
    arch, triple = ("x86", "x86_64") if os.uname().machine == "x86_64" else ("arm64", "aarch64")
    subprocess.run(["clang", "--target=bpf", f"-D__TARGET_ARCH_{arch}", "-DWITH_LIBBPF", "-O2", "-g", "-I", f"/usr/include/{triple}-linux-gnu",
                    "-c", here + "example_tailcall.bpf.c", "-o", path("bpftool.o")], check=True)
    # The first segment begins at the start of the file, and the code behind it lies there as in memory.
    program = compile_program("joined", SOURCE_CUSTOM, "-fPIE", "-pie")
    offset = next(line.split()[0] for line in subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout.splitlines()
                  if line.endswith(" T report_trace"))
    pins, theirs = f"/sys/fs/bpf/rawbpf-cli-{os.getpid()}", f"/sys/fs/bpf/rawbpf-cli-{os.getpid()}-theirs"

    def bpftool(*args):
        r = subprocess.run(["bpftool", *args], capture_output=True, text=True)
        assert r.returncode == 0, (args, r.stdout, r.stderr)

    try:
        with CustomRun("--pin", pins) as it:
            bpftool("prog", "load", path("bpftool.o"), theirs, "type", "kprobe", "map", "name", "custom_context_by_thread", "pinned",
                    pins + "/custom_context_by_thread", "pinmaps", theirs + "-maps")
            bpftool("map", "update", "pinned", theirs + "-maps/prog_array", "key", "0", "0", "0", "0", "value", "pinned", pins + "/custom__generic")
            wrong = subprocess.run(["bpftool", "map", "update", "pinned", theirs + "-maps/prog_array", "key", "0", "0", "0", "0", "value", "pinned",
                                    pins + "/custom__generic_tracepoint"], capture_output=True)
            assert wrong.returncode != 0, "a program of another type"
            attached = subprocess.Popen([path("attach"), theirs, program, "0x" + offset], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert attached.stdout.readline() == "attached\n"
            subprocess.run([program], check=True)
            attached.communicate(timeout=20)
    finally:
        for path_of in (theirs, theirs + "-maps/prog_array", theirs + "-maps/custom_context_by_thread"):
            if os.path.exists(path_of):
                os.unlink(path_of)
        if os.path.exists(theirs + "-maps"):
            os.rmdir(theirs + "-maps")
    objects = it.ended()
    traces = [o for o in objects if o["type"] == "trace"]
    assert [int(t["context"], 16) for t in traces] == list(range(4096, 4101)), objects
    assert all(stack_names(t)[:2] == ["report_trace", "main"] for t in traces), traces[0]
    assert ledger_of(objects)["fired"] == 5 and not os.path.exists(pins)
