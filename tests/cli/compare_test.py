"""rawbpf compare: what differs between results of run, bench and load."""
import csv
import io
from xml.etree import ElementTree

from harness import *
from kernel_objects import *

HEADER = {"type": "header", "schema": 1, "version": "1", "kernel": "6.12.9", "arch": "x86_64", "cpus": 2,
          "environment": {"cpu": "c", "governor": "performance", "load": [0.5, 1, 2], "mitigations": {"mds": "no"}, "unread": {}}}


def result(name, *lines, **header):
    environment = {**HEADER["environment"], **header.pop("environment", {})}
    return written(name, "".join(json.dumps(line) + "\n" for line in ({**HEADER, **header, "environment": environment}, *lines)))


def series(name, values, variant=""):
    return {"type": "figure", "variant": variant, "figure": name, "values": values}


def program(path_, name, insns, loaded=True):
    return {"type": "program", "object": path_, "program": name, "loaded": loaded, "verified_insns": insns, "total_states": 3,
            "stack_depth": "16+8", "verification_time_us": 70}


SLOW, FAST = [40, 41, 42, 41, 40, 43, 41, 42], [30, 31, 33, 30, 32, 31, 30, 31]


@test
def compare_shows_what_differs_beyond_noise():
    a = result("before.json", series("ns", SLOW), series("other", SLOW))
    b = result("after.json", series("ns", FAST), series("other", SLOW[::-1]), environment={"governor": "powersave", "load": [4, 1, 1]})
    r = good("compare", a, b)
    assert re.search(r"governor: powersave, was performance\n +load: 4, was 0.5\n", r.out), r.out
    assert re.search(r"^ns +41 \(8\) +31 \(8\) +-10 \(-24 %\) +-1\d(\.\d)? to -[89]", r.out, re.M), r.out
    assert "1 figure differs, 1 doesn't" in r.out and "other" not in r.out, r.out
    assert re.search(r"^other .*within noise$", good("compare", "--all", a, b).out, re.M)
    bad_status = run("compare", "--expect-same", a, b)
    assert bad_status.code == 4 and "1 figure differs" in bad_status.out, bad_status.err
    good("compare", "--expect-same", a, a)
    good("compare", "--expect-same", "--figure", "other", a, b)
    assert "1 differ by less than was asked for" in good("compare", "--least", "50", "--expect-same", a, b).out
    lines = [json.loads(line) for line in good("compare", "--json", "--all", a, b).out.splitlines()]
    assert [l["fact"] for l in lines if l["type"] == "environment"] == ["governor", "load"], lines
    ns, other = [l for l in lines if l["type"] == "comparison"]
    assert ns["verdict"] == "differs" and ns["before"] == 41 and ns["difference"] == -10 and ns["low"] <= -10 <= ns["high"] < 0, ns
    assert other["verdict"] == "within noise" and other["before_values"] == 8 and other["subject"] is None, other
    assert lines[-1] == {"type": "summary", "differ": 1, "alike": 1, "smaller": 0, "too_few_values": 0}, lines[-1]
    rows_ = list(csv.DictReader(io.StringIO(good("compare", "--csv", "--all", a, b).out)))
    assert [(row["figure"], row["verdict"], row["before"]) for row in rows_] == [("ns", "differs", "41"), ("other", "within noise", "41")], rows_


