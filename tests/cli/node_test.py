"""JavaScript without a flag: node's functions by name, file and line, in whole stacks; the stack that the program says it has."""
from harness import *

# Functions that call each other down to two that take three times as long and once, and what the program says of its stack there.
PROGRAM = r"""
"use strict";
const told = [];
function spin(n) { let x = 0; for (let i = 0; i < n; i++) x = (x * 31 + i) % 1000003; return x; }
function often(n) { return spin(3 * n); }
function seldom(n) { return spin(n); }
function deep(depth, f, n) {
    if (depth > 0) return deep(depth - 1, f, n);
    if (told.length === 0) told.push(new Error().stack);
    return f(n);
}
class Work {
    run(n) { return deep(3, often, n) + deep(3, seldom, n); }
}
const work = new Work();
const end = Date.now() + Number(process.argv[2]);
let sum = 0;
while (Date.now() < end) sum += [1, 2].map(function each(i) { return work.run(20000 + i); }).length;
console.log(JSON.stringify({ sum, stack: told[0] }));
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
    """Error().stack as names, root first; "Array.map" and "Work.run" without what they are called on."""
    names = [line.split("at ")[1].split(" (")[0] for line in stack.splitlines()[1:]]
    return [name.split(".")[-1] for name in names][::-1]


def profiled(command, *options):
    r = good("profile", "-F", "499", "-f", "json", "-q", "-U", *options, "-o", path("node.json"), "--", *command)
    with open(path("node.json")) as file:
        return r, list(user_stacks(file.read()))


def of_main(stacks):
    return [(stack, end) for stack, end in stacks if any(f[1] and f[1].endswith("known.js") for f in stack)]


@test
def nodes_functions_have_names_files_and_lines():
    command = node("known.js", PROGRAM)
    lines = {name: number for number, text in enumerate(PROGRAM.lstrip().splitlines(), 1)
             for name in ("spin", "often", "seldom", "deep") if text.startswith(f"function {name}(")}
    for flags in ([], ["--no-opt"], ["--jitless"], NEVER_INLINED):
        r, stacks = profiled([*command, *flags, path("known.js"), "1200"])
        told = own_account(json.loads(r.out.splitlines()[-1])["stack"])
        ours = of_main(stacks)
        assert len(ours) > 100, (flags, len(ours), len(stacks))
        # Nothing but the start of node is without a function of JavaScript.
        assert sum(end == "root" for _, end in ours) > 0.98 * len(ours), flags
        below = [[f for f in stack if f[3] == "JavaScript"] for stack, _ in ours]
        for name, number in lines.items():
            places = {f[1:3] for stack in below for f in stack if f[0] == name}
            assert places <= {(path("known.js"), number)}, (flags, name, places)
        often = sum(any(f[0] == "often" for f in stack) for stack in below)
        seldom = sum(any(f[0] == "seldom" for f in stack) for stack in below)
        if flags:  # what is inlined isn't seen
            assert often + seldom > 0.97 * len(ours), (flags, often, seldom, len(ours))
            assert 1.8 < often / max(seldom, 1) < 6, (flags, often, seldom)
            shown = [[f[0] for f in stack] for stack in below]
            # From "each" on: the program's own account, but for nameless functions, which have another name here.
            wanted = told[told.index("each"):]
            assert wanted == ["each", "run", "deep", "deep", "deep", "deep"], told
            whole = [names for names in shown if "each" in names and names[names.index("each"):][:6] == wanted]
            assert len(whole) > 0.97 * len(shown), (flags, len(whole), len(shown), shown[:3])


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
    good("profile", "-F", "199", "-q", "--record", recording, "--", *command, path("known.js"), "800")
    r = good("report", recording, "-q", "-f", "folded")
    lines = [line for line in r.out.splitlines() if ";deep;" in line]
    assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) > 50, r.out[-2000:]
    r = good("profile", "-F", "199", "-q", "-f", "folded", "--language", "--", *command, path("known.js"), "800")
    lines = [line for line in r.out.splitlines() if ";deep;" in line]
    assert lines and not any("__libc_start_main" in line or "Builtins_" in line for line in lines), lines[:2]
    r = good("profile", "-F", "199", "-q", "-f", "folded", "--native", "--", *command, path("known.js"), "800")
    assert ";deep" not in r.out, r.out[-2000:]
    r = good("profile", "-F", "199", "-v", "-f", "folded", "-o", path("folded"), "--", *command, path("known.js"), "300")
    assert re.search(r"V8, by \d+ symbols", r.err) and re.search(r"JavaScript: \d+ functions; \d+ frames are of one", r.err), r.err


@test
def doctor_says_what_will_be_seen_of_node():
    command = node("known.js", PROGRAM)
    p = subprocess.Popen([*command, path("known.js"), "20000"], stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        r = good("doctor", "-p", str(p.pid))
    finally:
        p.kill()
        p.communicate()
    assert "its functions are shown, compiled and interpreted ones, with the lines where they begin" in r.out, r.out
