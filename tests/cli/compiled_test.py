"""Code made at run time: its names by time, of a jitdump with lines, of a perf map as it grows, of a JVM that is asked."""
from harness import *

# Two functions, one after the other at the same address, and each says so when it begins. "dump": in a jitdump, which it maps as
# runtimes do; "map": in a perf map. Of "told" the frame pointer is a number that counts, and the jitdump has .eh_frame; of "untold" it
# has none.
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
static int pointed; // its functions keep a frame pointer
static void put4(uint32_t value) { put(&value, 4); }
static void put8(uint64_t value) { put(&value, 8); }
#if defined(__x86_64__)
/* push rbp; sub rsp,0x148; mov rbp,rdi; 1: dec rbp; jne 1b; add rsp,0x148; pop rbp; ret */
static const unsigned char no_pointer[] = {0x55, 0x48, 0x81, 0xec, 0x48, 1, 0, 0, 0x48, 0x89, 0xfd, 0x48, 0xff, 0xcd,
    0x75, 0xfb, 0x48, 0x81, 0xc4, 0x48, 1, 0, 0, 0x5d, 0xc3};
/* .eh_frame of it: what its CFA is after each of these, where rbp is saved; then .eh_frame_hdr */
static const unsigned char unwinding[64 + 20] = {20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
    32, 0, 0, 0, 28, 0, 0, 0, 0xc0, 0xff, 0xff, 0xff, sizeof no_pointer, 0, 0, 0, 0,
    0x41, 0x0e, 16, 0x86, 2, 0x47, 0x0e, 0xd8, 2, 0x4f, 0x0e, 16, 0x41, 0x0e, 8, 0xc6};
