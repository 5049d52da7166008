"""JavaScript without a flag: node's functions by name, file and line, in whole stacks: those that Error().stack says."""
from harness import *

import collections

# Functions that call each other down to two that take three times as long and once, and what the program says of its stack there.
# Calls aren't on the line where their function begins, and some take more than one line.
PROGRAM = r"""
"use strict";
const told = [];
function spin(n) {
    if (told.length < 2)
        told.push(new Error().stack);
    let x = 0;
    for (let i = 0; i < n; i++)
        x = (x * 31 + i) % 1000003;
    return x;
}
function often(n) {
    const k = 3 * n;
    return spin(
        k);
}
function seldom(n) {
    return spin(n);
}
function deep(depth, f, n) {
    if (depth > 0)
        return deep(depth - 1, f, n);
    return f(n);
}
class Work {
    run(n) {
        const first = deep(3, often, n);
        return first +
            deep(3, seldom, n);
    }
}
const work = new Work();
const start = process.cpuUsage();
function main(end) { // of processor time
    let sum = 0;
    while (process.cpuUsage(start).user < end)
        sum += [1, 2].map(function each(i) {
            return work.run(
                20000 + i);
        }).length;
    return sum;
}
const sum = main(1000 * Number(process.argv[2]));
console.log(JSON.stringify({ sum, told }));
"""
# Functions that a compiler inlines, one in the other.
INLINED = r"""
"use strict";
let t = 0;
function leaf(n) { for (let i = 0; i < 300; i++) t = (t * 31 + i) % 1000003; return n * 2; }
function middle(n) { let y = 1; y += leaf(n); return y + leaf(n + 1); }
function outer(n) { let s = 0; for (let i = 0; i < 4; i++) s += middle(n); return s; }
function rounds(n) { let s = 0; for (let i = 0; i < n; i++) s += outer(i % 50); return s; }
for (const end = Date.now() + 1500; Date.now() < end;) rounds(30);
"""
# Closures that live for a moment, and what they leave to the collector of garbage.
GARBAGE = r"""
"use strict";
const keep = [];
function make(n) { return function inner(k) { let s = 0; for (let i = 0; i < k; i++) s += i % n; return { s, list: new Array(20).fill(s) }; }; }
function churn(n) {
    let t = 0;
    for (let i = 0; i < 50; i++) { const f = make(i + 3), r = f(200 + n % 7); t += r.s; if (i % 10 === 0) keep.push(r, f); }
    if (keep.length > 100000) keep.length = 0;
    return t;
}
function main() { for (const end = Date.now() + 1200; Date.now() < end;) [1, 2, 3].map((x) => churn(x)); }
main();
"""
NEVER_INLINED = ["--max-inlined-bytecode-size=0", "--max-inlined-bytecode-size-cumulative=0", "--max-inlined-bytecode-size-small=0"]


def node(program, text):
    """The commands that there are: this machine's node."""
    if os.geteuid() != 0 or os.uname().machine != "x86_64":
        raise Skip("needs root; V8's frames are known on x86-64")
    found = shutil.which("node")
    if not found:
        raise Skip("no node here (nodejs)")
    if not has_json():
        raise Skip("this build writes no JSON")
    with open(path(program), "w") as file:
        file.write(text.lstrip())
    return [found]


def user_stacks(text):
    """Of each sample with a user stack: its frames as (symbol, file, line, module), root first; and how it ended."""
    for line in text.splitlines():
        sample = json.loads(line)
        if sample.get("type") == "sample" and sample.get("user"):
            yield [(f.get("symbol"), f.get("file"), f.get("line"), f.get("module")) for f in sample["user"]][::-1], sample.get("user_end")


def own_account(stack):
    """Error().stack as (name, line), root first, of functions in known.js; "Work.run" without what it is called on."""
    found = re.findall(r"at (?:new )?(\S+) \(\S*known\.js:(\d+):\d+\)", stack)
    return [(name.split(".")[-1], int(line)) for name, line in found][::-1]


def profiled(command, *options):
    r = good("profile", "-F", "499", "-f", "json", "-q", "-U", *options, "-o", path("node.json"), "--", *command)
    with open(path("node.json")) as file:
        return r, list(user_stacks(file.read()))


def of_main(stacks):
    return [(stack, end) for stack, end in stacks if any(f[1] and f[1].endswith("known.js") for f in stack)]


