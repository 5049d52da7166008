"""Programs whose functions, arguments and labels agree, and what `--label` says of them."""
from harness import *

OTEL = os.path.join(HERE, "otel")
CC = os.environ.get("CC", "cc").split()[0]


def compiled(name, *words):
    """A program or a library in C, of the files in otel/, once a run."""
    if not os.path.exists(path(name)):
        sources = [os.path.join(OTEL, w) if w.endswith(".c") else w for w in words]
        subprocess.run([CC, "-O1", "-g", "-fno-omit-frame-pointer", "-pthread", *sources, "-o", path(name), "-ldl"], check=True)
    return path(name)


def writer():
    """The variable is the program's own."""
    return compiled("otel-writer", "writer.c", "variable.c", "-Wl,--export-dynamic")


def caller():
    """The same with a USDT probe."""
    return compiled("otel-caller", "-DPROBES", "-I", os.path.join(HERE, "../../programs/include"), "writer.c", "variable.c", "-Wl,--export-dynamic")


def profiled(command, *options):
    """A run of `profile` with labels."""
    r = run("profile", *options, "--", *command)
    if r.code == 3:
        raise Skip(r.err.strip().splitlines()[-1])
    assert r.code == 0, r.err
    return r


def by_label(name, key, kinds=("work_a", "work_b", "work_none")):
    """Counts of folded stacks by the label's value ("" without) and by which function they are in."""
    out = {}
    for line in read(name).splitlines():
        stack, n = line.rsplit(" ", 1)
        frames = stack.split(";")
        label = next((f.split("=", 1)[1] for f in frames if f.startswith(key + "=")), "")
        kind = next((k for k in kinds if k in frames), "")
        out[label, kind] = out.get((label, kind), 0) + int(n)
    return out


def assert_shares(counts, least=0.8):
    """3 parts /a, 1 part /b, 1 part without: what has a label is in its function, and but for the first moments all has it."""
    a, b, none = counts.get(("/a", "work_a"), 0), counts.get(("/b", "work_b"), 0), counts.get(("", "work_none"), 0)
    wrong = {k: n for k, n in counts.items() if k[1] and k[0] and (k[0], k[1]) not in (("/a", "work_a"), ("/b", "work_b"))}
    assert not wrong, counts
    early = counts.get(("", "work_a"), 0) + counts.get(("", "work_b"), 0)
    assert a + b > 60 and a + b >= least * (a + b + early), counts
    # A binomial's five standard deviations, and what the clock does with work in slices of 2 and 6 ms.
    n = a + b + none
    for part, share in ((a, 0.6), (b, 0.2), (none, 0.2)):
        assert abs(part / n - share) < 5 * (share * (1 - share) / n) ** 0.5 + 0.03, (counts, share)


def doctor_row(pid, kind):
    """The one line of `doctor --json -p` that tells of it."""
    (row,) = [json.loads(line) for line in good("doctor", "--json", "-p", str(pid)).out.splitlines() if f'"{kind}"' in line]
    return row
