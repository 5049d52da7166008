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


def assert_shares(counts, least=0.5):
    """3 parts /a, 1 part /b, 1 part without: what has a label is in its function, and but for the first moments all has it. Those take as long
    as rawbpf needs for a look at the process, which waits for a processor as everybody does; that labels stay, assert_stay() says."""
    a, b = counts.get(("/a", "work_a"), 0), counts.get(("/b", "work_b"), 0)
    wrong = {k: n for k, n in counts.items() if k[1] and k[0] and (k[0], k[1]) not in (("/a", "work_a"), ("/b", "work_b"))}
    assert not wrong, counts
    early = counts.get(("", "work_a"), 0) + counts.get(("", "work_b"), 0)
    assert a + b > 60 and a + b >= least * (a + b + early), counts
    # A binomial's five standard deviations, and what the clock does with work in slices of 2 and 6 ms.
    n = sum(count for (_, kind), count in counts.items() if kind)
    for its, share in (("work_a", 0.6), ("work_b", 0.2), ("work_none", 0.2)):
        part = sum(count for (_, kind), count in counts.items() if kind == its)
        assert abs(part / n - share) < 5 * (share * (1 - share) / n) ** 0.5 + 0.03, (counts, its)


def assert_stay(samples, key="http_route", kinds=("work_a", "work_b")):
    """Of a process's samples: since the first that has a label, each in such a function has one."""
    own = sorted((o for o in samples if set(kinds) & set(stack_names(o))), key=lambda o: o["t_ns"])
    first = next(i for i, o in enumerate(own) if key in o.get("labels", {}))
    without = [o for o in own[first:] if key not in o.get("labels", {})]
    # What another thread of the process did in the moment of the change; a stack that is cut may have no more than the function.
    assert len(without) <= 2 and len(own) - first > 60, (len(without), first, len(own), without[:2])


def label_runs(samples, keys):
    """Of samples in their order: the labels, each as often as it changes, and how many had it."""
    runs = []
    for o in sorted(samples, key=lambda o: o["t_ns"]):
        labels = tuple(o.get("labels", {}).get(key) for key in keys)
        if not runs or runs[-1][0] != labels:
            runs.append([labels, []])
        runs[-1][1].append(o)
    return runs


def assert_waits(samples, lengths_ns):
    """Of a thread that sleeps with one label after the other: since it is known, each wait has its own label, and most last as long as that at
    least; one in whose beginning others had the processor is shorter."""
    slept = sorted((o for o in samples if any("nanosleep" in (f["symbol"] or "") for f in o["kernel"])), key=lambda o: o["t_ns"])
    routes = [o.get("labels", {}).get("http_route") for o in slept]
    first = next(i for i, route in enumerate(routes) if route)
    assert len(slept) - first > 20 and first < len(slept) / 2, (first, len(slept), samples[:2])
    assert set(routes[first:]) == set(lengths_ns), routes
    since = list(zip(slept, routes))[first:]
    for route, length in lengths_ns.items():
        lasted = sorted(o["weight"] for o, its in since if its == route)
        assert lasted[len(lasted) // 2] > 0.9 * length, (route, lasted)
    for (before, its), (after, next_) in zip(since, since[1:]):
        # The kernel tells nobody of one switch in a thousand: the wait that is missing has its time.
        assert its != next_ or after["t_ns"] - before["t_ns"] - before["weight"] > 0.8 * (sum(lengths_ns.values()) - lengths_ns[its]), (before, after)


def doctor_row(pid, kind):
    """The one line of `doctor --json -p` that tells of it."""
    (row,) = [json.loads(line) for line in good("doctor", "--json", "-p", str(pid)).out.splitlines() if f'"{kind}"' in line]
    return row
