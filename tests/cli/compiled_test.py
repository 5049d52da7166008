"""Code made at run time: its names by time, of a jitdump with lines, of a perf map as it grows, of a JVM that is asked."""
from harness import *

# Two functions, one after the other at the same address, and each says so when it begins. "dump": in a jitdump, which it maps as
# runtimes do; "map": in a perf map.
PROGRAM = r'''
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}
#if defined(__x86_64__)
/* push rbp; mov rbp,rsp; 1: dec rdi; jne 1b; pop rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};
#else
/* 1: subs x0,x0,#1; b.ne 1b; ret */
static const uint32_t code[] = {0xf1000400, 0x54ffffe1, 0xd65f03c0};
#endif
static char text[400];
static size_t used;
static void put(const void *what, size_t size) { memcpy(text + used, what, size); used += size; }
static void put4(uint32_t value) { put(&value, 4); }
static void put8(uint64_t value) { put(&value, 8); }
static void record(uint32_t type, const char *name, uint64_t address, uint64_t line) {
    used = 0;
    put4(type), put4(0), put8(now());
    if (type == 2) {
        put8(address), put8(1), put8(address), put4(line), put4(0), put("/src/of/it.x", 13);
    } else {
        put4(getpid()), put4(getpid()), put8(address), put8(address), put8(sizeof code), put8(line);
        put(name, strlen(name) + 1), put(code, sizeof code);
    }
    memcpy(text + 4, &(uint32_t){used}, 4);
}
int main(int argc, char **argv) {
    const int dump = strcmp(argv[1], "dump") == 0;
    char path[64];
    sprintf(path, dump ? "%s/jit-%d.dump" : "/tmp/perf-%2$d.map", argv[2], getpid());
    const int file = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
    unsigned char *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(p, code, sizeof code);
    __builtin___clear_cache((char *)p, (char *)p + sizeof code);
    if (dump) {
        put4(0x4a695444), put4(1), put4(40), put4(0), put4(0), put4(getpid()), put8(now()), put8(0);
        if (write(file, text, used) != (ssize_t)used) return 1;
        if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED) return 1;
    }
    for (int i = 0; i < 2; ++i) {
        const char *name = i == 0 ? "first" : "second";
        if (dump) {
            record(2, name, (uintptr_t)p, 11 * (i + 1));
            if (write(file, text, used) < 0) return 1;
            record(0, name, (uintptr_t)p, i);
        } else {
            used = sprintf(text, "%lx %zx %s\n", (unsigned long)p, sizeof code, name);
        }
        if (write(file, text, used) < 0) return 1;
        printf("%s %llu\n", name, (unsigned long long)now());
        fflush(stdout);
        for (const uint64_t end = now() + 700000000; now() < end;) ((void (*)(unsigned long))p)(1000000);
    }
    printf("end %llu\n", (unsigned long long)now());
    fflush(stdout);
    unlink(path);
    return 0;
}
'''


def profiled(how, *options):
    """Runs it. When it said that its functions began, in nanoseconds of CLOCK_MONOTONIC."""
    if os.geteuid() != 0 or os.uname().machine not in ("x86_64", "aarch64"):
        raise Skip("needs root; the program is written for x86-64 and arm64")
    program = path("two-functions")
    if not os.path.exists(program):
        subprocess.run(["cc", "-O1", "-w", "-x", "c", "-", "-o", program], input=PROGRAM.encode(), check=True)
    r = good("profile", "-F", "499", *options, "--", program, how, WORK)
    assert "warning" not in r.err, r.err # the page of a jitdump that is mapped isn't code without tables
    said = [line.split() for line in r.out.splitlines() if line.startswith(("first ", "second ", "end "))]
    return {name: int(t) for name, t in said}


def in_code(lines):
    for line in lines:
        for frame in line.get("user", []):
            if frame.get("symbol") in ("first", "second"):
                yield line, frame


