"""The user stacks of a profiled command, and how they ended."""
from harness import *


def stacks(args, comms, *options, rate="499"):
    """The user stacks of a command's samples, of threads with one of these names, leaf first, each with how it ended."""
    if not has_json():
        raise Skip("this build writes no JSON")
    good("profile", "-F", rate, "--json", "-q", "-o", path("stacks"), *options, "--", *args, cwd=WORK)  # node leaves a file
    samples = [r for r in rows("stacks") if r["type"] == "sample" and r["comm"] in comms.split() and r.get("user_end")]
    assert len(samples) >= 20, f"{len(samples)} samples of {comms}"
    return [(stack_names(sample), sample["user_end"]) for sample in samples]


def since_learnt(found, has_it):
    """From the first whole stack on whose functions' names has_it() takes for what rawbpf learns while the program runs: how soon it knows that is
    the machine's matter."""
    first = next((i for i, (names, end) in enumerate(found) if end == "root" and has_it(names)), len(found))
    assert len(found) - first >= 20, f"of {len(found)} stacks {len(found) - first} came when it was learnt"
    return found[first:]


def share(found, end="root"):
    return sum(e == end for _, e in found) / len(found)


def endings(found):
    return {e: sum(other == e for _, other in found) for e in {e for _, e in found}}
