"""Java without a flag: functions by name, file and line, inlined ones, whole stacks, compiled and interpreted; the shares that the
program says of itself, and the virtual machine's own account."""
from harness import *
from protobuf import decoded_pprof, one
import glob
import itertools
import re

# Threads at a known stack, and one that spends three times as long in one function as in the other.
PROGRAM = r'''
public class Known {
    static volatile long sink;
    static long spin(long rounds) {
        long x = 1;
        for (long i = 0; i < rounds; i++) x = x * 31 + (x >>> 7 ^ i);
        return x;
    }
    static long often(long n) { return spin(3 * n); }
    static long seldom(long n) { return spin(n); }
    static void third() { sink += often(2000) + seldom(2000); }
    static void second(int depth) { if (depth == 0) third(); else second(depth - 1); }
    static void first() { second(3); }
    public static void main(String[] arguments) {
        System.out.println("ready");
        for (;;) first();
    }
}
'''
NEVER_INLINED = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Known::*"]
CALLERS = ["Known.main", "Known.first"] + ["Known.second"] * 4 + ["Known.third"]


def compiled_class():
    if os.geteuid() != 0 or os.uname().machine != "x86_64":
        raise Skip("needs root; HotSpot's frames are known on x86-64")
    if not shutil.which("javac"):
        raise Skip("no JDK here (openjdk-17-jdk-headless)")
    with open(path("Known.java"), "w") as file:
        file.write(PROGRAM)
    subprocess.run(["javac", "-d", WORK, path("Known.java")], check=True, timeout=60)