@test
def compiled_code_has_its_names_by_time():
    for how in ("dump", "map"):
        out = path(f"{how}.json")
        said = profiled(how, "-f", "json", "-o", out)
        times = {"first": [], "second": []}
        for sample, frame in in_code(rows(f"{how}.json")):
            times[frame["symbol"]].append(sample["t_ns"])
            if how == "dump":
                assert (frame["file"], frame["line"]) == ("/src/of/it.x", 11 if frame["symbol"] == "first" else 22), frame
        assert all(len(of_it) > 40 for of_it in times.values()), (how, {name: len(of_it) for name, of_it in times.items()})
        # One name's samples end where the other's begin. A jitdump has times; a map is read again and again.
        slack = 20_000_000 if how == "dump" else 150_000_000
        assert max(times["first"]) - min(times["second"]) < (0 if how == "dump" else slack), (how, max(times["first"]), min(times["second"]))
        lasted = min(times["second"]) - min(times["first"])
        assert abs(lasted - (said["second"] - said["first"])) < slack, (how, lasted, said)


@test
def a_capture_has_the_names_of_compiled_code_by_time():
    capture = path("compiled.rec")
    profiled("dump", "--record", capture)
    shown = [json.loads(line) for line in good("report", capture, "-q", "-f", "json").out.splitlines()]
    seen = {(frame["symbol"], frame["file"], frame["line"]) for _, frame in in_code(shown)}
    assert seen == {("first", "/src/of/it.x", 11), ("second", "/src/of/it.x", 22)}, seen


# What a Java virtual machine does when it is asked for its map: the attach protocol, as the JDK's jcmd speaks it.
VIRTUAL_MACHINE = r'''
import ctypes, mmap, os, signal, socket, struct, sys, threading

folder, refuse = sys.argv[1], sys.argv[2] == "refuse"
library = open(os.path.join(folder, "libjvm.so"), "w+b")
library.write(b"\x7fELF" + b"\0" * 4092)
library.flush()
mapped = mmap.mmap(library.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
pid = os.getpid()
code = bytes.fromhex("554889e548ffcf75fb5dc3")
memory = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(code)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))


def listen(*_):
    assert os.path.exists(f"/tmp/.attach_pid{pid}")
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"/tmp/.java_pid{pid}")
    server.listen()

    def serve():
        while True:
            client = server.accept()[0]
            request = client.recv(100)
            print("asked", request, flush=True)
            if refuse:
                client.sendall(b"1\njava.lang.IllegalArgumentException: Unknown diagnostic command\n")
            else:
                open(f"/tmp/perf-{pid}.map", "w").write(f"{address:x} {len(code):x} int Hot.fib(int)\n")
                client.sendall(b"0\n")
            client.close()

    threading.Thread(target=serve, daemon=True).start()


signal.signal(signal.SIGQUIT, listen)
run = ctypes.CFUNCTYPE(None, ctypes.c_ulong)(address)
print("ready", flush=True)
for _ in range(150):
    run(30000000)
for left in (f"/tmp/.java_pid{pid}", f"/tmp/perf-{pid}.map"):
    if os.path.exists(left):
        os.unlink(left)
'''


@test
def a_jvm_is_asked_for_its_map_on_request():
    if os.geteuid() != 0 or os.uname().machine != "x86_64":
        raise Skip("needs root; the program is written for x86-64")
    script = path("virtual-machine.py")
    with open(script, "w") as file:
        file.write(VIRTUAL_MACHINE)
    request = "asked b'1\\x00jcmd\\x00Compiler.perfmap\\x00\\x00\\x00'"
    for how, options, warned in (("answer", ["--jvm-perfmap"], ""), ("refuse", ["--jvm-perfmap"], "Unknown diagnostic command"), ("answer", [], "")):
        p = subprocess.Popen(["/usr/bin/python3", script, WORK, how], stdout=subprocess.PIPE, text=True)
        try:
            assert p.stdout.readline() == "ready\n"
            r = good("profile", "-F", "199", "-d", "1.5", "-f", "folded", "-p", str(p.pid), *options)
        finally:
            p.kill()
        said = p.communicate()[0].splitlines()
        for left in (f"/tmp/.java_pid{p.pid}", f"/tmp/perf-{p.pid}.map"):
            if os.path.exists(left):
                os.unlink(left)
        assert said == [request] * len(said) and bool(said) == bool(options), (how, options, said)
        assert ("int Hot.fib(int)" in r.out) == (how == "answer" and bool(options)), (how, options, r.out[-500:])
        assert warned in r.err and not os.path.exists(f"/tmp/.attach_pid{p.pid}"), (how, r.err)
