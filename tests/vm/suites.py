"""The suites inside guests: started, what they printed taken apart, a second run for what failed, one table.

Names and reasons may hold any character but tabs and line ends: the suites print a tab between them (RAWBPF_TEST_LINES=tabs, see
tests/support/main.cpp). A suite says how it ended; one that died has no verdict for what it didn't reach, and that fails.

A test that failed is run once more, in a guest of its own. If it passes there it is reported as flaky: ./dev test counts these, and allows few.
"""
import concurrent.futures
import dataclasses
import os
import re
import sys
import tempfile
import threading
import time

import guest
import kernels

# A network driver whose types are looked for, and what a tc filter needs where it isn't built in.
MODULES = ["dummy", "cls_bpf", "sch_ingress"]
# Boots of their own, on one kernel of each architecture: a root that holds one file.
BARE_KERNELS = ("6.12", "arm64-6.12")
BARE_COMMAND = ["/usr/bin/rawbpf", "profile", "-F", "499", "-d", "1", "--idle", "-f", "folded"]
BARE_TESTS = (("a root of one file: it profiles and ends cleanly", (), rb"(?m)^\S+(;\S+)* \d+$"),
              ("a root of one file and /proc: kernel functions have names", (("proc", "/proc"),), rb"(?m)^\S+;(\S+;)*[a-z_]\w+\S*_\[k\]"))
# What ends by itself: the limits are the guest's own seconds, which don't pass faster on a busy host.
GUEST_SCRIPT = """
export RAWBPF_TEST_LINES=tabs RAWBPF_TEST_LIMIT=60
for suite; do
  case $suite in
  kernel-tests) /usr/lib/rawbpf/kernel-tests ;;
  cli.sh) timeout 240 /bin/sh /usr/lib/rawbpf/cli.sh ;;
  esac
  status=$?
  [ $suite/$status = kernel-tests/0 ] || [ $suite != kernel-tests ] || /usr/lib/rawbpf/kernel-tests --list-test-cases
  printf 'SUITE\\t%s\\t%s\\n' $suite $status
done
"""
SUITES = ("kernel-tests", "cli.sh")
# A guest uses 240 (5.10) to 450 seconds of CPU time (the newest), however long these take on a busy host. One that computes without an
# end has used this before the host's seconds are over.
CPU_LIMIT = 700
# Seconds of the host. Nothing is run again after the first, nothing goes on after the second: a gate where nothing works has an end.
SECOND_RUNS_UNTIL = 900
ALL_END_AT = 1500
# No tests of anybody's, and seen only when they fail.
ENDS = "the guest ends by itself"
ENDED = " ends by itself"
AGAIN = "failed (above), then passed"


@dataclasses.dataclass
class Verdict:
    word: str                 # PASS, FAIL, SKIP
    text: str = ""            # why it was skipped, or is flaky
    seconds: float = 0.0      # the guest's
    detail: list = dataclasses.field(default_factory=list)
    flaky: bool = False       # passed when it was run again, or says itself that something was tried again


@dataclasses.dataclass
class Reading:
    verdicts: dict = dataclasses.field(default_factory=dict)   # name -> Verdict, in order
    listed: list = dataclasses.field(default_factory=list)     # all names of a suite that ended early
    ended: dict = dataclasses.field(default_factory=dict)      # suite -> exit status
    running: str = ""                                          # began and has no verdict
    said: list = dataclasses.field(default_factory=list)       # the last lines that are none of these


def read(out):
    """What the suites printed, as a Reading."""
    r = Reading()
    detail = []
    for line in out.decode("utf-8", "replace").split("\n"):
        word, *fields = line.split("\t")
        if word == "RUN" and fields:
            r.running, detail = fields[0], []
        elif word in ("PASS", "FAIL", "SKIP", "FLAKY") and fields:
            v = Verdict("PASS" if word == "FLAKY" else word, detail=detail if word == "FAIL" else [], flaky=word == "FLAKY")
            if word in ("SKIP", "FLAKY"):
                v.text = fields[1] if len(fields) > 1 else ""
            elif len(fields) > 1:
                v.seconds = float(fields[1]) if re.fullmatch(r"\d+(\.\d+)?", fields[1]) else 0.0
            if fields[0] in r.verdicts:
                v = Verdict("FAIL", detail=["  two tests have this name"])
            r.verdicts[fields[0]] = v
            r.running, detail = "", []
        elif word == "TEST" and fields:
            r.listed.append(fields[0])
        elif word == "SUITE" and len(fields) == 2 and fields[1].isdigit():
            r.ended[fields[0]] = int(fields[1])
        else:
            if line.startswith("  "):
                detail.append(line)
            r.said = [*r.said, line][-8:] if line else r.said
    if r.running:
        r.said = [*detail, *r.said]
    return r


