#!/usr/bin/env python3
"""A receiver of traces: OTLP over HTTP, in JSON, with nothing but Python.

    receiver.py [--port N]      4318; 0: any that is free. Prints spans as they come, until Ctrl-C

A collector would store them. This one keeps the last 10,000, and draws what belongs together as a tree.
"""
import argparse
import gzip
import http.server
import json
import sys
import threading

MOST_BYTES = 16 << 20
MOST_SPANS = 10000
KINDS = {1: "internal", 2: "server", 3: "client"}


def plain(value):
    """An attribute's value: {"stringValue": ...}, {"intValue": "42"} (64 bits travel as text), ..."""
    (kind, what), = value.items()
    return int(what) if kind == "intValue" else what


def spans_of(request):
    """The spans of an ExportTraceServiceRequest, as flat dicts. Raises ValueError, KeyError or TypeError when it isn't one."""
    out = []
    for resource in request.get("resourceSpans", []):
        about = {a["key"]: plain(a["value"]) for a in resource.get("resource", {}).get("attributes", [])}
        for scope in resource.get("scopeSpans", []):
            for span in scope.get("spans", []):
                if len(span["traceId"]) != 32 or len(span["spanId"]) != 16:
                    raise ValueError("an id of a wrong length")
                start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
                if end < start:
                    raise ValueError("a span that ends before it starts")
                out.append({
                    "trace": span["traceId"], "id": span["spanId"], "parent": span.get("parentSpanId", ""), "name": span["name"],
                    "kind": KINDS.get(span.get("kind", 1), "?"), "start": start, "end": end,
                    "failed": span.get("status", {}).get("code", 0) == 2,
                    "attributes": {a["key"]: plain(a["value"]) for a in span.get("attributes", [])}, "resource": about})
    return out


class Receiver:
    """Listens on 127.0.0.1 in a thread of its own; `spans` is what has come."""

    def __init__(self, port=0, when_some_come=lambda spans: None):
        self.spans, self.requests, self.refused, self.lock = [], 0, [], threading.Lock()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = 10  # of each connection

            def do_POST(self):
                try:
                    size = int(self.headers.get("Content-Length", "-1"))
                except ValueError:
                    size = -1
                if size < 0 or size > MOST_BYTES:
                    return self.answer(413, {"message": f"needs a Content-Length of at most {MOST_BYTES}"})
                body = self.rfile.read(size)
                if self.path != "/v1/traces":
                    return self.answer(404, {"message": "traces go to /v1/traces"})
                if self.headers.get_content_type() != "application/json":
                    return self.answer(415, {"message": "only application/json"})
                try:
                    if self.headers.get("Content-Encoding") == "gzip":
                        body = gzip.decompress(body)
                    spans = spans_of(json.loads(body))
                except (ValueError, KeyError, TypeError, AttributeError, OSError, EOFError) as why:
                    receiver.refused.append(str(why))
                    return self.answer(400, {"message": f"not a request for traces: {why}"})
                with receiver.lock:
                    receiver.requests += 1
                    receiver.spans = (receiver.spans + spans)[-MOST_SPANS:]
                self.answer(200, {})  # an empty partialSuccess: everything was taken
                when_some_come(spans)

            def answer(self, status, what):
                text = json.dumps(what).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)


# Attributes of interest, in this order; the rest is for real collectors.
SHOWN = ("http.request.method", "url.path", "http.response.status_code", "db.query.text", "server.address", "network.peer.address", "error.type")


def tree(spans):
    """The spans as lines: each trace by itself, children below their parents, in the order of their starts."""
    known = {s["id"] for s in spans}
    lines = []

    def draw(span, depth):
        facts = span["attributes"]
        text = f"{'  ' * depth}{span['name']}"
        took = (span["end"] - span["start"]) / 1e6
        rest = "  ".join(f"{key}={facts[key]}" for key in SHOWN if key in facts)
        lines.append(f"{text:<18} {span['kind']:<8} {took:9.3f} ms  {'FAILED  ' if span['failed'] else ''}{rest}".rstrip())
        for child in sorted((s for s in spans if s["parent"] == span["id"] and s["trace"] == span["trace"]), key=lambda s: s["start"]):
            draw(child, depth + 1)

    for root in sorted((s for s in spans if s["parent"] not in known), key=lambda s: s["start"]):
        lines.append(f"trace {root['trace']}")
        draw(root, 1)
    return lines


def main():
    parser = argparse.ArgumentParser(description="Receives OTLP/HTTP traces in JSON and prints them.")
    parser.add_argument("--port", type=int, default=4318)
    options = parser.parse_args()
    try:
        receiver = Receiver(options.port, lambda spans: print("\n".join(tree(spans)), flush=True))
    except (OSError, OverflowError) as why:
        sys.exit(f"receiver.py: 127.0.0.1:{options.port}: {why}")
    print(f"rawbpf usdt trace ... --otlp {receiver.url}", file=sys.stderr, flush=True)
    try:
        receiver.thread.join()
    except KeyboardInterrupt:
        receiver.close()


if __name__ == "__main__":
    main()