def profiled(*flags, options=()):
    """Stacks with counts of the thread that runs main, root first; and what the JVM itself says of it."""
    p = subprocess.Popen(["java", *flags, "-cp", WORK, "Known"], stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "ready\n"
        time.sleep(0.5)
        r = good("profile", "-F", "199", "-d", "2", "-f", "folded", "-p", str(p.pid), *options)
        told = subprocess.run(["jstack", str(p.pid)], capture_output=True, text=True, timeout=60).stdout
    finally:
        p.kill()
        p.communicate()
    stacks = []
    for line in r.out.splitlines():
        stack, count = line.rsplit(" ", 1)
        stacks.append((stack.replace("_[i]", "").split(";"), int(count)))
    return [(stack, count) for stack, count in stacks if "JavaMain" in stack or any(f.startswith("Known.") for f in stack)], told


def own_account(told):
    """Of "main" by jstack, root first: its functions."""
    lines = told[told.index('"main"'):].splitlines()[2:]
    functions = [line.split("at ")[1].split("(")[0] for line in itertools.takewhile(lambda line: "\tat " in line, lines)]
    return functions[::-1]


@test
def java_has_whole_stacks_and_names_without_a_flag():
    compiled_class()
    for flags in (["-Xint"], NEVER_INLINED, ["-XX:TieredStopAtLevel=1", *NEVER_INLINED]):
        stacks, told = profiled(*flags)
        whole = named = often = seldom = 0
        total = sum(count for _, count in stacks)
        for stack, count in stacks:
            java = [f for f in stack if f.startswith("Known.")]
            whole += count * (any("clone" in f for f in stack[1:3]) and "JavaMain" in stack)
            named += count * (java[:7] == CALLERS[:len(java)] and len(java) > 0)
            often += count * ("Known.often" in java)
            seldom += count * ("Known.seldom" in java)
        assert total > 100, (flags, stacks)
        assert whole > 0.98 * total and named > 0.98 * total, (flags, whole, named, total, stacks)
        assert 2.3 < often / max(seldom, 1) < 4, (flags, often, seldom)
        shown = [[f for f in stack if f.startswith("Known.")] for stack, _ in stacks]
        assert own_account(told)[:6] == CALLERS[:6] and own_account(told) in shown, (flags, told, shown)


@test
def java_that_inlines_has_whole_stacks():
    compiled_class()
    stacks, _ = profiled()
    total = sum(count for _, count in stacks)
    named = sum(count for stack, count in stacks if any(f.startswith("Known.") for f in stack) and any("clone" in f for f in stack[1:3]))
    assert total > 100 and named > 0.98 * total, (named, total, stacks)


def virtual_machines():
    """Each JDK that is installed, the one in PATH first; a class file of the oldest runs in all."""
    found = {}
    for java in [shutil.which("java"), *sorted(glob.glob("/usr/lib/jvm/*/bin/java"))]:
        if os.path.exists(os.path.dirname(os.path.realpath(java)) + "/jstack"):
            found.setdefault(os.path.realpath(java), java)
    return [os.path.dirname(os.path.realpath(java)) for java in found]


# A chain of small functions, which compilers put into each other, and at its end one that runs; each call is at a line of its own.
CHAIN = r'''
public class Chain {
    static volatile long sink;
    static long spin(long rounds) {
        long x = 1;
        for (long i = 0; i < rounds; i++)
            x = x * 31 + (x >>> 7 ^ i);
        return x;
    }
    interface Step { long go(long n); }
    static class Inner implements Step {
        public long go(long n) {
            long before = n ^ 5;
            return before + spin(3000);
        }
    }
    static long a(Step step, long n) {
        return 1 + b(step, n);
    }
    static long b(Step step, long n) {


        return 2 + c(step, n);
    }
    static long c(Step step, long n) {
        return 3
            + step.go(n);
    }
    static void runs(Step step) {
        sink += a(step, sink);
    }
    public static void main(String[] arguments) {
        System.out.println("ready");
        Step step = new Inner();
        for (;;)
            runs(step);
    }
}
'''
SPIN = range(5, 9)  # its lines
CALLERS_OF_SPIN = [("Chain$Inner.go", 14), ("Chain.c", 27), ("Chain.b", 23), ("Chain.a", 18), ("Chain.runs", 30), ("Chain.main", 36)]


def chain_class():
    compiled_class()
    with open(path("Chain.java"), "w") as file:
        file.write(CHAIN)
    subprocess.run(["javac", "--release", "17", "-d", WORK, path("Chain.java")], check=True, timeout=60)


def jstack_of_chain(bin, pid):
    """Functions and lines of main's frames by jstack, leaf first."""
    told = subprocess.run([bin + "/jstack", str(pid)], capture_output=True, text=True, timeout=60).stdout
    lines = itertools.takewhile(lambda line: "\tat " in line, told[told.index('"main"'):].splitlines()[2:])
    frames = [re.fullmatch(r"\tat (\S+)\(Chain\.java:(\d+)\)", line).groups() for line in lines]
    return [(function, int(line)) for function, line in frames]


# Flags, and at least so many of the callers that are inlined. Where spin() is inlined, too, a sample's address is at no call:
# each needs debug info of its own.
CHAIN_RUNS = [
    (["-Xint"], 0),
    (["-XX:TieredStopAtLevel=1", "-XX:CompileCommand=dontinline,Chain::spin"], 3),
    (["-XX:-TieredCompilation", "-XX:CompileCommand=dontinline,Chain::spin"], 3),
    (["-XX:-TieredCompilation", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"], 4),
    (["-XX:+UseSerialGC", "-XX:CompileCommand=dontinline,Chain*::*"], 0),
]


@test
def java_frames_are_those_that_the_virtual_machine_tells():
    chain_class()
    for bin in virtual_machines():
        for flags, inlined in CHAIN_RUNS:
            p = subprocess.Popen([bin + "/java", "-XX:CompileCommand=quiet", *flags, "-cp", WORK, "Chain"], stdout=subprocess.PIPE, text=True)
            try:
                assert p.stdout.readline() == "ready\n"
                time.sleep(0.8)
                r = good("profile", "-F", "199", "-d", "1", "-f", "json", "-p", str(p.pid))
                told = jstack_of_chain(bin, p.pid)
            finally:
                p.kill()
                p.communicate()
            # It stops where the compiler lets it, seldom in spin(); its leaf may be at another line than the call.
            assert told[1:] == CALLERS_OF_SPIN[len(CALLERS_OF_SPIN) + 1 - len(told):] and (flags != ["-Xint"] or len(told) == 7), (bin, flags, told)
            right = total = 0
            for line in r.out.splitlines():
                sample = json.loads(line)
                java = [f for f in sample.get("user", []) if (f["symbol"] or "").startswith("Chain")] if sample["type"] == "sample" else []
                if not java:
                    continue
                total += 1
                if java[0]["symbol"] != "Chain.spin" or sample.get("user_end") != "root":  # a stack that is cut says so
                    continue
                assert [(f["symbol"], f["line"]) for f in java[1:]] == CALLERS_OF_SPIN, (bin, flags, sample)
                assert all(f["file"] == "Chain.java" for f in java) and java[0]["line"] in SPIN, (bin, flags, java)
                assert sum(f.get("inlined", False) for f in java) >= inlined, (bin, flags, java)
                assert inlined or not any(f.get("inlined") for f in java), (bin, flags, java)
                right += 1
            assert total > 30 and right > 0.95 * total, (bin, flags, right, total, r.out[-3000:])


@test
def java_inlined_in_a_recording_and_in_pprof():
    chain_class()
    recording = path("chain.rec")
    p = subprocess.Popen(["java", "-XX:-TieredCompilation", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Chain::spin", "-cp", WORK,
                          "Chain"], stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "ready\n"
        time.sleep(0.8)
        good("profile", "-F", "199", "-q", "--record", recording, "-d", "1", "-p", str(p.pid))
    finally:
        p.kill()
        p.communicate()
    stacks = [line for line in good("report", recording, "-q", "-f", "folded").out.splitlines() if "Chain.spin" in line]
    assert stacks and all("Chain.a_[i];Chain.b_[i];Chain.c_[i];Chain$Inner.go_[i];Chain.spin" in line for line in stacks), stacks
    if lacks("gzip") or not shutil.which("protoc"):
        return
    good("report", recording, "-q", "-f", "pprof", "-o", path("chain.pb.gz"))
    p = decoded_pprof("chain.pb.gz")
    functions = {one(f, "id"): (p["string_table"][one(f, "name")], p["string_table"][one(f, "filename")]) for f in p["function"]}
    lines = {(functions[one(line, "function_id")], one(line, "line")) for location in p["location"] for line in location.get("line", [])}
    for function, line in CALLERS_OF_SPIN[:4]:
        assert ((function, "Chain.java"), line) in lines, (function, lines)
    assert any(one(m, "has_inline_frames") for m in p["mapping"]), p["mapping"]


VIRTUAL = r'''
public class Virtual {
    static volatile long sink;
    static long spin(long rounds) {
        long x = 1;
        for (long i = 0; i < rounds; i++) x = x * 31 + (x >>> 7 ^ i);
        return x;
    }
    static void deep(int n, boolean sleeps) throws Exception {
        if (n > 0) {
            deep(n - 1, sleeps);
            sink++;
            return;
        }
        for (;;) {
            if (sleeps) Thread.sleep(1); // its frames go to the heap, and the upper ones come back
            for (int i = 0; i < 50; i++) sink += spin(100000);
        }
    }
    public static void main(String[] arguments) throws Exception {
        Thread thread = Thread.ofVirtual().start(() -> {
            try {
                deep(5, arguments[0].equals("sleeps"));
            } catch (Exception e) {
            }
        });
        System.out.println("ready");
        thread.join();
    }
}
'''


@test
def java_virtual_threads_are_whole_or_say_what_is_missing():
    compiled_class()
    java = next((bin for bin in virtual_machines() if "Virtual" in subprocess.run(
        [bin + "/javap", "java.lang.VirtualThread"], capture_output=True, text=True).stdout), None)
    if not java:
        raise Skip("needs a JDK with virtual threads (21)")
    with open(path("Virtual.java"), "w") as file:
        file.write(VIRTUAL)
    subprocess.run([java + "/javac", "-d", WORK, path("Virtual.java")], check=True, timeout=60)
    for how in ("runs", "sleeps"):
        p = subprocess.Popen([java + "/java", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Virtual::*", "-cp", WORK, "Virtual", how],
                             stdout=subprocess.PIPE, text=True)
        try:
            assert p.stdout.readline() == "ready\n"
            time.sleep(1)
            r = good("profile", "-F", "199", "-d", "1", "-q", "-f", "folded", "-p", str(p.pid))
        finally:
            p.kill()
            p.communicate()
        stacks = [line for line in r.out.splitlines() if "Virtual.spin" in line]
        count = sum(int(line.rsplit(" ", 1)[1]) for line in stacks)
        whole = [line for line in stacks if "clone" in line and "ForkJoinWorkerThread.run" in line]
        assert count > 20, (how, count, r.out)
        assert sum(int(line.rsplit(" ", 1)[1]) for line in whole) > 0.95 * count, (how, count, stacks)
        for line in whole:
            depth = line.count(";Virtual.deep")
            if how == "runs":
                assert depth == 6 and "Continuation.enter" in line and "heap" not in line, line
            else:
                assert (depth == 6) != ("Continuation.run;[callers in Java's heap];Virtual.deep" in line), line


@test
def java_from_its_start_and_in_a_recording():
    compiled_class()
    recording = path("java.rec")
    good("profile", "-F", "199", "-q", "--record", recording, "-d", "3", "--", "java", "-cp", WORK, "Known")
    r = good("report", recording, "-q", "-f", "folded")
    lines = [line for line in r.out.splitlines() if "Known." in line]
    count = sum(int(line.rsplit(" ", 1)[1]) for line in lines)
    whole = sum(int(line.rsplit(" ", 1)[1]) for line in lines if "JavaMain" in line)
    assert count > 100 and whole > 0.97 * count, r.out[-2000:]


@test
def doctor_says_what_will_be_seen_of_java():
    compiled_class()
    p = subprocess.Popen(["java", "-cp", WORK, "Known"], stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "ready\n"
        r = good("doctor", "-p", str(p.pid))
    finally:
        p.kill()
        p.communicate()
    said = " ".join(r.out.split())
    assert "its functions are shown, compiled and interpreted ones, with files and lines, and those that were inlined" in said, r.out
    assert "-XX:+DebugNonSafepoints" in said, r.out
    assert "PreserveFramePointer" not in r.out, r.out