#else
static const uint32_t no_pointer[1];
static const unsigned char unwinding[1];
#endif
static void record(uint32_t type, const char *name, uint64_t address, uint64_t line) {
    used = 0;
    put4(type), put4(0), put8(now());
    if (type == 2) {
        put8(address), put8(1), put8(address), put4(line), put4(0), put("/src/of/it.x", 13);
    } else if (type == 4) {
        put8(sizeof unwinding), put8(20), put8(sizeof unwinding), put(unwinding, sizeof unwinding);
    } else {
        const size_t size = pointed ? sizeof code : sizeof no_pointer;
        put4(getpid()), put4(getpid()), put8(address), put8(address), put8(size), put8(line);
        put(name, strlen(name) + 1), put(pointed ? (void *)code : (void *)no_pointer, size);
    }
    memcpy(text + 4, &(uint32_t){used}, 4);
}
static volatile int calls;
__attribute__((noinline)) static void calls_first(void *p) { ((void (*)(unsigned long))p)(1000000); calls += 1; }
__attribute__((noinline)) static void calls_second(void *p) { ((void (*)(unsigned long))p)(1000000); calls += 2; }
int main(int argc, char **argv) {
    const int dump = strcmp(argv[1], "map") != 0, told = strcmp(argv[1], "told") == 0;
    pointed = !dump || strcmp(argv[1], "dump") == 0;
    char path[64];
    sprintf(path, dump ? "%s/jit-%d.dump" : "/tmp/perf-%2$d.map", argv[2], getpid());
    const int file = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
    unsigned char *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(p, pointed ? (void *)code : (void *)no_pointer, pointed ? sizeof code : sizeof no_pointer);
    __builtin___clear_cache((char *)p, (char *)p + 64);
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
            if (told) {
                record(4, name, 0, 0);
                if (write(file, text, used) < 0) return 1;
            }
            record(0, name, (uintptr_t)p, i);
        } else {
            used = sprintf(text, "%lx %zx %s\n", (unsigned long)p, sizeof code, name);
        }
        if (write(file, text, used) < 0) return 1;
        for (const uint64_t end = now() + 1000000000; now() < end;) i == 0 ? calls_first(p) : calls_second(p);
    }
    unlink(path);
    return 0;
}
'''


# The first stacks do, until rawbpf has looked at the process: on a busy machine they are one in twenty and more, and that is a warning.
EARLY = "stacks in code made at run time end early"


def profiled(how, *options, warning=None, may_warn=None):
    """Runs it; what it is warned of, and what it may be warned of."""
    if os.geteuid() != 0 or os.uname().machine not in ("x86_64", "aarch64"):
        raise Skip("needs root; the program is written for x86-64 and arm64")
    program = path("two-functions")
    if not os.path.exists(program):
        subprocess.run(["cc", "-O1", "-w", "-x", "c", "-", "-o", program], input=PROGRAM.encode(), check=True)
    r = good("profile", "-F", "499", *options, "--", program, how, WORK)
    warned = [line for line in r.err.splitlines() if "warning" in line and not (may_warn and may_warn in line)]
    assert warning in r.err if warning else not warned, r.err # the page of a jitdump that is mapped isn't code without tables


def in_code(lines):
    for line in lines:
        for frame in line.get("user", []):
            if frame.get("symbol") in ("first", "second"):
                yield line, frame


@test
def compiled_code_has_its_names_by_time():
    for how in ("dump", "map"):
        profiled(how, "-f", "json", "-o", path(f"{how}.json"), may_warn=EARLY)
        shown = []  # by time: which function it was, as its caller says, and the name
        for sample, frame in sorted(in_code(rows(f"{how}.json")), key=lambda its: its[0]["t_ns"]):
            callers = [name for name in stack_names(sample) if name.startswith("calls_")]
            shown += [(caller.removeprefix("calls_"), frame["symbol"]) for caller in callers]
            if how == "dump":
                assert (frame["file"], frame["line"]) == ("/src/of/it.x", 11 if frame["symbol"] == "first" else 22), frame
        right = {name: shown.count((name, name)) for name in ("first", "second")}
        assert min(right.values()) > 40, (how, right, len(shown))
        # A jitdump has times. A map has none: what is new in it is as old as the last look, so that the end of what was there before has the new name.
        wrong = [at for at, (function, name) in enumerate(shown) if function != name]
        assert all(shown[at] == ("first", "second") for at in wrong) and wrong == list(range(right["first"], right["first"] + len(wrong))), (how, shown)
        assert how == "map" or not wrong, (how, len(wrong), right)
        assert len(wrong) < right["first"], (how, len(wrong), right)


@test
def compiled_code_is_left_as_its_maker_tells():
    """Its frames have no frame pointer: where the maker doesn't say so, stacks end there."""
    if os.uname().machine != "x86_64":
        raise Skip("the function without a frame pointer is written for x86-64")
    for how in ("told", "untold"):
        profiled(how, "-f", "json", "-o", path(f"{how}.json"), **{"warning" if how == "untold" else "may_warn": EARLY})
        stacks = [[frame.get("symbol") for frame in line["user"]] for line, _ in in_code(rows(f"{how}.json"))]
        whole = [names[1:3] in (["calls_first", "main"], ["calls_second", "main"]) and names[-1] == "_start" for names in stacks]
        assert len(stacks) > 100, (how, len(stacks))
        if how == "untold":
            assert sum(whole) < 0.1 * len(whole), (sum(whole), len(whole))
        else: # the first show that frame pointers lead nowhere
            since = whole[whole.index(True):]
            assert len(since) > 0.5 * len(whole) and sum(since) > 0.95 * len(since), (sum(whole), len(since), len(whole))
    profiled("told", "-f", "folded", "-o", path("told.folded"), may_warn=EARLY) # equal stacks are counted in the kernel
    with open(path("told.folded"), encoding="utf-8") as file:
        counts = [(stack.split(";"), int(count)) for stack, count in (line.rsplit(" ", 1) for line in file)]
    whole = sum(count for names, count in counts if "second" in names and "main" in names)
    assert whole > 0.9 * sum(count for names, count in counts if "second" in names) > 40, counts


# As Ruby's YJIT has it: the made code saves some registers where C enters it, and then calls C; rbp is a register like any other. Of
# "turns" the frames have four words here and six there.
SIZED = r'''
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
static volatile unsigned long sink;
static void (*enter[2])(void (*)(void));
__attribute__((noinline)) static void spin(void) { for (int i = 0; i < 200000; ++i) sink += i; }
__attribute__((noinline)) static void inner(void) { enter[1](spin); sink += 1; }
__attribute__((noinline)) static void outer(void) { enter[0](inner); sink += 1; }
int main(int argc, char **argv) {
    /* push rbp; push r12; push r13; mov ebp,0x1235; call rdi; pop r13; pop r12; pop rbp; ret */
    static const unsigned char four[] = {0x55, 0x41, 0x54, 0x41, 0x55, 0xbd, 0x35, 0x12, 0, 0, 0xff, 0xd7, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0xc3};
    /* the same with two words more */
    static const unsigned char six[] = {0x55, 0x41, 0x54, 0x41, 0x55, 0xbd, 0x35, 0x12, 0, 0, 0x48, 0x83, 0xec, 16, 0xff, 0xd7, 0x48, 0x83, 0xc4, 16,
        0x41, 0x5d, 0x41, 0x5c, 0x5d, 0xc3};
    unsigned char *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(p, four, sizeof four);
    memcpy(p + 64, six, sizeof six);
    enter[0] = enter[1] = (void *)p;
    const int turns = strcmp(argv[1], "turns") == 0;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    for (const long end = t.tv_sec * 1000 + t.tv_nsec / 1000000 + 2500; t.tv_sec * 1000 + t.tv_nsec / 1000000 < end; clock_gettime(CLOCK_MONOTONIC, &t)) {
        if (turns) enter[1] = (void *)(enter[1] == (void *)p ? p + 64 : p);
        outer();
    }
    return 0;
}
'''


@test
def compiled_code_whose_frames_have_one_size():
    """Nobody tells how its frames are left: 32 stacks tell their size, if it is the same in two of three."""
    if os.geteuid() != 0 or os.uname().machine != "x86_64":
        raise Skip("needs root; the program is written for x86-64")
    program = path("sized")
    subprocess.run(["cc", "-O2", "-fomit-frame-pointer", "-w", "-x", "c", "-", "-o", program], input=SIZED.encode(), check=True)
    for how in ("same", "turns"):
        good("profile", "-F", "499", "-f", "json", "-o", path(f"{how}.json"), "--", program, how)
        stacks = [[frame.get("symbol") for frame in line["user"]] for line in rows(f"{how}.json") if line["type"] == "sample"]
        inside = [names for names in stacks if names[:1] == ["spin"]]
        assert len(inside) > 150, (how, len(inside), len(stacks))
        whole = [names[2:3] + names[4:5] + names[5:6] + names[-1:] == ["inner", "outer", "main", "_start"] for names in inside]
        if how == "turns":
            assert sum(whole) < 0.2 * len(whole), (sum(whole), len(whole))
        else:
            since = whole[whole.index(True):]
            assert len(since) > 0.5 * len(whole) and sum(since) > 0.98 * len(since), (sum(whole), len(since), len(whole))
    good("profile", "-F", "499", "-f", "folded", "-o", path("same.folded"), "--", program, "same") # equal stacks are counted in the kernel
    with open(path("same.folded"), encoding="utf-8") as file:
        counts = [(stack.split(";"), int(count)) for stack, count in (line.rsplit(" ", 1) for line in file)]
    whole = sum(count for names, count in counts if {"main", "outer", "inner", "spin"} <= set(names))
    # Of a short run: the first stacks, which show the size, end early.
    assert whole > 0.5 * sum(count for names, count in counts if "spin" in names) > 50, counts


@test
def a_capture_has_the_names_of_compiled_code_by_time():
    capture = path("compiled.rec")
    profiled("dump", "--record", capture)
    shown = [json.loads(line) for line in good("report", capture, "-q", "-f", "json").out.splitlines()]
    seen = {(frame["symbol"], frame["file"], frame["line"]) for _, frame in in_code(shown)}
    assert seen == {("first", "/src/of/it.x", 11), ("second", "/src/of/it.x", 22)}, seen


# What a Java virtual machine does when it is asked for its map: the attach protocol, as the JDK's jcmd speaks it.
VIRTUAL_MACHINE = r'''
import ctypes, mmap, os, signal, socket, sys, threading, time

