"""What suites share that run a script in an arm64 guest: its parts, each behind a line `== NAME`, and the lines that a suite prints."""
import collections
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
counts = collections.Counter()


def result(kind, name, why=""):
    """A line of a test: PASS, FAIL, SKIP or FLAKY."""
    counts[kind] += 1
    print(f"{kind} {name}{': ' + why if why else ''}", flush=True)


def end():
    """The last line, and the suite's status."""
    print(f"{counts['PASS'] + counts['FLAKY']} passed, {counts['FAIL']} failed, {counts['SKIP']} skipped")
    sys.exit(1 if counts["FAIL"] else 0)


def run_parts(build, kernel, files, *command, options=()):
    """COMMAND in the guest with the static rawbpf of `build`. `files`: HOST:GUEST each. What it printed, by the parts' names, and the run."""
    ran = subprocess.run(
        [os.path.join(HERE, "run"), *options, *(word for file in files for word in ("--file", file)), kernel, "--", *command],
        env={**os.environ, "RAWBPF_DIST_arm64": build}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
        errors="replace", check=False)
    return dict(part.partition("\n")[::2] for part in re.split(r"^== ", ran.stdout, flags=re.M)[1:]), ran
