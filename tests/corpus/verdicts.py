#!/usr/bin/env python3
"""What our verifier says of programs beside what the kernel says of them.

    verdicts.py --tool build-test/tests/verdicts [--seconds N] [--jobs N] [--table FILE] [--kept FILE] OBJECT|FOLDER...

Each object is given to the tool (tests/kernel/verdicts.cpp) in a process of its own, which asks both for every program. Printed:

    programs        all, and those that the kernel decided: it accepted them, or refused them for its own safety. Refusals by
                    policy, for privileges or for what this kernel lacks count for nobody
    decided         of these, the share that ours decided
    alike           of those decided, the share with the kernel's verdict
    wrongly         accepted by ours and refused by the kernel: must be none
    same place      of those that both refuse, the share where both name the same instruction
    annotated       the kernel's own tests say what their verifier has to say (__success, __failure, __msg): the share of those that
                    ours decided which agree, and the share of the refused whose message is ours

then a table of what isn't decided, by how often. Each program that differs is a line of its own; --kept writes all lines to a file.
The verdict that ours accepts what the kernel refuses is the only failure (status 1).
"""
import argparse
import collections
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FIELDS = "path name section kernel kernel_insn kernel_reason ours our_insn our_reason expected messages".split()
Program = collections.namedtuple("Program", FIELDS)


def ask(tool, path, seconds):
    try:
        done = subprocess.run([tool, "--lines", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds)
        text, end = done.stdout, "" if done.returncode == 0 else f"ended with status {done.returncode}: {done.stderr[-200:]!r}"
    except subprocess.TimeoutExpired as late:
        text, end = late.stdout or b"", f"took more than {seconds} s"
    lines = [line.split("\t") for line in text.decode(errors="replace").splitlines()]
    found = [Program(*line) for line in lines if len(line) == len(FIELDS)]
    return path, [p._replace(kernel="-") if any(m in p.kernel_reason for m in MISSING) else p for p in found], end


# What the kernel says where something isn't there: no verdict on the program.
MISSING = ("failed to find the address for kernel symbol",)


def share(part, whole):
    return f"{100 * part / whole:6.2f} % ({part} of {whole})" if whole else "     -"


def general(reason):
    """A reason without the names and numbers of one program."""
    return re.sub(r"\bbpf_[a-z0-9_]+|\d+", lambda m: m[0] if m[0].startswith("bpf_") else "N", reason)


def has_message(program):
    """Whether the expected messages, in the words of the kernel's test, are in ours: those that name a refusal, not a state."""
    text = program.our_reason
    for message in program.messages.split("|"):
        plain = re.sub(r"\{\{(.*?)\}\}", r"\1", message)
        if message in text or re.search(re.escape(message).replace(r"\{\{", "").replace(r"\}\}", ""), text):
            return True
        try:
            if re.search(plain, text):
                return True
        except re.error:
            pass
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=40, help="lines of each table")
    parser.add_argument("--kept", help="a file for every program's line")
    parser.add_argument("objects", nargs="+")
    args = parser.parse_args()
    paths = []
    for given in args.objects:
        paths += sorted(str(p) for p in Path(given).glob("*.o")) if Path(given).is_dir() else [given]
    programs, ended = [], []
    with ThreadPoolExecutor(args.jobs) as pool:
        for path, found, end in pool.map(lambda p: ask(args.tool, p, args.seconds), paths):
            programs += found
            if end:
                ended.append((path, end))
    if args.kept:
        Path(args.kept).write_text("".join("\t".join(p) + "\n" for p in programs))
    known = [p for p in programs if p.kernel != "-"]
    decided = [p for p in known if p.ours != "-"]
    alike = [p for p in decided if p.ours == p.kernel]
    wrongly = [p for p in decided if p.ours == "accepts" and p.kernel == "refuses"]
    both = [p for p in alike if p.kernel == "refuses"]
    placed = [p for p in both if p.kernel_insn != "-1"]
    annotated = [p for p in programs if p.expected and p.ours != "-"]
    agree = [p for p in annotated if (p.expected == "success") == (p.ours == "accepts")]
    worded = [p for p in agree if p.expected == "failure" and p.messages]
    print(f"objects     {len(paths)}\nprograms    {len(programs)}, of which the kernel decided {len(known)}")
    print(f"decided     {share(len(decided), len(known))}\nalike       {share(len(alike), len(decided))}")
    print(f"wrongly     {len(wrongly)} accepted")
    print(f"same place  {share(sum(p.kernel_insn == p.our_insn for p in placed), len(placed))}")
    print(f"annotated   {share(len(agree), len(annotated))}, of {sum(bool(p.expected) for p in programs)} in all; "
          f"message {share(sum(has_message(p) for p in worded), len(worded))}")
    reasons = collections.Counter(general(p.our_reason) for p in known if p.ours == "-")
    print("\nnot decided:")
    for reason, count in reasons.most_common(args.most):
        print(f"{count:6}  {reason}")
    print("\ndifferent:")
    for p in [p for p in decided if p.ours != p.kernel]:
        print(f"{'WRONG' if p in wrongly else 'differs'} {Path(p.path).name}:{p.name} ({p.section}): the kernel {p.kernel} "
              f"({p.kernel_insn}: {p.kernel_reason}), ours {p.ours} ({p.our_insn}: {p.our_reason})")
    for path, end in ended:
        print(f"ended {path}: {end}")
    return 1 if wrongly else 0


if __name__ == "__main__":
    sys.exit(main())
