"""Java without a flag: functions by name, whole stacks, compiled and interpreted; the shares that the program says of itself."""
from harness import *
import itertools

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
        stacks.append((stack.split(";"), int(count)))
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
    assert "its functions are shown, compiled and interpreted ones" in r.out, r.out
    assert "PreserveFramePointer" not in r.out, r.out
