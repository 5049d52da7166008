"""rawbpf trace --by, --count, --sum, --hist ...: groups of events, added up in the kernel, beside what the traced program counted itself."""
import collections
import csv
import json
import os
import re
import subprocess

from harness import *
from traced import trace_events, traced

GROUPED_PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <unistd.h>
#define FUNCTION extern "C" __attribute__((noinline))
struct Random { unsigned long x = 88172645463325252ul; unsigned long next() { x ^= x << 13; x ^= x >> 7; x ^= x << 17; return x; } };
FUNCTION long seen(const char *who, long n, unsigned long wide) { asm volatile("" : : "r"(who), "r"(n), "r"(wide) : "memory"); return n - 500; }
FUNCTION int small(int n) { asm volatile(""); return n; }
static const char *const kNames[] = {"alpha", "beta", "a name of more than 64 bytes, of which the first 63 are kept: 0123456789", ""};
int main(int argc, char **argv) {
    const bool other_cpu = argc > 2;
    Random random;
    printf("[");
    const int calls = atoi(argv[1]);
    for (int i = 0; i < calls; ++i) {
        const unsigned long r = random.next();
        const char *who = kNames[r % 4];
        const long n = (long)(r >> 8 & 4095) - 1000;
        const unsigned long wide = i % 97 == 0 ? 0 : r >> (r & 63);
        if (other_cpu) { cpu_set_t set; CPU_ZERO(&set); CPU_SET(i & 1, &set); sched_setaffinity(0, sizeof set, &set); }
        const long ret = seen(who, n, wide);
        printf("%s[\"%s\",%ld,%lu,%ld]", i ? "," : "", who, n, wide, ret);
        if (i % 8 == 0) small(-i);
    }
    seen((const char *)1, 7, 7);
    printf("]\n");
}
"""
SIG = "long (const char *who, long n, unsigned long wide)"


def grouped(*args):
    """The program, its calls of seen() as it counted them, and the place to trace."""
    program = path("grouped")
    if not os.path.exists(program):
        traced()  # skips where nothing can be traced
        compile_program("grouped", GROUPED_PROGRAM)
    calls = json.loads(subprocess.run([program, *(args or ("2000",))], capture_output=True, check=True).stdout)
    return program, [(who[:63], n, wide, ret) for who, n, wide, ret in calls] + [(None, 7, 7, -493)], f"uprobe:{program}:seen"


def by_key(rows):
    assert all(r["type"] == "group" for r in rows), rows
    return {tuple(r["by"].values()): r for r in rows}


def events(place, *args, program_args=("2000",), code=0):
    """Of a run whose command writes to a file: groups and ledger."""
    out = path("groups.json")
    r = run("trace", place, "--sig", SIG, "--json", "-q", "-o", out, *args, "--", path("grouped"), *program_args)
    assert r.code == code, r.err[-800:]
    lines = rows("groups.json")
    assert lines[0]["type"] == "header", lines[0]
    return lines[1:-1], ledger_of(lines)


@test
def groups_are_counted_by_an_argument():
    program, calls, place = grouped()
    rows, ledger = events(place, "--by", "who", "--count")
    assert {key[0]: row["count"] for key, row in by_key(rows).items()} == collections.Counter(c[0] for c in calls), rows
    assert ledger["fired"] == ledger["shown"] == len(calls) and ledger["lost"]["map_full"] == 0, ledger
    assert [r["count"] for r in rows] == sorted((r["count"] for r in rows), reverse=True), rows
    assert list(rows[0]) == ["type", "by", "count"], rows[0]


@test
def groups_have_exact_sums_means_and_extremes():
    program, calls, place = grouped()
    for more in ((), ("1",)):  # the second time on two CPUs in turn, each of which has its own numbers
        out, ledger = events(place, "--by", "who", "--count", "--sum", "n", "--avg", "ret", "--min", "n", "--max", "n", "--min", "wide", "--max", "wide",
                             "--sum", "n * 2 + 1", program_args=("2000", *more))
        found = by_key(out)
        for who in {c[0] for c in calls}:
            own = [c for c in calls if c[0] == who]
            row = found[(who,)]
            ns = [c[1] for c in own]
            assert row["count"] == len(own) and row["sum"] == {"n": sum(ns), "n * 2 + 1": sum(2 * n + 1 for n in ns)}, (row, who)
            assert abs(row["avg"]["ret"] - sum(c[3] for c in own) / len(own)) < 0.001, row
            wide = [c[2] for c in own]
            assert row["min"] == {"n": min(ns), "wide": number(min(wide))} and row["max"] == {"n": max(ns), "wide": number(max(wide))}, (row, max(wide))
        assert ledger["fired"] == ledger["shown"] == len(calls), ledger


def number(n):
    return n if abs(n) <= 2 ** 53 else str(n)


def log2_buckets(values):
    counts = collections.Counter(-1 if v < 0 else v.bit_length() for v in values)
    return [{"least": None if b < 0 else number(0 if b == 0 else 1 << (b - 1)), "most": number(-1 if b < 0 else (1 << b) - 1), "count": counts[b]}
            for b in sorted(counts)]


@test
def groups_have_exact_histograms():
    program, calls, place = grouped()
    (row,), _ = events(place, "--hist", "n", "--hist", "wide", "--lhist", "ret,-1000,1200,100", "--lhist", "n,0,1000,300")
    assert row["by"] == {} and row["count"] == len(calls), row
    assert row["hist"]["n"] == log2_buckets([c[1] for c in calls]), row["hist"]["n"]
    assert row["hist"]["wide"] == log2_buckets([c[2] for c in calls]), row["hist"]["wide"]
    for name, (low, high, step), values in (("ret", (-1000, 1200, 100), [c[3] for c in calls]), ("n", (0, 1000, 300), [c[1] for c in calls])):
        counts = collections.Counter("<" if v < low else ">" if v >= high else (v - low) // step for v in values)
        wanted = [{"least": None, "most": low - 1, "count": counts["<"]}] if counts["<"] else []
        wanted += [{"least": low + step * b, "most": min(high, low + step * (b + 1)) - 1, "count": counts[b]} for b in range(99) if counts[b]]
        wanted += [{"least": high, "most": None, "count": counts[">"]}] if counts[">"] else []
        assert row["lhist"][name] == wanted, (name, row["lhist"][name], wanted)


@test
def groups_by_several_keys_filtered_and_sampled():
    program, calls, place = grouped()
    out, ledger = events(place, "--by", "who,n / 1000,comm", "--count", "--filter", "n >= 0")
    wanted = collections.Counter((c[0], c[1] // 1000, "grouped") for c in calls if c[1] >= 0)
    assert {key: row["count"] for key, row in by_key(out).items()} == wanted, out
    assert list(out[0]["by"]) == ["who", "n / 1000", "comm"], out[0]
    assert ledger["filtered"] == sum(c[1] < 0 for c in calls) and ledger["shown"] == sum(wanted.values()), ledger
    out, ledger = events(place, "--by", "who", "--count", "--sample", "10")
    assert sum(r["count"] for r in out) == ledger["shown"], ledger  # each CPU counts by itself
    assert abs(ledger["shown"] - len(calls) / 10) < os.cpu_count() + 1 and ledger["sampled_out"] == len(calls) - ledger["shown"], ledger


@test
def groups_of_several_functions():
    program, calls, place = grouped()
    out = path("groups.json")
    good("trace", place, f"uprobe:{program}:small", "--sig", "int", "--by", "function", "--count", "--json", "-q", "-o", out, "--", program, "2000")
    assert {r["by"]["function"]: r["count"] for r in rows("groups.json") if r["type"] == "group"} == {"seen": len(calls), "small": 250}
    good("trace", f"uprobe:{program}:small", "--sig", "int (int n)", "--min", "n", "--max", "n", "--hist", "ret", "--json", "-q", "-o", out, "--", program, "2000")
    (row,) = [r for r in rows("groups.json") if r["type"] == "group"]
    assert (row["min"]["n"], row["max"]["n"]) == (-1992, 0), row  # of an int, which leaves half of the register alone
    assert row["hist"]["ret"] == [{"least": None, "most": -1, "count": 249}, {"least": 0, "most": 0, "count": 1}], row


@test
def groups_without_room_are_lost_and_counted():
    program, calls, place = grouped()
    out, ledger = events(place, "--by", "n", "--count", "--keys", "10")
    assert len(out) == 10 and ledger["lost"]["map_full"] == len(calls) - sum(r["count"] for r in out) > 0, ledger
    wanted = collections.Counter(c[1] for c in calls)
    assert all(row["count"] == wanted[n] for (n,), row in by_key(out).items()), out
    r = good("trace", place, "--sig", SIG, "--by", "n", "--count", "--keys", "10", "--", program, "2000")
    assert re.search(r"there was room for 10 groups, and 1,9\d\d events belonged to others: --keys N makes more room\n", r.err), r.err


@test
def groups_show_the_largest():
    program, calls, place = grouped()
    out, _ = events(place, "--by", "who", "--sum", "n", "--top", "2")
    sums = collections.Counter()
    for who, n, _, _ in calls:
        sums[who] += n
    assert [(r["by"]["who"], r["sum"]["n"]) for r in out[:2]] == sums.most_common(2), out
    assert out[2:] == [{"type": "more_groups", "groups": len(sums) - 2, "count": sum(c[0] not in [w for w, _ in sums.most_common(2)] for c in calls)}], out


@test
def groups_as_text_csv_and_prometheus():
    program, calls, place = grouped()
    common = ("trace", place, "--sig", SIG, "-q")
    out = path("groups.txt")
    good(*common, "--by", "who", "--count", "--max", "n", "-o", out, "--", program, "2000")
    lines = read("groups.txt").splitlines()
    assert re.fullmatch(r"who +count +max\(n\)", lines[0]), lines
    count = collections.Counter(c[0] for c in calls)
    assert re.fullmatch(rf"alpha +{count['alpha']} +[\d,]+", next(line for line in lines if line.startswith("alpha"))), lines
    assert re.fullmatch(r"\? +1 +7", lines[-1]), lines
    good(*common, "--hist", "n", "-o", out, "--", program, "2000")
    wanted = log2_buckets([c[1] for c in calls])
    text = read("groups.txt")
    assert text.startswith(f"{len(calls):,} events\n  hist(n)\n") and re.search(rf"\n  \[8, 16\) +{next(b['count'] for b in wanted if b['least'] == 8)} \|#+ *\|\n", text), (text, wanted)
    assert re.search(rf"\n  \(\.\.\., 0\) +{wanted[0]['count']} \|", text) and re.search(r"\n  \[1K, 2K\) +\d+ \|", text), text
    good(*common, "--by", "who", "--count", "--sum", "n", "-f", "csv", "-o", out, "--", program, "2000")
    with open(out, newline="", encoding="utf-8") as f:
        table = list(csv.reader(f))
    assert table[0] == ["who", "count", "sum(n)"], table[0]
    sums = collections.Counter()
    for who, n, _, _ in calls:
        sums[who or ""] += n
    both = collections.Counter()
    for who, n, total in table[1:]:
        both[who] += int(total)
    assert both == sums and sum(int(line[1]) for line in table[1:]) == len(calls), table
    good(*common, "--by", "who", "--lhist", "n,0,1000,500", "-f", "prometheus", "-o", out, "--", program, "2000")
    text = read("groups.txt")
    alpha = [c[1] for c in calls if c[0] == "alpha"]
    for most in (-1, 499, 999):
        assert f'rawbpf_group_n_lhist_bucket{{who="alpha",le="{most}"}} {sum(n <= most for n in alpha)}\n' in text, (most, text)
    assert f'rawbpf_group_n_lhist_bucket{{who="alpha",le="+Inf"}} {len(alpha)}\n' in text and f'rawbpf_group_events_total{{who="alpha"}} {len(alpha)}\n' in text
    assert text.count("# TYPE ") == 2, text


@test
def groups_of_intervals_add_up():
    program = traced()
    out = path("groups.json")
    r = good("trace", f"uprobe:{program}:leaf", "--sig", "long", "--by", "arg0", "--count", "--sum", "arg0", "--every", "100ms", "--json", "-o", out, "-d", "1", "--",
             program, "forever")
    lines = rows("groups.json")
    ledger = ledger_of(lines)
    groups = [g for g in lines if g["type"] == "group"]
    assert len(groups) >= 2 and all(list(g) == ["type", "time", "t_ns", "interval", "by", "count", "sum"] for g in groups), groups
    assert sum(g["count"] for g in groups) == sum(g["sum"]["arg0"] for g in groups) == ledger["shown"] > 0, (groups, ledger)
    assert [g["interval"] for g in groups] == sorted({g["interval"] for g in groups}), groups


@test
def groups_of_system_calls_and_tracepoints():
    program, calls, place = grouped()
    rows_, ledger = trace_events("syscall:getppid", "--by", "comm,function,ret", "--count", "--hist", "duration", "--", "python3", "-c",
                                 "import os; [os.getppid() for _ in range(50)]")
    assert ledger["shown"] == sum(row["count"] for row in rows_) and ledger["lost"]["map_full"] == 0, ledger
    row = max(rows_, key=lambda row: row["count"])
    assert list(row["by"]) == ["comm", "function", "ret"] and row["by"]["function"] == "getppid" and row["by"]["ret"] > 0, row
    assert row["count"] >= 50 and row["count"] == sum(b["count"] for b in row["hist"]["duration"]), row
    r = run("trace", "tracepoint:sched:sched_process_exec", "--by", "filename", "--count", "--json", "-q", "--", "sh", "-c", "/bin/true; /bin/true")
    if r.code != 3:
        found = {g["by"]["filename"]: g["count"] for g in map(json.loads, r.out.splitlines()) if g["type"] == "group"}
        assert found.get("/bin/true") == 2, (found, r.err)


@test
def groups_say_what_is_wrong():
    program, calls, place = grouped()
    common = ("trace", place, "--sig", SIG)
    rest = ("--", program, "1")
    bad(1, r"--by: uprobe:.*:seen has no pidd\n  pidd\n  \^\nhint: did you mean pid.*\? known are who, n, wide, arg0 to arg5, ret, duration, comm, pid, tid, uid, gid, cpu\n",
        *common, "--by", "pidd", "--count", *rest)
    bad(1, r"--sum: uprobe:.*:seen has no widf\n  n \+ widf\n      \^\nhint: did you mean wide", *common, "--sum", "n + widf", *rest)
    bad(2, r"--by says what events are told apart by, and not what is wanted of them\nhint: add --count, --sum X,", *common, "--by", "who", *rest)
    bad(1, r"--sum: who is a text, not a number\n  who\n  \^\nhint: texts are keys: --by who --count\n", *common, "--sum", "who", *rest)
    bad(1, r"--hist: comm is a text, not a number\n", *common, "--hist", "comm", *rest)
    bad(1, r"--max: a text isn't a number\n", *common, "--max", '"abc"', *rest)
    bad(2, r"--lhist: `n` doesn't say which buckets\nhint: X,FROM,TO,STEP: --lhist ret,0,1000,100\n", *common, "--lhist", "n", *rest)
    bad(2, r"--lhist: the buckets begin at 10 and end at 0\n", *common, "--lhist", "n,10,0,1", *rest)
    bad(2, r"--lhist: a bucket is at least 1 wide, not 0\n", *common, "--lhist", "n,0,10,0", *rest)
    bad(2, r"--lhist: 10000 buckets from 0 to 10000 are too many: 1000 at most\n", *common, "--lhist", "n,0,10000,1", *rest)
    bad(2, r"--lhist: where the buckets end is a number\n  x\n  \^\n", *common, "--lhist", "n,0,x,1", *rest)
    bad(2, r"--by: `who,,n` has an empty key\n", *common, "--by", "who,,n", "--count", *rest)
    bad(2, r"--by: `who` is there twice\n", *common, "--by", "who,who", "--count", *rest)
    bad(2, r"--by: a value is expected, not `\*`\n  \*\n  \^\n", *common, "--by", "*", "--count", *rest)
    bad(2, r"--stack is about single events, and groups have none\n", *common, "--by", "who", "--count", "--stack", *rest)
    bad(2, r"-f folded doesn't show groups of events\nhint: text, json, csv and prometheus do\n", *common, "--by", "who", "--count", "-f", "folded", *rest)
    bad(2, r"-f csv shows groups of events, and there are none\nhint: --by KEYS --count\n", *common, "-f", "csv", *rest)
    for option, value in (("--top", "3"), ("--every", "1s"), ("--keys", "5")):
        bad(2, rf"{option} is about groups of events, and there are none\n", *common, option, value, *rest)
    bad(2, r"--keys without --by: there is one group\n", *common, "--sum", "n", "--keys", "5", *rest)
    bad(1, r"--by: the keys have 240 bytes together, and there is room for 192\nhint: a text takes 112: --string BYTES makes it shorter\n",
        *common, "--by", "who,arg0,comm", "--count", "--string", "112", *rest)
    bad(1, r"points in time: they have no results and no durations\n  duration\n  \^\nhint: syscall:NAME has both ends", "trace",
        "tracepoint:sched:sched_process_exec", "--hist", "duration", *rest)


STACKS_PROGRAM = r"""
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>
#define FUNCTION extern "C" __attribute__((noinline))
FUNCTION long leaf(long n) { asm volatile("" : "+r"(n)); return n; }
FUNCTION void left(long n) { leaf(n); asm volatile(""); }
FUNCTION void right(long n) { leaf(-n); asm volatile(""); }
FUNCTION void deeper(long n) { right(n); asm volatile(""); }
int main(int, char **argv) {
    for (int child = 0; child < 2; ++child) // the same stacks in processes of their own
        if (fork() == 0) {
            for (long i = 0; i < atol(argv[1]); ++i) {
                left(i);
                if (i % 2 == 0) right(i);
                if (i % 4 == 0) deeper(i);
                if (i % 10 == 0) getppid();
            }
            _exit(0);
        }
    while (wait(nullptr) > 0) {}
}
"""


def stacks_program():
    traced()  # skips where nothing can be traced
    return compile_program("by_stack", STACKS_PROGRAM)


def needs_stacks(r):
    if "stacks can't be told apart" in r.err:  # before 5.17
        raise Skip(r.err.strip().splitlines()[0])


def names_of(stack):
    return [frame["symbol"] for frame in stack["user"] if frame["symbol"]]


@test
def groups_are_told_apart_by_stacks():
    program = stacks_program()
    out = path("stacks.json")
    r = run("trace", f"uprobe:{program}:leaf", "--sig", "long (long n)", "--by", "stack", "--count", "--sum", "n", "--min", "n", "--max", "n", "--hist", "n", "--json", "-q",
            "-o", out, "--", program, "2000")
    needs_stacks(r)
    assert r.code == 0, r.err
    lines = rows("stacks.json")
    groups, ledger = lines[1:-1], ledger_of(lines)
    found = {tuple(names_of(row["by"]["stack"])[:3]): row for row in groups}
    wanted = {("leaf", "left", "main"): [n for n in range(2000)], ("leaf", "right", "main"): [-n for n in range(0, 2000, 2)],
              ("leaf", "right", "deeper"): [-n for n in range(0, 2000, 4)]}
    assert set(found) == set(wanted) and len(groups) == 3, [(names_of(row["by"]["stack"]), row["count"]) for row in groups]
    for stack, numbers in wanted.items():
        row = found[stack]
        assert row["count"] == 2 * len(numbers) and row["sum"]["n"] == 2 * sum(numbers), (stack, row)
        assert (row["min"]["n"], row["max"]["n"]) == (min(numbers), max(numbers)), (stack, row)
        assert sum(bucket["count"] for bucket in row["hist"]["n"]) == row["count"], row
    assert ledger["fired"] == ledger["shown"] == 7000, ledger


@test
def groups_by_stacks_of_system_calls():
    program = stacks_program()
    out = path("calls.json")
    r = run("trace", "syscall:getppid", "--by", "comm,stack", "--count", "--hist", "duration", "--json", "-q", "-o", out, "--", program, "1000")
    needs_stacks(r)
    assert r.code == 0, r.err
    groups = [row for row in rows("calls.json")[1:-1] if row["by"]["comm"] == "by_stack"]  # before its exec it is rawbpf
    assert [row["count"] for row in groups] == [200], groups
    assert "main" in names_of(groups[0]["by"]["stack"]), groups


@test
def groups_by_stacks_in_each_format():
    program = stacks_program()
    common = ("trace", f"uprobe:{program}:leaf", "--sig", "long (long n)", "--by", "stack", "--count", "-q")
    out = path("stacks.out")
    r = run(*common, "-o", out, "--", program, "200")
    needs_stacks(r)
    text = open(out, encoding="utf-8").read()
    blocks = text.strip().split("\n\n")
    assert [block.splitlines()[0] for block in blocks] == ["400 events", "200 events", "100 events"], text
    assert re.search(r"^ +[0-9a-f]+  leaf.*\n +[0-9a-f]+  right\+0x.*\n +[0-9a-f]+  deeper\+0x", blocks[2], re.M), text
    good(*common, "-f", "csv", "-o", out, "--", program, "200")
    lines = list(csv.reader(open(out, encoding="utf-8", newline="")))
    assert lines[0] == ["stack", "count"] and [line[1] for line in lines[1:]] == ["400", "200", "100"], lines
    assert lines[3][0].endswith("main;deeper;right;leaf"), lines
    good(*common, "-f", "prometheus", "-o", out, "--", program, "200")
    text = open(out, encoding="utf-8").read()
    assert re.search(r'^rawbpf_group_events_total\{stack="[^"]*main;left;leaf"\} 400$', text, re.M), text
    good(*common, "--top", "1", "--json", "-o", out, "--", program, "200")
    assert [row["count"] for row in rows("stacks.out") if row["type"] == "group"] == [400]
    good(*common, "--every", "50ms", "--json", "-o", out, "--", program, "200")
    assert sum(row["count"] for row in rows("stacks.out") if row["type"] == "group") == 700