@test
def nodes_functions_have_names_files_and_lines():
    command = node("known.js", PROGRAM)
    lines = PROGRAM.lstrip().splitlines()
    spin = range(lines.index("function spin(n) {") + 1, lines.index("function often(n) {") + 1)
    for flags in ([], ["--no-opt"], ["--jitless"], NEVER_INLINED, ["--always-sparkplug", "--no-opt"]):
        r, stacks = profiled([*command, *flags, path("known.js"), "2000"])
        told = [own_account(stack) for stack in json.loads(r.out.splitlines()[-1])["told"]]
        ours = of_main(stacks)
        assert len(ours) > 80, (flags, len(ours), len(stacks))
        # Nothing but the start of node is without a function of JavaScript.
        assert sum(end == "root" for _, end in ours) > 0.98 * len(ours), flags
        below = [[f for f in stack if f[3] == "JavaScript" and f[1] == path("known.js")] for stack, _ in ours]
        counts = collections.Counter(name for stack in below for name in {f[0] for f in stack} & {"often", "seldom"})
        runs = sum(any(f[0] == "run" for f in stack) for stack in below)
        assert counts["often"] + counts["seldom"] > 0.97 * runs, (flags, counts, runs)  # the inlined ones, too
        # One in four is of seldom, give or take what so many samples may be off by.
        both = counts["often"] + counts["seldom"]
        assert abs(counts["seldom"] - both / 4) < 4 * (both * 3 / 16) ** 0.5 + 0.02 * both, (flags, counts)
        # The program's own account: of each function that calls the line, and where in spin it is.
        assert [len(stack) for stack in told] == [9, 9] and all(stack[-1][0] == "spin" for stack in told), told  # main is its tenth
        callers = [stack[:-1] for stack in told]
        spun = [[(f[0], f[2]) for f in stack if not f[0].startswith("(anonymous)")] for stack in below if stack[-1][0] == "spin"]
        assert len(spun) > 0.9 * runs, (flags, len(spun), runs)
        wrong = collections.Counter(str(stack) for stack in spun if stack[:-1] not in callers)
        assert wrong.total() < 0.02 * len(spun), (flags, wrong.most_common(3), callers)
        assert all(stack[-1][1] in spin for stack in spun), (flags, collections.Counter(stack[-1] for stack in spun))


@test
def nodes_functions_have_names_while_garbage_is_collected():
    command = node("garbage.js", GARBAGE)
    _, stacks = profiled([*command, path("garbage.js")])
    ours = [stack for stack, _ in stacks if any(f[0] == "main" for f in stack)]
    assert len(ours) > 100, len(stacks)
    frames = [f for stack in ours for f in stack if f[1] and f[1].endswith("garbage.js")]
    names = {f[0] for f in frames}
    known = {"make", "inner", "churn", "main"}
    assert {"churn", "main"} <= names and all(name in known or name.startswith("(anonymous) garbage.js") for name in names), names
    assert sum(f[2] is None for f in frames) < 0.05 * len(frames), {f for f in frames if f[2] is None}  # its text is moved, too
    unnamed = sum(any(f[3] == "[anon]" for f in stack) for stack in ours)
    assert unnamed < 0.05 * len(ours), (unnamed, len(ours))


@test
def nodes_functions_in_a_recording_and_views():
    command = node("known.js", PROGRAM)
    recording = path("node.rec")
    good("profile", "-F", "199", "-q", "--record", recording, "--", *command, path("known.js"), "1500")
    r = good("report", recording, "-q", "-f", "folded")
    lines = [line for line in r.out.splitlines() if re.search(r";deep(_\[i\])?;", line)]
    assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) > 50, r.out[-2000:]
    r = good("profile", "-F", "199", "-q", "-f", "folded", "--language", "--", *command, path("known.js"), "1500")
    lines = [line for line in r.out.splitlines() if re.search(r";deep(_\[i\])?;", line)]
    assert lines and not any("__libc_start_main" in line or "Builtins_" in line for line in lines), lines[:2]
    r = good("profile", "-F", "199", "-q", "-f", "folded", "--native", "--", *command, path("known.js"), "1500")
    assert ";deep" not in r.out, r.out[-2000:]
    r = good("profile", "-F", "199", "-v", "-f", "folded", "-o", path("folded"), "--", *command, path("known.js"), "1000")
    assert re.search(r"V8, by \d+ symbols", r.err) and re.search(r"JavaScript: \d+ functions; \d+ frames are of one", r.err), r.err
    said = re.search(r"with the line that ran (\d+) are interpreted, (\d+) baseline code, (\d+) optimised code; (\d+) only with", r.err)
    interpreted, baseline, optimised, begin = map(int, said.groups())
    assert interpreted > 0 and optimised > 0 and begin < 0.1 * (interpreted + baseline + optimised), said[0]


@test
def functions_that_node_inlined_are_frames_in_a_recording():
    command = node("inlined.js", INLINED)
    recording = path("node.rec")
    good("profile", "-F", "199", "-q", "--record", recording, "--", *command, path("inlined.js"))
    r = good("report", recording, "-q", "-f", "folded")
    assert ";rounds;outer_[i];middle_[i];leaf_[i]" in r.out, r.out[-2000:]


@test
def doctor_says_what_will_be_seen_of_node():
    command = node("known.js", PROGRAM)
    p = subprocess.Popen([*command, path("known.js"), "20000"], stdout=subprocess.DEVNULL)
    try:
        let_run(p.pid, 0.3)
        r = good("doctor", "-p", str(p.pid))
    finally:
        p.kill()
        p.communicate()
    assert "its functions are shown, compiled and interpreted ones, with the lines that run and those that a compiler has inlined" in r.out, r.out