folder, how = sys.argv[1:]
library = open(os.path.join(folder, "libjvm.so"), "w+b")
library.write(b"\x7fELF" + b"\0" * 4092)
library.flush()
mapped = mmap.mmap(library.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
pid = os.getpid()
code = bytes.fromhex("554889e548ffcf75fb5dc3")
memory = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(code)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))


name = f"/tmp/.java_pid{pid}"
someone_else = socket.socket(socket.AF_UNIX)
if how == "refuse":  # left by one that had the same number
    someone_else.bind(name)
    someone_else.close()
elif how == "link":
    someone_else.bind(name + ".else")
    someone_else.listen()
    someone_else.setblocking(False)
    os.symlink(name + ".else", name)


def listen(*_):
    assert os.path.exists(f"/tmp/.attach_pid{pid}")
    if how == "short":
        os._exit(0)
    if how == "link":
        print("told to listen", flush=True)
        return
    if how == "refuse":
        os.unlink(name)
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    time.sleep(0.1)
    server.listen()

    def serve():
        while True:
            client = server.accept()[0]
            request = client.recv(100)
            print("asked", request, flush=True)
            if how == "refuse":
                client.sendall(b"1\njava.lang.IllegalArgumentException: Unknown diagnostic command\n")
            else:
                open(f"/tmp/perf-{pid}.map", "w").write(f"{address:x} {len(code):x} int Hot.fib(int)\n")
                client.sendall(b"0\n")
            client.close()

    threading.Thread(target=serve, daemon=True).start()


