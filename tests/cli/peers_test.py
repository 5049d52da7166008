"""Whoever rawbpf sends to, is scraped by or fetches from can't hurt it: after INT it ends within 3 seconds, it holds less than 64 MB
and writes less than 10 MB, whatever the peer does. The peers here are sockets on loopback, each hostile in one way."""
import os
import re
import signal
import socket
import subprocess
import threading
import time

from harness import *

LONGEST, MOST_MEMORY, MOST_BYTES = 3, 64 << 20, 10 << 20
WORKER = r'''
#include <time.h>
extern "C" __attribute__((noinline)) int work(int i) { __asm__ volatile(""); return i + 1; }
int main() { for (int i = 0;; ++i) { work(i); timespec t = {0, 1000000}; nanosleep(&t, nullptr); } }
'''


def worker():
    if os.geteuid() != 0:
        raise Skip("needs root")
    program = path("peers_worker")
    return program if os.path.exists(program) else compile_program("peers_worker", WORKER)


class Watched:
    """rawbpf, while a peer does its worst: what it says, how long it takes to end, what it held and wrote."""

    def __init__(self, *args, env=None):
        self.files = [path("peers.out"), path("peers.err"), path("peers.file")]
        for file in self.files:
            open(file, "w").close()
        with open(self.files[0], "wb") as out, open(self.files[1], "wb") as err:
            environment = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "DEBUGINFOD_"))} | (env or {})
            self.p = subprocess.Popen([RB, *args], stdout=out, stderr=err, env=environment)

    def words(self):
        with open(self.files[1], "rb") as f:
            return f.read().decode("utf-8", "replace")

    def until_said(self, pattern):
        """The match of what it says first; Skip where it can't do this at all."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if found := re.search(pattern, self.words()):
                return found
            if self.p.poll() is not None:
                if self.p.returncode == 3:
                    raise Skip(self.words().strip().splitlines()[0])
                break
            time.sleep(0.02)
        raise AssertionError(f"it didn't say {pattern}: {self.words()}")

    def end(self, *, interrupt=True, within=LONGEST):
        """Interrupts it; its status and its words, when it kept to all bounds."""
        start = time.monotonic()
        if interrupt:
            self.p.send_signal(signal.SIGINT)
        status = None
        while time.monotonic() < start + within and status is None:
            pid, code, usage = os.wait4(self.p.pid, os.WNOHANG)
            status = os.waitstatus_to_exitcode(code) if pid else None
            time.sleep(0.01)
        if status is None:
            with open(f"/proc/{self.p.pid}/status", encoding="utf-8") as f:
                held = re.search(r"VmHWM.*", f.read())
            self.p.kill()
            self.p.wait()
            raise AssertionError(f"it didn't end within {within} s; {held[0] if held else ''}")
        self.p.returncode = status
        memory = usage.ru_maxrss << 10  # not less than what it held: it may be what this process held when it was started
        size = sum(os.path.getsize(file) for file in self.files)
        assert memory < MOST_MEMORY, f"{memory >> 20} MB held"
        assert size < MOST_BYTES, f"{size} bytes written"
        for file in self.files:
            with open(file, "rb") as f:
                raw = f.read()
            raw.decode("utf-8")
            assert b"\x1b" not in raw and b"\x07" not in raw, f"{file}: a peer's control characters: {raw[:300]!r}"
        return status, self.words()


class Target:
    """A process to be traced, for as long as the scope."""

    def __enter__(self):
        self.p = subprocess.Popen([worker()])
        return self.p

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()


# ---- who scrapes ----------------------------------------------------------------------------------------------------------------


def ask(port, request, host="127.0.0.1", wait=2.5, most=1 << 20):
    """What is answered, or what there is of it after `wait` seconds."""
    out = b""
    end = time.monotonic() + wait
    with socket.create_connection((host, port), wait) as s:
        try:
            s.sendall(request)
            while len(out) < most and time.monotonic() < end:
                s.settimeout(max(end - time.monotonic(), 0.01))
                piece = s.recv(65536)
                if not piece:
                    break
                out += piece
        except OSError:
            pass
    return out.decode("latin-1")


def status_of(answer):
    found = re.match(r"HTTP/1\.1 (\d+) ", answer)
    return int(found[1]) if found else None


def get(port, target="/metrics", host="localhost", method="GET", version="HTTP/1.1", more=""):
    return ask(port, f"{method} {target} {version}\r\n{f'Host: {host}' + chr(13) + chr(10) if host is not None else ''}{more}\r\n".encode())


class Scraped:
    """A trace with --prometheus."""

    def __init__(self, pid):
        self.rawbpf = Watched("trace", f"uprobe:{worker()}:work", "--prometheus", "127.0.0.1:0", "-p", str(pid), "-o", path("peers.file"))
        self.port = int(self.rawbpf.until_said(r"to be scraped at http://127\.0\.0\.1:(\d+)/metrics")[1])


@test
def a_scrape_endpoint_answers_what_is_meant_for_it():
    with Target() as target:
        scraped = Scraped(target.pid)
        port = scraped.port
        answer = get(port)
        assert status_of(answer) == 200 and "rawbpf_calls_total" in answer, answer[:300]
        assert "rawbpf_calls_total" not in get(port, method="HEAD") and status_of(get(port, method="HEAD")) == 200
        statuses = {
            f"localhost:{port}": 200, f"127.0.0.1:{port}": 200, "LOCALHOST.": 200, "[::1]:1": 200, socket.gethostname(): 200,
            "evil.example": 421, f"evil.example:{port}": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421,
            "192.0.2.1": 421, "": 421, "[::1": 421, "localhost:80@evil.example": 421, None: 400,
        }
        for host, wanted in statuses.items():
            assert status_of(get(port, host=host)) == wanted, (host, get(port, host=host)[:100])
        assert status_of(get(port, host=None, version="HTTP/1.0")) == 200
        assert status_of(get(port, target="http://evil.example/metrics")) == 421  # it counts more than Host does
        assert status_of(get(port, more="Host: evil.example\r\n")) == 400
        assert status_of(get(port, target="/../../etc/passwd")) == status_of(get(port, target="/metrics/../x")) == 404
        assert status_of(get(port, method="POST", more="Content-Length: -1\r\n")) == 405
        assert status_of(get(port, version="HTTP/2.0")) == 505
        for garbage in (b"\x16\x03\x01\x02\x00\n\n", b"GET /metrics\r\n\r\n", b"GET  /metrics HTTP/1.1\r\n\r\n",
                        b"GET /metrics HTTP/1.1\r\nHost : localhost\r\n\r\n", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n"):
            assert status_of(ask(port, garbage)) == 400, garbage
        for long in (b"GET /" + b"a" * (1 << 20), b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 200000):
            assert status_of(ask(port, long)) in (431, None)  # None: it was closed while we sent
        status, words = scraped.rawbpf.end()
        assert status == 0, (status, words)


def drip(sockets, stop):
    while not stop.wait(0.2):
        for s in sockets:
            try:
                s.sendall(b"a")
            except OSError:
                pass


@test
def slow_scrapers_starve_nobody():
    with Target() as target:
        scraped = Scraped(target.pid)
        stop, slow = threading.Event(), []
        for i in range(100):  # more than it has places for; some say nothing, some never end their request, some never read
            slow.append(socket.create_connection(("127.0.0.1", scraped.port), 2))
            slow[-1].sendall([b"", b"GET /metrics HTTP/1.1\r\nX", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"][i % 3])
        threading.Thread(target=drip, args=(slow, stop), daemon=True).start()
        try:
            for _ in range(12):  # through all of the time that a connection has
                start = time.monotonic()
                assert status_of(get(scraped.port)) == 200
                assert time.monotonic() - start < 1.9, "slow scrapers held up another one"
                time.sleep(0.25)
            with open(f"/proc/{scraped.rawbpf.p.pid}/net/tcp", encoding="ascii") as f:
                mine = [line.split() for line in f if line.split()[1].endswith(f":{scraped.port:04X}")]
            held = sum(fields[3] == "01" for fields in mine)
            assert held == 0, f"{held} connections are open after their time"
            late = [socket.create_connection(("127.0.0.1", scraped.port), 2) for _ in range(8)]  # INT meets open ones, too
            for s in late:
                s.sendall(b"GET /metrics HTTP/1.1\r\nX")
            slow += late
            status, words = scraped.rawbpf.end()
            assert status == 0, (status, words)
        finally:
            stop.set()
            for s in slow:
                s.close()