def complete(r, suites):
    """Adds a failure for whatever has no verdict: a suite that died, a test that it didn't reach."""
    for suite in suites:
        status = r.ended.get(suite)
        if status in (0, 77) or status == 1 and any(v.word == "FAIL" for v in r.verdicts.values()):
            continue
        where = f", in: {r.running}" if r.running else ""
        if status is None:
            r.verdicts[ENDS] = Verdict("FAIL", detail=[f"  {suite} was cut off{where}", *("  " + s for s in r.said)])
            break
        r.verdicts[suite + ENDED] = Verdict("FAIL", detail=[f"  exit status {status}{where}", *("  " + s for s in r.said)])
        if r.running:
            r.verdicts[r.running] = Verdict("FAIL", detail=[f"  {suite} ended here with status {status}"])
    if not r.verdicts:
        r.verdicts[ENDS] = Verdict("FAIL", detail=["  it ran no test"])
    for name in r.listed:
        r.verdicts.setdefault(name, Verdict("FAIL", detail=["  not reached"]))
    return r.verdicts


def merge(first, second):
    """The verdicts of both runs: what failed first must pass the second time, and nothing else may fail there."""
    out = dict(first)
    for name, v in second.items():
        before = first.get(name)
        if v.word == "FAIL" or before is None:
            out[name] = v
        elif before.word == "FAIL" and v.word == "PASS":
            out[name] = Verdict("PASS", AGAIN, v.seconds, before.detail, flaky=True)
    # What no test is but a suite's way to end has a verdict only when it is bad.
    for name in first:
        if name not in second and name.endswith(ENDED):
            out[name] = Verdict("PASS", AGAIN, detail=first[name].detail, flaky=True)
    return out


def suites_of(tests):
    """The suites that have these tests; of the command line's, all run or none."""
    command_line = [t.startswith("cli") for t in tests]
    return (("kernel-tests",) if not all(command_line) else ()) + (("cli.sh",) if any(command_line) else ())


class Runner:
    def __init__(self, options, log, files, init, busybox):
        self.options, self.log = options, log
        self.files, self.init, self.busybox = files, init, busybox
        self.began = time.monotonic()

    def boot(self, image, suites, only=()):
        arch = image.kernel.arch
        env = [f"RAWBPF_KERNEL={image.kernel.name}"]
        timeout = min(self.options.timeout, max(60, self.began + ALL_END_AT - time.monotonic()))
        files = list(self.files(arch, True))
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as names:
            if only:
                names.write("\n".join(only) + "\n")
                names.flush()
                files.append((names.name, "usr/lib/rawbpf/names"))
                env.append("RAWBPF_TESTS=/usr/lib/rawbpf/names")
            r = guest.boot(image, ["/bin/sh", "-c", GUEST_SCRIPT, "guest", *suites], self.init(arch), self.busybox(arch), files=files,
                           modules=MODULES + self.options.module, env=env, memory=self.options.memory, cpus=self.options.cpus, timeout=timeout,
                           append=self.options.append, cpu_limit=CPU_LIMIT * self.options.cpus, instruction_ns=4)
        verdicts = complete(read(r.out), suites)
        if r.status in (124, 125):
            how = f"no end after {r.seconds:.0f} s, {r.cpu:.0f} s of CPU time" if r.status == 124 else "it died"
            found = verdicts[ENDS].detail if ENDS in verdicts else []
            verdicts[ENDS] = Verdict("FAIL", detail=[f"  {how}", *found, *("  " + line for line in r.log.splitlines()[-40:])])
        return verdicts, r

    def bare(self, image):
        """name -> Verdict: nothing in the root but rawbpf and the kernel; then with /proc, which has the names."""
        files = [f for f in self.files(image.kernel.arch, False) if f[1].endswith("/rawbpf")]
        out = {}
        for test, mounts, shape in BARE_TESTS:
            r = guest.boot(image, BARE_COMMAND, self.init(image.kernel.arch), files=files, memory=self.options.memory, timeout=240, bare=True,
                           mounts=mounts, directory="/", instruction_ns=4)
            good = r.status == 0 and re.search(shape, r.out) and b"fired" in r.err
            said = [f"exit {r.status}", *(r.out[-600:] + b"\n" + r.err[-600:]).decode("utf-8", "replace").splitlines()]
            out[test] = Verdict("PASS", seconds=r.seconds) if good else Verdict("FAIL", detail=["  " + line for line in said])
        return out

    def kernel(self, image, only=None):
        """All verdicts of one kernel: a run, and where something failed a second one of that. `only`: the tests that are run; None: all."""
        name = image.kernel.name
        suites = SUITES if only is None else suites_of(only)
        verdicts, seconds, cpu = {}, 0.0, 0.0
        if suites:
            self.log(f"booting {name}: {image.release}" + (f": {len(only)} tests that no other kernel runs" if only else ""))
            verdicts, r = self.boot(image, suites, only or ())
            seconds, cpu = r.seconds, r.cpu
        if name in BARE_KERNELS:
            verdicts.update(self.bare(image))
        failed = [t for t, v in verdicts.items() if v.word == "FAIL"]
        if failed and time.monotonic() - self.began < SECOND_RUNS_UNTIL:
            self.log(f"{name}: once more: {'; '.join(failed)}")
            bare = [t for t in failed if t in [name for name, _, _ in BARE_TESTS]]
            tests = [t for t in failed if t not in bare]
            suites = suites_of(tests)
            tests = [t for t in tests if not t.startswith("cli") and not t.endswith(ENDED)]
            if ENDS in failed:  # unknown what it would have run
                suites, tests = SUITES, only or ()
            again = {}
            if suites:
                again, r = self.boot(image, suites, tests)
                seconds, cpu = seconds + r.seconds, cpu + r.cpu
            if bare:
                again.update(self.bare(image))
            verdicts = merge(verdicts, again)
        return verdicts, seconds, cpu