@test
def compare_draws_a_sweep():
    """Two kernels with two variants: a well-formed picture with a row for each, of the figure that is asked for."""
    figures = [series(figure, [at, at + 1, at + 2], variant)
               for variant, at in (("block=4k", 10), ("block=64k", 20)) for figure in ("ns", "reads")]
    sweep = written("sweep.json", "".join(read(result(f"{kernel}.json", *figures, kernel=kernel)) for kernel in ("6.1.0", "6.12.0")))
    good("compare", sweep, "-f", "svg", "--figure", "ns", "-o", path("sweep.svg"))
    texts = [each.text for each in ElementTree.parse(path("sweep.svg")).iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("block=4k") == 2 and texts.count("block=64k") == 2 and texts.count("6.1.0") == 1 and "reads" not in texts, texts
    assert texts.count("11") == 2 and texts.count("21") == 2, texts


@test
def compare_says_when_there_are_too_few_values():
    a, b = result("few-a.json", series("ns", [1, 2, 3])), result("few-b.json", series("ns", [7, 8, 9]))
    r = good("compare", "--expect-same", a, b)
    assert "0 figures differ, 0 don't\n1 can't be told: it takes 4 values or more on each side (--repeat 4)" in r.out, r.out
    assert re.search(r"ns +2 \(3\) +8 \(3\) +\+6 \(\+300 %\) +too few values", good("compare", "--all", a, b).out)


@test
def compare_does_veristats_job():
    files = [result(f"{release}.json", program("old/x.bpf.o", "parse", insns), program("old/x.bpf.o", "send", 50),
                    *([program("old/x.bpf.o", "new", 7, False)] if release != "5.10" else []), kernel=f"{release}.1")
             for release, insns in (("5.10", 1000), ("6.1", 1100), ("6.12", 400))]
    r = good("compare", "--figure", "verified_insns", "--figure", "verdict", *files)
    assert re.search(r"6.1.json +parse +verified_insns +1000 +1100 +\+100 \(\+10 %\)\n", r.out), r.out
    assert re.search(r"6.1.json +new +verdict +- +refused +only after\n", r.out), r.out
    assert re.search(r"6.12.json +parse +verified_insns +1000 +400 +-600 \(-60 %\)\n", r.out), r.out
    assert "kernel: 6.12.1, was 5.10.1" in r.out and " send " not in r.out, r.out
    # The same of one file that several runs wrote.
    whole = written("kernels.json", "".join(read(f"{release}.json") for release in ("5.10", "6.1", "6.12")))
    r = good("compare", "--figure", "verified_insns", whole)
    assert re.search(r"6.12.1 +parse +verified_insns +1000 +400 ", r.out), r.out


@test
def compare_reads_what_the_tools_write():
    quick, slow = (written(f"{name}.asm", f"r0 = 0\nr1 = 0\nagain:\nr0 += r1\nr1 += 1\nif r1 < {count} goto again\nexit\n")
                   for name, count in (("quick", 10), ("slow", 1000)))
    for name, file in (("quick", quick), ("slow", slow)):
        good("bench", "--emulate", "--repeat", "600", "--json", "-o", path(f"{name}.json"), file)
    r = good("compare", path("quick.json"), path("slow.json"))
    assert re.search(r"^main +executed +33 +3003 +\+2970 ", r.out, re.M) and re.search(r"^main +emulator ns +\S+ \(\d+\) .* to \+", r.out, re.M), r.out
    text = 'param n = 10\nasm {\n.program p "xdp"\nr0 = 0\nr1 = 0\nagain:\nr0 += r1\nr1 += 1\nif r1 < $n goto again\nexit\n}\nrun p\nmeasure steps = run.instructions\n'
    good("run", "--emulate", "--set", "n=10,20", "--repeat", "6", "--json", "-o", path("sweep.json"), written("sweep.exp", text))
    r = good("compare", path("sweep.json"))
    assert re.search(r"^before +n=10\nafter +n=20\n", r.out) and re.search(r"^steps +33 \(6\) +63 \(6\) +\+30 \(\+91 %\)", r.out, re.M), r.out
    if os.geteuid() == 0 and engines_kernel():
        for name, file in (("quick", quick), ("slow", slow)):
            program_file = written(f"{name}-xdp.asm", '.program main "xdp"\n' + open(file).read())
            good("load", "--json", "-o", path(f"{name}-load.json"), program_file)
        r = good("compare", path("quick-load.json"), path("slow-load.json"))
        assert re.search(r"^main +verified_insns +33 +3003 +\+2970 ", r.out, re.M) and re.search(r"^main +insn_hash +\w+ +\w+", r.out, re.M), r.out


def engines_kernel():
    return run("exec", "--in-kernel", "-", input=b"r0 = 1\nexit\n").code == 0


@test
def compare_says_what_is_wrong_with_files():
    a = result("good.json", series("ns", SLOW))
    bad(1, r"there is nothing to compare\n.*--set", "compare", a)
    bad(1, r"nowhere.json", "compare", a, path("nowhere.json"))
    bad(1, r"empty.json has no figures\n.*measure NAME = VALUE", "compare", a, written("empty.json", ""))
    bad(1, r"text.json:1: no JSON: column 1: expected a value", "compare", a, written("text.json", "VARIANT NS\n"))
    bad(1, r"cut.json:2: no JSON: column 9", "compare", a, written("cut.json", json.dumps(HEADER) + '\n{"type":'))
    bad(1, r"newer.json:1: its schema is 2, and this rawbpf reads schema 1", "compare", a, result("newer.json", series("ns", SLOW), schema=2))
    bad(1, r"deep.json:1: no JSON: column 34", "compare", a, written("deep.json", "[" * 5000))
    bad(2, r"no figure nss in these files\n.*did you mean 'ns'", "compare", "--figure", "nss", a, a)
    bad(2, r"no figure zzzzzzzz in these files\n.*there are: ns", "compare", "--figure", "zzzzzzzz", a, a)
    bad(2, r"FILE", "compare")
    hostile = result("hostile.json", series("a\x1b[2Jb", SLOW), series("ns", SLOW))
    assert "\x1b" not in good("compare", "--all", a, hostile).out
    r = subprocess.run([RB, "compare", a, "-"], input=read("good.json"), capture_output=True, text=True, check=True)
    assert "after   standard input" in r.stdout, r.stdout
