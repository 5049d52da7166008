"""What two profilers' stacks of one program say of it: for tests/unwind/perf and tests/unwind/guest.

A frame is (file's name, offset in the file, function's name or None); a stack has its leaf first. The profilers can't look at the same
samples, so what is compared is what many samples say:

  roots   how many stacks have one of a thread's first functions among their last frames
  edges   of the calls that perf saw often, how many we saw: a return address and the one above it, as offsets in their files, so it
          doesn't matter what has names. Frames are real ones: perf is asked for no inlined functions, we show none
  names   of the places in perf's stacks to which both give a name, to how many the same
"""
import collections
import json
import os
import re

LEAST_EDGES = 3
NAMES = 95  # percent
FIRST = re.compile(r"(_start|main|_dl_start|_dl_start_user|(__GI_)?__clone3?|clone3?|start_thread|__libc_start_(call_)?main(_impl)?|"
                   r"_dl_relocate_static_pie|thread_start)(@.*)?")


# What `perf record` and `perf script` are asked for.
def perf_record(data, rate, pages=2048):
    return ["perf", "record", "-q", "-B", "-N", "-e", "cpu-clock", "-F", str(rate), "--call-graph", "dwarf,32768", "-m", str(pages), "-o", data]


def perf_script(data):
    return ["perf", "script", "-i", data, "--no-inline", "--max-stack", "1024", "-F", "comm,ip,sym,symoff,dso"]


def of_perf(text):
    """The user stacks of what `perf script` printed, without what shows that perf has lost its way; of samples without one nothing."""
    stacks = []
    for block in text.split("\n\n"):
        stack = []
        for line in block.splitlines()[1:]:
            m = re.fullmatch(r"\s+([0-9a-f]+) (.*) \((.*)\)", line)
            if m and not m[3].startswith(("[kernel", "[guest")) and not int(m[1], 16) >> 63:
                name = re.sub(r"\+0x[0-9a-f]+$", "", m[2])
                stack.append((file_name(m[3]), int(m[1], 16), None if name == "[unknown]" else name))
        if stack := before_astray(stack):
            stacks.append(stack)
    return stacks


def before_astray(stack):
    """A frame in the stack's own memory isn't code, and what is above it was found by it; and where the two outermost frames are one, the
    walk stood still there: nothing called that function. (Perf stops then; of more that are equal, the others are calls.)"""
    end = next((i for i, frame in enumerate(stack) if frame[0] == "[stack]"), len(stack))
    if end > 1 and stack[end - 1][:2] == stack[end - 2][:2]:
        end -= 1
    return stack[:end]


def of_rawbpf(lines):
    """The user stacks of `rawbpf profile --json`, and the ledger: without the samples in which a process gives its memory back. There is no
    stack then, only registers; perf has no user stack of these."""
    rows = [json.loads(line) for line in lines]
    ledger = rows[-1]
    stacks = []
    for row in rows:
        if row["type"] == "sample" and row["user"]:
            if row["user"][0]["symbol"] == "_exit" and row["user_end"] == "unreadable":
                ledger["stack_ends"]["unreadable"] -= 1
            else:
                stacks.append([(file_name(f["module"] or ""), f["file_offset"], f["symbol"]) for f in row["user"]])
    return stacks, ledger


def file_name(path):
    return os.path.basename(path.replace(" (deleted)", ""))


def reaches_root(stack):
    return any(name and FIRST.fullmatch(name) for _, _, name in stack[-4:])


def edges_of(stack):
    """((file, offset), (file, offset)) of return addresses: the leaf's is anywhere in its function, so it isn't a place to compare, and
    neither is one that a signal interrupted."""
    places = [None if i == 0 or returns_from_signal(stack[i - 1]) else frame[:2] for i, frame in enumerate(stack)]
    return {(a, b) for a, b in zip(places, places[1:]) if a and b}


def returns_from_signal(frame):
    return frame[0] == "[vdso]" or frame[2] in ("__restore_rt", "__kernel_rt_sigreturn")


def near(place, by):
    return place[0], place[1] + by


def agreement(perf, ours, at_least, edges_wanted):
    """What is to be said of edges and names, and what of it is wrong. Often is what perf saw in at_least samples; of these we are to
    have seen edges_wanted percent, 0: none."""
    theirs = collections.Counter(edge for stack in perf for edge in edges_of(stack) if all(offset for _, offset in edge))
    mine = {edge for stack in ours for edge in edges_of(stack)}
    often = [edge for edge, n in theirs.items() if n >= at_least]
    # perf shows the byte before a return address, but not before the address that a signal interrupted.
    missing = [edge for edge in often if not any((near(edge[0], i), near(edge[1], j)) in mine for i in (1, 0) for j in (1, 0))]

    names = {(file, offset): name for stack in ours for file, offset, name in stack[1:] if name}
    other = {}
    same = compared = 0
    for file, offset, name in {frame for stack in perf for frame in stack[1:]}:
        our_name = names.get((file, offset + 1))
        if name and our_name:
            compared += 1
            if bare(name) == bare(our_name):
                same += 1
            else:
                other[f"{file}+{offset:#x}"] = (name, our_name)
    found, named = 100 * (1 - len(missing) / max(len(often), 1)), 100 * same / max(compared, 1)
    wrong = []
    if compared >= 20 and named < NAMES:
        wrong.append(f"{NAMES} % of the names were to be the same; not these: {list(other.items())[:5]}")
    if edges_wanted and len(often) < LEAST_EDGES:
        wrong.append(f"only {len(often)} edges of perf's to compare")
    if found < edges_wanted and len(missing) > 1:  # one may be chance, and is much of twenty
        wrong.append(f"{edges_wanted} % of perf's edges were to be there; missing " +
                     ", ".join(f"{a[0]}+{a[1]:#x} <- {b[0]}+{b[1]:#x} ({theirs[a, b]} samples)" for a, b in missing[:5]))
    return f"edges {found:.1f} % of {len(often)}, names {named:.1f} % of {compared}", wrong


def bare(name):
    """perf says nothing of arguments, has versions, and picks another one of a function's several names."""
    name = re.sub(r"@.*|\.(isra|constprop|part|cold|lto_priv)(\.\d+)*|\[clone.*?\]", "", name)
    while (shorter := re.sub(r"\([^()]*\)|<[^<>]*>", "", name)) != name:
        name = shorter
    name = re.sub(r"\s*(const|&&?|volatile)$", "", name.strip())
    name = re.sub(r"^(__GI_|__libc_|_IO_|__new_|_+)+|_impl$", "", name.split(" ")[-1].split("::")[-1])
    return {"cfree": "free"}.get(name, name)
