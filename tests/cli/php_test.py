"""PHP's own functions in a profile: as many and the same as PHP says, with their lines."""
from harness import *
from languages import frames_of, learnt

# Methods, closures that an internal function calls, a generator, an include, an eval; then it spins in a known place.
PROGRAM = '''<?php
class Tree {
    function __construct(public int $depth) {}
    function walk() {
        if ($this->depth == 0)
            return spin();
        return (new Tree($this->depth - 1))->walk();
    }
    static function start() {
        return (new static(3))
            ->walk();
    }
}
function généré($n) {
    for ($i = 0; $i < $n; $i++)
        yield array_map(function ($v) {
            return by_key($v);
        }, [1, 2, 3]);
}
function by_key($v) {
    if ($v == 2)
        return include __DIR__ . '/included.inc';
    return $v;
}
function spin() {
    foreach (debug_backtrace() as $f)
        echo ($f['line'] ?? 0), ' ', isset($f['class']) ? $f['class'] . '::' : '', $f['function'], "\\n";
    for ($end = microtime(true) + 2.5; microtime(true) < $end;)
        for ($i = 0; $i < 1000; $i++)
            ;
    exit;
}
function main() {
    foreach (généré(2) as $value)
        usort($value, fn($a, $b) => $a <=> $b);
}
main();
'''
INCLUDED = '''<?php

return Tree::start();
'''


def php():
    where = shutil.which("php")
    if not where:
        raise Skip("this machine has no php")
    return where


def put_script():
    script = path("known.php")
    with open(script, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    with open(path("included.inc"), "w", encoding="utf-8") as file:
        file.write(INCLUDED)
    return script


def php_frames(sample):
    return frames_of("PHP", sample)


@test
def php_functions_and_lines_are_those_that_php_says():
    script, out = put_script(), path("known.json")
    r = learnt(run("profile", "-F", "199", "-f", "json", "-o", out, "--", php(), script))
    # PHP says of each function where it was called; so a function's own line is its callee's.
    said = [line.split(" ", 1) for line in r.out.splitlines() if line[:1].isdigit()]
    names = [{"include": "included.inc"}.get(name, name) for _, name in said] + ["known.php"]
    places = [int(line) for line, _ in said]
    assert {"Tree::walk", "array_map", "{closure}", "included.inc", "généré", "main"} <= {"{closure}" if name.startswith("{closure") else name for name in names}, said
    lines, records = [json.loads(line) for line in open(out, encoding="utf-8")], []
    for sample in lines:
        if sample["type"] == "sample":
            frames = php_frames(sample)
            if frames and frames[0]["symbol"] == "microtime":
                frames = frames[1:]
            if frames and frames[0]["symbol"] == "spin":
                records.append(frames)
    assert len(records) >= 25, (len(records), r.err)
    wrong = []
    for frames in records:
        internal = {"array_map"}
        places_are = [(f.get("line") or 0) for f in frames[1:]]
        files = [os.path.basename(f.get("file") or "") for f in frames]
        wanted = ["included.inc" if name == "included.inc" else "" if name in internal else "known.php" for name in names]
        if [f["symbol"] for f in frames] != names or places_are != places or files != wanted or frames[0].get("line") not in range(26, 33):
            wrong.append([(f["symbol"], f.get("line"), f.get("file")) for f in frames])
    assert not wrong, (len(wrong), len(records), wrong[0], names, places)
    ledger = next(line for line in lines if line["type"] == "ledger")["languages"]
    # In its start, which is longer on a busy machine, PHP's list and its native frames don't always belong to each other yet.
    assert ledger["merged"] + ledger["one_more"] + ledger["one_less"] >= 0.9 * sum(ledger.values()), ledger


@test
def one_side_of_phps_stacks_alone():
    script = put_script()
    for option, has, hasnt in (("--native", "execute_ex", "by_key"), ("--language", "by_key", "zend_execute")):
        r = learnt(run("profile", option, "-F", "199", "-f", "folded", "--command-output", "stderr", "--", php(), script))
        hot = max((line for line in r.out.splitlines() if line), key=lambda line: int(line.rsplit(" ", 1)[1]))
        assert has in hot and hasnt not in hot, (option, hot)


JIT = ["-d", "opcache.enable_cli=1", "-d", "opcache.file_update_protection=0", "-d", "opcache.jit=function", "-d", "opcache.jit_buffer_size=64M"]
COMPILED = '''<?php
function fib($n) {
    return $n < 2 ? $n : fib($n - 1) + fib($n - 2);
}
function coded() {
    $o = ["a" => array_map(fn($i) => ["i" => $i, "s" => "x$i"], range(0, 200))];
    for ($i = 0; $i < 20; $i++)
        json_decode(json_encode($o), true);
}
function sorted() {
    $a = [];
    for ($i = 0; $i < 20000; $i++)
        $a[] = ($i * 1103515245 + 12345) & 0x7fffffff;
    usort($a, function ($x, $y) {
        return $x <=> $y;
    });
}
function spent() {
    $r = getrusage();
    return $r["ru_utime.tv_sec"] + $r["ru_utime.tv_usec"] / 1e6;
}
for ($end = spent() + 3; spent() < $end;) {
    fib(18);
    coded();
    sorted();
}
'''


@test
def compiled_php_is_walked_by_the_form_of_its_frames():
    """opcache's code runs in the frame of execute_ex: each stack ends there until its form is known."""
    on = 'exit((opcache_get_status()["jit"]["on"] ?? false) ? 7 : 0);'
    if os.uname().machine != "x86_64" or run(php(), *JIT, "-r", on, binary=None).code != 7:
        raise Skip("this machine's php has no just-in-time compiler")
    script, out = written("compiled.php", COMPILED), path("compiled.json")
    r = learnt(run("profile", "-F", "499", "-f", "json", "-o", out, "--", php(), *JIT, script))
    lines = rows("compiled.json")
    stacks = [line["user"] for line in lines if line["type"] == "sample"]
    inside = [frames for frames in stacks if any(f.get("symbol") in ("sorted", "fib", "coded") for f in frames)]
    assert len(inside) > 150, (len(inside), len(stacks), r.err)
    whole = [frames[-1].get("symbol") == "_start" and php_frames({"user": frames})[-1]["symbol"] == "compiled.php" for frames in inside]
    since = whole[whole.index(True):]
    assert sum(since) > 0.9 * len(since) and len(since) > 0.5 * len(whole), (sum(whole), len(since), len(whole), r.err)
    ledger = next(line for line in lines if line["type"] == "ledger")["languages"]
    assert ledger["merged"] + ledger["one_more"] > 0.7 * sum(ledger.values()), ledger  # those before the form was known aren't


@test
def functions_that_php_calls_while_it_sorts_are_where_they_belong():
    """A function is in PHP's list before execute_ex is entered for it, and a moment after it has left."""
    script = written("sorts.php", COMPILED)
    learnt(run("profile", "-F", "999", "-f", "json", "-o", path("sorts.json"), "--", php(), script))
    ledger = next(line for line in rows("sorts.json") if line["type"] == "ledger")["languages"]
    assert sum(ledger.values()) > 300 and ledger["one_less"] > 0 and ledger["astray"] < 0.01 * sum(ledger.values()), ledger


@test
def a_capture_has_phps_names():
    script, capture = put_script(), path("known.rbpf")
    learnt(run("profile", "-F", "199", "--record", capture, "--", php(), script))
    os.remove(script)
    r = run("report", capture, "-f", "folded")
    assert r.code == 0 and ";main;" in r.out and "Tree::walk" in r.out, (r.err, r.out[-2000:])
