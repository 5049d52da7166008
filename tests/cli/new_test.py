"""rawbpf new: each small project builds, and passes its own test; in assembly and in C. (tests/install/run has those in C++.)"""
import os
import shutil
import subprocess

from harness import *

KINDS = ("hello", "map", "ringbuf", "uprobe", "xdp")
INCLUDE = os.path.join(HERE, "../../programs/include")


def started(kind, language):
    """The folder of a new project."""
    folder = path(f"new-{kind}-{language}")
    r = good("new", kind, f"--{language}", os.path.basename(folder), cwd=WORK)
    assert os.path.basename(folder) + ":" in r.out and "make test" in r.out, r.out
    return folder


def make(folder, *words, failing=False):
    if not shutil.which("make") or not shutil.which("cc"):
        raise Skip("no make, or no C compiler")
    r = subprocess.run(["make", "-s", f"RAWBPF={RB}", *words], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert (r.returncode != 0) == failing, (folder, r.stdout, r.stderr)
    return r.stdout + r.stderr


@test
def new_projects_in_assembly_pass_their_tests():
    for kind in KINDS:
        folder = started(kind, "asm")
        assert sorted(os.listdir(folder)) == sorted([f"new-{kind}-asm.asm", "Makefile", "README.md", "test.sh"] + ["workload.c"] * (kind == "uprobe")), os.listdir(folder)
        out = make(folder, "test")
        assert out.startswith("PASS"), (kind, out)
        make(folder, "clean")
        assert not [f for f in os.listdir(folder) if f.endswith(".o") or f == "workload"], os.listdir(folder)


@test
def new_projects_in_c_pass_their_tests():
    if not shutil.which("clang"):
        raise Skip("no clang")
    for kind in KINDS:
        out = make(started(kind, "c"), f"BPF_CFLAGS=-I{INCLUDE}", "test")
        assert out.startswith("PASS"), (kind, out)


@test
def new_experiments_pass_their_tests_and_sweep():
    for language in ("asm", "c"):
        if language == "c" and not shutil.which("clang"):
            continue
        folder = started("experiment", language)
        assert sorted(os.listdir(folder)) == ["Makefile", "README.md", f"new-experiment-{language}.exp", "test.sh"], os.listdir(folder)
        assert "PASS" in make(folder, "test"), language
        if os.geteuid() == 0 and run("exec", "--in-kernel", "-", input=b"r0 = 1\nexit\n").code == 0:
            assert re.search(r"^ns +\S+ \(20\)|0 figures differ", make(folder, "sweep"), re.M), language
            make(folder, "clean")
    bad(2, r"an experiment is text, not C\+\+\n.*--asm and --c", "new", "--dsl", "experiment", "none", cwd=WORK)
    folder = started_as("experiment", "wrongexperiment")
    source = os.path.join(folder, "wrongexperiment.exp")
    with open(source) as f:
        text = f.read()
    with open(source, "w") as f:
        f.write(text.replace("r6 += r7", "r6 += 2"))
    assert "FAIL: the sum of 1 to 10 isn't 55" in make(folder, "test", failing=True)


def started_as(kind, name):
    good("new", kind, name, cwd=WORK)
    return path(name)


@test
def a_new_projects_test_can_fail():
    """What it says of a program that does something else."""
    for kind, right, wrong, says in (("hello", "r0 = 42", "r0 = 41", "something else than 42"),
                                     ("map", "lock *(u64 *)(r0 + 0) += r1", "r1 = 2", "don't count to 3"),
                                     ("xdp", "if r5 != 0x0900 goto pass", "if r5 != 0x0a00 goto pass", "port 9 isn't dropped")):
        name = f"wrong{kind}"
        good("new", kind, name, cwd=WORK)
        source = os.path.join(path(name), f"{name}.asm")
        with open(source) as f:
            text = f.read()
        assert right in text, text
        with open(source, "w") as f:
            f.write(text.replace(right, wrong))
        out = make(path(name), "test", failing=True)
        assert "FAIL: " in out and says in out, out


@test
def new_says_what_is_wrong_and_overwrites_nothing():
    bad(2, r"KIND NAME|operand", "new", cwd=WORK)
    bad(2, r"KIND NAME|new: NAME is missing|argument", "new", "hello", cwd=WORK)
    bad(2, r"there is no kind of project called helo\n.*hello map ringbuf uprobe xdp experiment", "new", "helo", "x", cwd=WORK)
    for name in ("../x", "a/b", "9lives", "a b", "x" * 65, "\x1b[2J", ""):
        r = run("new", "hello", name, cwd=WORK)
        assert r.code == 2 and "can't be the name of a project" in r.err and "\x1b" not in r.err and not r.out, (name, r.err)
    bad(2, r"--c.*--dsl|--dsl.*--c", "new", "--c", "--dsl", "hello", "both", cwd=WORK)
    assert not os.path.exists(path("both"))
    good("new", "hello", "overwritten", cwd=WORK)
    before = os.stat(os.path.join(path("overwritten"), "overwritten.asm")).st_mtime_ns
    bad(1, r"overwritten is there already\n.*take another name", "new", "xdp", "overwritten", cwd=WORK)
    assert sorted(os.listdir(path("overwritten"))) == ["Makefile", "README.md", "overwritten.asm", "test.sh"], os.listdir(path("overwritten"))
    assert os.stat(os.path.join(path("overwritten"), "overwritten.asm")).st_mtime_ns == before
    written("plain", "")
    bad(1, r"plain is there already", "new", "hello", "plain", cwd=WORK)
    if os.geteuid() != 0:
        os.mkdir(path("closed"), 0o555)
        bad(1, r"(?i)permission", "new", "hello", "x", cwd=path("closed"))
