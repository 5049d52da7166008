#!/usr/bin/env python3
"""What must not compile: run.py CASES.txt COMPILER [FLAG...], with the compiler and the flags of the build.

For each case the compiler must refuse `wrong`, and its first error must contain the text of `says` and the place of the wrong
line; all the `right` ones together must compile. Status 1 and the compiler's words when a case is otherwise.
"""
import concurrent.futures
import os
import re
import subprocess
import sys

HEAD = '#include "asm/builder.h"\n#include "asm/constant.h"\nusing namespace rawbpf;\n'
BODY = """[[maybe_unused]] static void f{number}([[maybe_unused]] Builder &b, [[maybe_unused]] Code &f,
    [[maybe_unused]] MapRef map, [[maybe_unused]] int n) {{
#line {line} "cases.txt"
{code}
}}
"""


def read_cases(path):
    cases = []
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        if line.startswith("## "):
            cases.append({"title": line[3:]})
        elif (field := re.match(r"(right|wrong|says):\s+(.+)$", line)) and cases:
            cases[-1][field[1]] = (number, field[2])
        elif line and not line.startswith("# "):
            sys.exit(f"{path}:{number}: what is this? {line}")
    for case in cases:
        if set(case) != {"title", "right", "wrong", "says"}:
            sys.exit(f"{path}: `{case['title']}` needs right, wrong and says")
    return cases


def main():
    path, compiler = sys.argv[1], sys.argv[2:]
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../../.."))
    command = compiler + ["-I", root, "-fsyntax-only", "-fdiagnostics-color=never", "-x", "c++", "-"]
    environment = dict(os.environ, LC_ALL="C")  # gcc quotes and translates by the locale

    def compiled(source):
        done = subprocess.run(command, input=source, text=True, capture_output=True, env=environment)
        return done.returncode == 0, done.stderr

    def function(number, place):
        return BODY.format(number=number, line=place[0], code=place[1])

    cases = read_cases(path)
    if not cases:
        sys.exit(f"{path}: no cases")
    failures = []
    good, words = compiled(HEAD + "".join(function(n, case["right"]) for n, case in enumerate(cases)))
    if not good:
        failures.append("a right one doesn't compile:\n" + words)

    def check(case):
        accepted, words = compiled(HEAD + function(0, case["wrong"]))
        place = f"cases.txt:{case['wrong'][0]}:"
        if accepted:
            return f"{place} compiles: {case['wrong'][1]}"
        errors = re.split(r"(?=\berror:)", words)
        first = "".join(errors[:2])
        if case["says"][1] not in first or place not in first:
            return f"{place} expected in the first error: {case['says'][1]}\n{words}"
        return None

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failures += [failure for failure in pool.map(check, cases) if failure]
    for failure in failures:
        print(failure)
    print(f"{len(cases)} cases, {len(failures)} failed")
    return 1 if failures else 0


sys.exit(main())
