"""What the benchmarks in Python share: rows as bench.h prints them, waits that end, the short form.

RAWBPF_BENCH_SHORT (tests/bench/run --short, the gate) asks for one round of little work: that a benchmark still runs and still measures
what it says is tested there, how fast anything is isn't.
"""
import os
import select
import signal
import statistics
import subprocess
import sys

SHORT = bool(os.environ.get("RAWBPF_BENCH_SHORT"))


def rounds(full):
    return 1 if SHORT else full


def amount(full, least=1):
    """How much work a round does."""
    return max(least, full // 20) if SHORT else full


def row(name, ours, peer, ratio, mark, ok):
    print("\t".join((name, ours, peer, ratio, mark, ok)), flush=True)


def shown(values, unit):
    spread = f" ({min(values):.4g}..{max(values):.4g})" if len(values) > 1 else ""
    return f"{statistics.median(values):.4g} {unit}{spread}"


def verdict(good):
    return "ok" if good else "MISSED"


def skipped(name, why):
    row(name, "-", "-", "-", why, "skipped")


def failed(name, why):
    row(name, "-", "-", "-", why.replace("\t", " ").replace("\n", "; ")[-200:], "FAILED")


def stop(child, seconds=10):
    """Ends a tracer as a user does, and by force where it doesn't hear: bpftrace can miss an interrupt."""
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


def read_within(fd, size, seconds, what):
    """read(2), of what is there or comes in so many seconds; b"" at the end."""
    if not select.select([fd], [], [], seconds)[0]:
        raise RuntimeError(f"{what}: nothing for {seconds} s")
    return os.read(fd, size)


def run_parts(parts, about, rawbpf):
    """The parts that the command line names (without names: all), each on its own: what goes wrong in one is its row."""
    known = {name[5:]: part for name, part in parts.items() if name.startswith("part_")}
    for name in sys.argv[2:] or known:
        if not os.access(rawbpf, os.X_OK):
            skipped(f"{about}: {name}", "no " + rawbpf)
            continue
        try:
            known[name]()
        except (RuntimeError, OSError, KeyError, ValueError, StopIteration, subprocess.SubprocessError) as error:
            failed(f"{about}: {name}", f"{type(error).__name__}: {error}")