signal.signal(signal.SIGQUIT, listen)
run = ctypes.CFUNCTYPE(None, ctypes.c_ulong)(address)
print("ready", flush=True)
while True:
    run(30000000)
    if how == "link":
        try:
            someone_else.accept()
            print("somebody else is asked", flush=True)
        except BlockingIOError:
            pass
'''


@test
def a_jvm_is_asked_for_its_map_on_request():
    if os.geteuid() != 0 or os.uname().machine != "x86_64":
        raise Skip("needs root; the program is written for x86-64")
    script = path("virtual-machine.py")
    with open(script, "w") as file:
        file.write(VIRTUAL_MACHINE)
    request = "asked b'1\\x00jcmd\\x00Compiler.perfmap\\x00\\x00\\x00'"
    for how, options, warned in (("answer", ["--jvm-perfmap"], ""), ("refuse", ["--jvm-perfmap"], "Unknown diagnostic command"),
                                 ("link", ["--jvm-perfmap"], "doesn't listen"), ("short", ["--jvm-perfmap"], "ended before it listened"),
                                 ("answer", [], "")):
        p = subprocess.Popen(["/usr/bin/python3", script, WORK, how], stdout=subprocess.PIPE, text=True)
        try:
            assert p.stdout.readline() == "ready\n"
            r = good("profile", "-F", "199", "-d", "1.5", "-f", "folded", "-p", str(p.pid), *options)
        finally:
            p.kill()
        said = p.communicate()[0].splitlines()
        for left in (f"/tmp/.java_pid{p.pid}", f"/tmp/.java_pid{p.pid}.else", f"/tmp/perf-{p.pid}.map"):
            if os.path.lexists(left):
                os.unlink(left)
        if how == "link":  # it is asked, and waited for, once in such a short time
            assert said == ["told to listen"], said
        else:
            assert said == [request] * len(said) and bool(said) == (how in ("answer", "refuse") and bool(options)), (how, options, said)
        assert ("int Hot.fib(int)" in r.out) == (how == "answer" and bool(options)), (how, options, r.out[-500:])
        assert warned in r.err and not os.path.exists(f"/tmp/.attach_pid{p.pid}"), (how, r.err)
