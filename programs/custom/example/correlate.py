#!/usr/bin/env python3
"""rawbpf custom ./requests:on_request --json -- ./requests | correlate.py

A line a request: how long it took in all, and which threads worked on it, with the time until the next one took over.
"""
import json
import sys

requests = {}
for line in sys.stdin:
    event = json.loads(line)
    if event["type"] == "trace" and event["origin"] == "custom":
        requests.setdefault(int(event["context"], 16), []).append(event)
for context, steps in sorted(requests.items()):
    steps.sort(key=lambda e: e["t_ns"])
    path = []
    for step, following in zip(steps, steps[1:] + [None]):
        after = f" -{(following['t_ns'] - step['t_ns']) / 1e6:.1f} ms->" if following else ""
        path.append(f"{step['tid']}{after}")
    total = (steps[-1]["t_ns"] - steps[0]["t_ns"]) / 1e6
    print(f"request {context:#x}: {total:.1f} ms, {len({s['tid'] for s in steps})} threads: {' '.join(path)}")