def run(images, unavailable, options, log, files, init, busybox):
    """Every image's verdicts, two guests at a time; prints each as it ends. name -> verdicts or the reason why there are none.

    A kernel of options.rest comes when the others have ended, and runs only what none of them, nor the machine's own, could run."""
    columns = dict(unavailable)
    for name, reason in unavailable.items():
        print(f"SKIP {name}: {reason}", flush=True)
    runner = Runner(options, log, files, init, busybox)
    lock = threading.Lock()

    def one(image, only=None):
        try:
            verdicts, seconds, cpu = runner.kernel(image, only)
        except kernels.Unavailable as reason:
            verdicts = str(reason)
        with lock:
            name = image.kernel.name
            columns[name] = verdicts
            if isinstance(verdicts, str):
                print(f"SKIP {name}: {verdicts}", flush=True)
                return
            report(name, verdicts)
            counts = [sum(v.word == w for v in verdicts.values()) for w in ("PASS", "FAIL", "SKIP")]
            slow = sorted(verdicts, key=lambda t: -verdicts[t].seconds)[:3]
            log(f"{name}: {image.release}: {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped, {seconds:.1f} s, {cpu:.1f} s of CPU time; "
                f"the longest in it: {'; '.join(f'{t} {verdicts[t].seconds:.1f} s' for t in slow)}")

    rest = [image for image in images if image.kernel.name in options.rest]
    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for future in [pool.submit(one, image) for image in images if image not in rest]:
            future.result()
    for image in rest:
        one(image, [test for test, _ in untested(columns, list(columns), passed_here())])
    return columns


def report(name, verdicts):
    """A kernel's lines for ./dev test."""
    for test, v in verdicts.items():
        if v.word == "FAIL" or v.flaky:
            print("\n".join(v.detail))
        print(f"{'FLAKY' if v.flaky else v.word} {name}: {test}" + (f": {v.text}" if v.text else ""), flush=True)


def tests_of(columns, names):
    """Every test's name, in the order of the first kernel that has it."""
    return list(dict.fromkeys(t for n in names if isinstance(columns.get(n), dict) for t in columns[n]))


def untested(columns, names, here):
    """[(test, a reason)]: skipped by every kernel that ran, and not passed by the machine's own."""
    ran = [columns[n] for n in names if isinstance(columns.get(n), dict)]
    out = []
    for test in tests_of(columns, names):
        seen = [c[test] for c in ran if test in c]
        if test not in here and all(v.word == "SKIP" for v in seen):
            out.append((test, seen[0].text))
    return out


def passed_here():
    """Tests that the machine's own kernel passed, where ./dev test says so. A flaky one's name ends at one of its colons."""
    passed = set()
    try:
        with open(os.environ.get("RAWBPF_HOST_RESULTS", ""), encoding="utf-8") as f:
            for line in f:
                if line.startswith("PASS kernel: "):
                    passed.add(line[len("PASS kernel: "):].strip())
                elif line.startswith("FLAKY kernel: "):
                    parts = line[len("FLAKY kernel: "):].strip().split(": ")
                    passed.update(": ".join(parts[:n]) for n in range(1, len(parts)))
    except OSError:
        pass
    return passed


def table(names, columns, log):
    tests = tests_of(columns, names)
    width = max([len(t) for t in tests] + [10])
    log("")
    log(" " * width + "  " + "  ".join(f"{n:>10}" for n in names))
    reasons = {}
    for test in tests:
        cells = []
        for name in names:
            column = columns.get(name)
            if not isinstance(column, dict):
                cells.append("gone")
            elif test not in column:
                cells.append("-")
            elif column[test].flaky:
                cells.append("flaky")
            elif column[test].word == "SKIP":
                cells.append(f"skip {reasons.setdefault(column[test].text, len(reasons) + 1)}")
            else:
                cells.append({"PASS": "pass"}.get(column[test].word, "FAIL"))
        log(f"{test:<{width}}  " + "  ".join(f"{c:>10}" for c in cells))
    for text, number in reasons.items():
        log(f"  skip {number}: {text}")
    for name in names:
        if not isinstance(columns.get(name), dict):
            log(f"  {name}: {columns.get(name)}")


if __name__ == "__main__":
    sys.exit("this is a part of ./dev vm")
