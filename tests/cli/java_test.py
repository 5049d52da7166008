"""Java without a flag: functions by name, file and line, inlined ones, whole stacks, compiled and interpreted; the shares that the
program says of itself, and the virtual machine's own account."""
from harness import *
from protobuf import decoded_pprof, one
import collections
import functools
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
    static void third() {
        long n = 1500 + (sink & 1023); // no two rounds are alike, so that the clock's ticks don't fall into step with them
        sink += often(n) + seldom(n);
    }
    static void second(int depth) { if (depth == 0) third(); else second(depth - 1); }
    static void first() { second(3); }
    public static void main(String[] arguments) {
        System.out.println("ready");
        for (;;) first();
    }
}
'''
NEVER_INLINED = ["-XX:CompileCommand=dontinline,Known::*"]
CALLERS = ("Known.main", "Known.first", *["Known.second"] * 4, "Known.third")


JDKS = "RAWBPF_JDKS"  # folders of others, separated by colons


@functools.lru_cache(None)
def virtual_machines():
    """The bin folder of each JDK at hand: PATH's, those below /usr/lib/jvm, and those that RAWBPF_JDKS names."""
    javas = [shutil.which("java"), *sorted(glob.glob("/usr/lib/jvm/*/bin/java")),
             *(home + "/bin/java" for home in os.environ.get(JDKS, "").split(":") if home)]
    found = []
    for java in filter(None, javas):
        bin = os.path.dirname(os.path.realpath(java))
        if bin.endswith("/jre/bin") and os.path.exists(bin[:-len("/jre/bin")] + "/bin/javac"):  # JDK 8
            bin = bin[:-len("/jre/bin")] + "/bin"
        if os.path.exists(bin + "/jstack") and os.path.exists(bin + "/javac") and bin not in found:
            found.append(bin)
    for home in os.environ.get(JDKS, "").split(":"):
        assert not home or os.path.exists(home + "/bin/javac"), f"{JDKS}: {home} is no JDK"
    return found


@functools.lru_cache(None)
def version_of(bin):
    """"17.0.15", say; 8's begins with 1."""
    told = subprocess.run([bin + "/java", "-version"], capture_output=True, text=True, timeout=60).stderr
    return re.search(r'"(?:1\.)?(\d+)', told).group(1)


def compiled(bin, name, source):
    """The folder of a program's classes, made by this JDK; the same is made once."""
    folder = path(f"java-{virtual_machines().index(bin)}")
    if not os.path.exists(f"{folder}/{name}.class"):
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/{name}.java", "w") as file:
            file.write(source)
        subprocess.run([bin + "/javac", "-d", folder, f"{folder}/{name}.java"], check=True, timeout=60)
    return folder


def needs_java():
    if os.geteuid() != 0 or os.uname().machine != "x86_64":
        raise Skip("needs root; HotSpot's frames are known on x86-64")
    if not virtual_machines():
        raise Skip(f"no JDK here (openjdk-17-jdk-headless), and {JDKS} names none")
    return virtual_machines()


class Program:
    """One that has said that it is ready; it ends with the block."""

    def __init__(self, bin, name, source, *flags, arguments=()):
        self.command = [bin + "/java", "-XX:CompileCommand=quiet", *flags, "-cp", compiled(bin, name, source), name, *arguments]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        self.pid = str(self.process.pid)
        line = self.process.stdout.readline()
        assert line == "ready\n", (self.command, line)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        if os.path.exists(f"/tmp/.java_pid{self.pid}"):  # left by one that is killed after jstack asked it
            os.unlink(f"/tmp/.java_pid{self.pid}")


def main_stacks(out):
    """Of JSON: the stacks of the thread that runs Known's main, root first, and whether each goes down to where the C library began it. Names
    of C functions aren't asked for: a distribution may have stripped them."""
    samples = [sample for sample in map(json.loads, out.splitlines()) if sample["type"] == "sample" and sample.get("user")]
    threads = collections.Counter(sample["tid"] for sample in samples if any((f["symbol"] or "").startswith("Known.") for f in sample["user"]))
    assert threads, out[-3000:]
    main = threads.most_common(1)[0][0]
    return [([f["symbol"] or "" for f in reversed(sample["user"])],
             sample.get("user_end") == "root" and "/libc.so" in sample["user"][-1]["module"] and any("libjvm.so" in f["module"] for f in sample["user"]))
            for sample in samples if sample["tid"] == main]


def profiled(bin, *flags):
    """main_stacks(), and what the JVM itself says of them."""
    with Program(bin, "Known", PROGRAM, *flags) as p:
        let_run(p.pid, 0.8)
        # So many that chance alone seldom makes a ratio of 3 less than 2.3 or more than 4.
        r = good("profile", "-F", "997", "-d", "2", "-f", "json", "-p", p.pid)
        told = subprocess.run([bin + "/jstack", p.pid], capture_output=True, text=True, timeout=60).stdout
    return main_stacks(r.out), told


def own_account(told):
    """Of "main" by jstack: its functions, root first."""
    lines = told[told.index('"main"'):].splitlines()[2:]
    functions = [line.split("at ")[1].split("(")[0] for line in itertools.takewhile(lambda line: "\tat " in line, lines)]
    return tuple(functions[::-1])


@test
def java_has_whole_stacks_and_names_without_a_flag():
    for bin, flags in itertools.product(needs_java(), (["-Xint"], NEVER_INLINED, ["-XX:TieredStopAtLevel=1", *NEVER_INLINED])):
        stacks, told = profiled(bin, *flags)
        whole = named = often = seldom = 0
        total = len(stacks)
        for stack, is_whole in stacks:
            java = [f for f in stack if f.startswith("Known.")]
            whole += is_whole
            named += tuple(java[:7]) == CALLERS[:len(java)] and len(java) > 0
            often += "Known.often" in java
            seldom += "Known.seldom" in java
        assert total > 100, (bin, flags, stacks)
        assert whole > 0.98 * total and named > 0.98 * total, (bin, flags, whole, named, total, stacks)
        n = often + seldom
        assert n > 300 and abs(often / n - 0.75) < 5 * (0.75 * 0.25 / n) ** 0.5 + 0.02, (bin, flags, often, seldom)
        # jstack stops the program where its code asks whether it should stop: often at a place that takes no time, as between two calls.
        account = own_account(told)
        shown = {tuple(f for f in stack if f.startswith("Known.")) for stack, _ in stacks}
        assert account[:1] == CALLERS[:1] and any(stack[:len(account)] == account for stack in shown), (bin, flags, told, shown)


@test
def java_that_inlines_has_whole_stacks():
    for bin in needs_java():
        stacks, _ = profiled(bin)
        total = len(stacks)
        named = sum(is_whole and any(f.startswith("Known.") for f in stack) for stack, is_whole in stacks)
        assert total > 100 and named > 0.98 * total, (bin, named, total, stacks)


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
LOOP = range(6, 8)
CALLERS_OF_SPIN = [("Chain$Inner.go", 14), ("Chain.c", 27), ("Chain.b", 23), ("Chain.a", 18), ("Chain.runs", 30), ("Chain.main", 36)]


def jstack_of_chain(bin, pid):
    """Functions and lines of main's frames by jstack, leaf first."""
    told = subprocess.run([bin + "/jstack", pid], capture_output=True, text=True, timeout=60).stdout
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
    for bin in needs_java():
        for flags, inlined in CHAIN_RUNS:
            with Program(bin, "Chain", CHAIN, *flags) as p:
                let_run(p.pid, 1.2)
                r = good("profile", "-F", "997", "-d", "1", "-f", "json", "-p", p.pid)
                for _ in range(5):  # an interpreted program stops nearly always in the loop
                    told = jstack_of_chain(bin, p.pid)
                    if len(told) == 7 or flags != ["-Xint"]:
                        break
            # Compiled code stops where the compiler lets it, seldom in spin(); its leaf may be at another line than the call.
            assert told[1:] == CALLERS_OF_SPIN[len(CALLERS_OF_SPIN) + 1 - len(told):] and (flags != ["-Xint"] or len(told) == 7), (bin, flags, told)
            right = total = moving = 0
            at = collections.Counter()  # lines of the leaf
            for line in r.out.splitlines():
                sample = json.loads(line)
                java = [f for f in sample.get("user", []) if (f["symbol"] or "").startswith("Chain")] if sample["type"] == "sample" else []
                if not java:
                    continue
                total += 1
                if java[0]["symbol"] != "Chain.spin" or sample.get("user_end") != "root":  # a stack that is cut says so
                    continue
                callers = [(f["symbol"], f["line"]) for f in java[1:]]
                if callers == CALLERS_OF_SPIN[1:]:  # where compiled code makes its frame or leaves it, in a few instructions, the first caller is missing
                    moving += 1
                    continue
                assert callers == CALLERS_OF_SPIN, (bin, flags, sample)
                assert all(f["file"] == "Chain.java" for f in java) and java[0]["line"] in SPIN, (bin, flags, java)
                assert sum(f.get("inlined", False) for f in java) >= inlined, (bin, flags, java)
                assert inlined or not any(f.get("inlined") for f in java), (bin, flags, java)
                right += 1
                at[java[0]["line"]] += not sample["kernel"]
            # An interpreted method that runs itself is where the thread's register says, in the loop, not where it began or made a call.
            assert flags != ["-Xint"] or all(at[line] > 0.2 * right for line in LOOP) and sum(at[line] for line in LOOP) > 0.9 * sum(at.values()), (bin, at)
            assert total > 30 and right > 0.95 * total and moving <= 1 + 0.005 * total, (bin, flags, right, moving, total, r.out[-3000:])


@test
def java_inlined_in_a_recording_and_in_pprof():
    recording = path("chain.rec")
    with Program(needs_java()[0], "Chain", CHAIN, "-XX:-TieredCompilation", "-XX:CompileCommand=dontinline,Chain::spin") as p:
        let_run(p.pid, 1.2)
        good("profile", "-F", "199", "-q", "--record", recording, "-d", "1", "-p", p.pid)
    stacks = folded_stacks(good("report", recording, "-q", "-f", "folded").out)
    spins = {stack: n for stack, n in stacks.items() if "Chain.spin" in stack}
    right = sum(n for stack, n in spins.items() if "Chain.a_[i];Chain.b_[i];Chain.c_[i];Chain$Inner.go_[i];Chain.spin" in stack)
    assert right > 0.95 * sum(spins.values()) > 20, stacks  # a stack that is cut has no callers
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
    machines = [bin for bin in needs_java() if int(version_of(bin)) >= 21]
    if not machines:
        raise Skip("needs a JDK with virtual threads (21)")
    for bin, how in itertools.product(machines, ("runs", "sleeps")):
        with Program(bin, "Virtual", VIRTUAL, "-XX:CompileCommand=dontinline,Virtual::*", arguments=[how]) as p:
            let_run(p.pid, 1)
            r = good("profile", "-F", "199", "-d", "1", "-f", "json", "-p", p.pid)
        objects = [json.loads(line) for line in r.out.splitlines()]
        ends, cuts = collections.Counter(), 0
        for sample in objects:
            if sample["type"] != "sample":
                continue
            cuts += sample.get("user_end") == "callers_in_heap"
            if not any(f["symbol"] == "Virtual.spin" for f in sample["user"]):
                continue
            end, stack = sample["user_end"], ";".join(f["symbol"] or "" for f in reversed(sample["user"]))
            ends[end] += 1
            if end not in ("root", "callers_in_heap"):
                continue
            assert "ForkJoinWorkerThread.run" in stack and "/libc.so" in sample["user"][-1]["module"], (bin, how, sample)
            depth = stack.count(";Virtual.deep")
            cut = "Continuation.run;[callers in Java's heap];Virtual.deep" in stack
            assert cut == (end == "callers_in_heap") and cut != (depth == 6) and (how == "sleeps" or not cut), (bin, how, end, stack)
            assert cut or "Continuation.enter" in stack, (bin, how, stack)
        count = sum(ends.values())
        assert count > 20 and ends["root"] + ends["callers_in_heap"] > 0.95 * count, (bin, how, ends, r.err)
        # Those that are cut aren't counted as roots.
        assert ledger_of(objects)["stack_ends"]["callers_in_heap"] == cuts, (bin, how, cuts, ends, r.err)
        assert (ends["callers_in_heap"] > 0) == (how == "sleeps"), (bin, how, ends)


@test
def java_from_its_start_and_in_a_recording():
    for bin in needs_java():
        recording, classes = path("java.rec"), compiled(bin, "Known", PROGRAM)
        good("profile", "-F", "997", "-q", "--record", recording, "-d", "3", "--", bin + "/java", "-cp", classes, "Known")
        stacks = main_stacks(good("report", recording, "-q", "-f", "json").out)
        known = [is_whole for stack, is_whole in stacks if any(f.startswith("Known.") for f in stack)]
        assert len(known) > 100 and sum(known) > 0.97 * len(known), (bin, len(known), sum(known))


@test
def doctor_says_what_will_be_seen_of_java():
    for bin in needs_java():
        with Program(bin, "Known", PROGRAM) as p:
            r = good("doctor", "-p", p.pid)
        said = " ".join(r.out.split())
        assert "its functions are shown, compiled and interpreted ones, with files and lines, and those that were inlined" in said, (bin, r.out)
        assert "-XX:+DebugNonSafepoints" in said, (bin, r.out)
        assert "PreserveFramePointer" not in r.out, (bin, r.out)
