"""Whoever rawbpf sends to, is scraped by or fetches from can't hurt it: after INT it ends within 3 seconds, it holds less than 64 MB
and writes less than 10 MB, whatever the peer does. The peers here are sockets on loopback, each hostile in one way."""
import glob
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

from harness import *

LONGEST, MOST_MEMORY, MOST_BYTES = 3, 64 << 20, 10 << 20
WORKER = r'''
#include <time.h>
extern "C" __attribute__((noinline)) int work(int i) { __asm__ volatile(""); return i + 1; }
int main() { for (int i = 0;; ++i) { if (i % 5 == 0) { timespec t = {0, 1000000}; nanosleep(&t, nullptr); } work(i); } }
'''


def worker():
    if os.geteuid() != 0:
        raise Skip("needs root")
    program = path("peers_worker")
    return program if os.path.exists(program) else compile_program("peers_worker", WORKER)


class Watched:
    """rawbpf, while a peer does its worst: what it says, how long it takes to end, what it held and wrote."""

    def __init__(self, *args, env=None, name="peers", folder=None, through=()):
        self.folder = folder  # of what it may write besides
        self.most = 0
        self.waits = {}  # of each thread, as waited() saw it last
        self.files = [path(f"{name}.out"), path(f"{name}.err"), path(f"{name}.file")]
        for file in self.files:
            open(file, "w").close()
        with open(self.files[0], "wb") as out, open(self.files[1], "wb") as err:
            environment = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "DEBUGINFOD_"))} | (env or {})
            ready, told = os.pipe()
            attaches = args[0] != "report"
            self.p = subprocess.Popen([*through, RB, args[0], *(("--ready-fd", str(told)) if attaches else ()), *args[1:]], stdout=out,
                                      stderr=err, env=environment, pass_fds=(told,))
            os.close(told)
            with open(ready, "rb") as pipe:  # the kernel attaches one after the other: others' probes may be in front of ours
                if attaches and pipe.read(1) == b"" and self.p.wait() == 3:
                    raise Skip(self.words().strip().splitlines()[0])

    def words(self):
        with open(self.files[1], "rb") as f:
            return f.read().decode("utf-8", "replace")

    def until_said(self, pattern):
        """The match of what it says first; Skip where it can't do this at all."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            self.held()
            if found := re.search(pattern, self.words()):
                return found
            if self.p.poll() is not None:
                if self.p.returncode == 3:
                    raise Skip(self.words().strip().splitlines()[0])
                break
            time.sleep(0.02)
        raise AssertionError(f"it didn't say {pattern}: {self.words()}")

    def check_written(self):
        size = sum(os.path.getsize(file) for file in self.files)
        for at, _, names in os.walk(self.folder) if self.folder else ():
            for name in names:
                try:
                    size += os.path.getsize(os.path.join(at, name))
                except FileNotFoundError:
                    pass
        if size >= MOST_BYTES:
            self.p.kill()
            raise AssertionError(f"{size} bytes written")

    def in_kernel(self):
        """Whether one of its threads waits in a way that nothing can interrupt: the kernel takes probes away, one after the other with
        those of all others who trace. No peer can bring that about."""
        for task in glob.glob(f"/proc/{self.p.pid}/task/*/stat"):
            try:
                with open(task, encoding="utf-8", errors="replace") as f:
                    if f.read().rpartition(")")[2].split()[0] == "D":
                        return True
            except (OSError, IndexError):
                pass
        return False

    def waited(self):
        """How many seconds its threads were ready to run and had no CPU: a busy machine's, not its own."""
        for task in glob.glob(f"/proc/{self.p.pid}/task/*/schedstat"):
            try:
                with open(task, encoding="ascii") as f:
                    self.waits[task] = int(f.read().split()[1]) / 1e9
            except (OSError, IndexError):
                pass
        return sum(self.waits.values())  # also of threads that have ended

    def held(self):
        """The most bytes that it has held. Not the ru_maxrss of wait4(): that counts what we held when we started it, too."""
        try:
            with open(f"/proc/{self.p.pid}/status", encoding="utf-8") as f:
                self.most = max(self.most, int((re.search(r"VmHWM:\s+(\d+)", f.read()) or [0, 0])[1]) << 10)
        except OSError:
            pass
        return self.most

    def end(self, *, interrupt=True, within=LONGEST):
        """Interrupts it; its status and its words, when it kept to all bounds."""
        start, waited = time.monotonic(), self.waited()
        if interrupt:
            self.p.send_signal(signal.SIGINT)
        status, late, before, kernel = None, False, start, 0
        while status is None and not late:
            self.held()
            now = time.monotonic()
            kernel += now - before if self.in_kernel() else 0
            late = now - start - kernel > within + self.waited() - waited  # before the last look
            before = now
            pid, code = os.waitpid(self.p.pid, os.WNOHANG)
            status = os.waitstatus_to_exitcode(code) if pid else None
            self.check_written()
            time.sleep(0.01)
        if status is None:
            self.p.kill()
            self.p.wait()
            raise AssertionError(f"it didn't end within {within} s; {self.held() >> 20} MB held")
        self.p.returncode = status
        assert self.most < MOST_MEMORY, f"{self.most >> 20} MB held"
        self.check_written()
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


# ---- who is sent to -------------------------------------------------------------------------------------------------------------


class Peer:
    """A server on loopback: each connection is for `talk(socket)`, in a thread. What it raises is the end of the connection."""

    def __init__(self, talk, backlog=50):
        self.talk, self.over, self.connections = talk, threading.Event(), 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        if self.talk:
            threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.listener.close()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.one, args=(connection,), daemon=True).start()

    def one(self, connection):
        with connection:
            try:
                connection.settimeout(20)
                self.talk(self, connection)
            except OSError:
                pass

    def flood(self, connection, first, piece):
        """Without end, as fast as it goes."""
        connection.sendall(first)
        while not self.over.is_set():
            connection.sendall(piece)

    def slowly(self, connection, text):
        for i in range(len(text)):
            if self.over.wait(0.15):
                return
            connection.sendall(text[i:i + 1])
        self.over.wait(20)


def receiver(act):
    """A peer that reads a request's first bytes and acts then."""
    def talk(peer, connection):
        connection.recv(65536)
        act(peer, connection)
    return talk


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
RECEIVERS = {
    "says nothing": receiver(lambda peer, c: peer.over.wait(20)),
    "sends slowly": receiver(lambda peer, c: peer.slowly(c, OK + b"Content-Length: 2\r\n\r\n{}")),
    "sends headers without end": receiver(lambda peer, c: peer.flood(c, OK, b"X: " + b"y" * 4000 + b"\r\n")),
    "sends a header without end": receiver(lambda peer, c: peer.flood(c, OK + b"X: ", b"y" * 65536)),
    "sends a status line without end": receiver(lambda peer, c: peer.flood(c, b"HTTP/1.1 200 ", b"y" * 65536)),
    "says 100 Continue without end": receiver(lambda peer, c: peer.flood(c, b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100)),
    "sends a body without end": receiver(lambda peer, c: peer.flood(c, OK + b"\r\n", b"x" * 65536)),
    "sends chunks without end": receiver(lambda peer, c: peer.flood(c, CHUNKED, b"10000\r\n" + b"x" * 65536 + b"\r\n")),
    "sends a chunk's size without end": receiver(lambda peer, c: peer.flood(c, CHUNKED, b"1;" + b"x" * 65536)),
    "sends trailers without end": receiver(lambda peer, c: peer.flood(c, CHUNKED + b"0\r\n", b"X: y\r\n" * 1000)),
    "sends before it is asked": lambda peer, c: peer.flood(c, b"", bytes(range(256)) * 256),
    "refuses in colours": receiver(lambda peer, c: c.sendall(b"HTTP/1.1 400 \x1b[31mred\x07\r\nContent-Length: 70000\r\n\r\n" +
                                                             b"\x1b[2J\x07\xff" * 20000)),
    "asks for patience": receiver(lambda peer, c: c.sendall(b"HTTP/1.1 503 no\r\nRetry-After: 999999999\r\nContent-Length: 0\r\n\r\n")),
    "closes": lambda peer, c: None,
}
TLS_RECEIVERS = {
    "begins TLS never": lambda peer, c: peer.over.wait(20),
    "begins TLS slowly": lambda peer, c: peer.slowly(c, b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03" + b"a" * 10000),
    "floods TLS": lambda peer, c: peer.flood(c, b"", b"\x16\x03\x03\x00\x04\x00\x00\x00\x00" * 1000),
}


def send_to(url, pid, name, seconds=0.5, env=None, through=()):
    """rawbpf sends spans there and is interrupted: what it says of its spans, and its words."""
    r = Watched("trace", f"uprobe:{worker()}:work", "--otlp", url, "--json", "-p", str(pid), "-o", path(f"{name}.file"), name=name, env=env,
                through=through)
    r.until_said("spans go to")
    end = time.monotonic() + 20
    while not os.path.getsize(path(f"{name}.file")) and time.monotonic() < end:
        time.sleep(0.02)  # its first events
    time.sleep(seconds)
    status, words = r.end()
    spans = rows(f"{name}.file")[-1]["spans"]
    export = spans["export"]
    lost = export["rejected"] + export["dropped"] + sum(export["failed"].values())
    assert spans["made"] > 0 and spans["made"] == export["sent"] + lost, spans
    assert status == (1 if lost else 0), (status, words)
    assert not lost or f"{lost:,} of {spans['made']:,} spans were lost" in words, words
    assert len(words) < 10000, words
    return export, words


def against_all(peers, attempt):
    """What attempt(port, number) says of each of them; some at the same time, since each costs seconds of waiting. Not all: the kernel
    takes probes away one after the other."""
    results, places = {}, threading.Semaphore(5)

    def one(number, name, talk):
        try:
            with places, Peer(talk) as peer:
                results[name] = attempt(peer.port, number)
        except (AssertionError, Skip, OSError, LookupError, ValueError) as why:
            results[name] = why

    threads = [threading.Thread(target=one, args=(i, name, talk)) for i, (name, talk) in enumerate(peers.items())]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for why in results.values():
        if isinstance(why, Skip):
            raise why
    failed = {name: why for name, why in results.items() if isinstance(why, Exception)}
    assert not failed, "\n  " + "\n  ".join(f"a peer that {name}: {why}" for name, why in failed.items())
    return results


def send_to_all(peers, scheme):
    with Target() as target:
        return against_all(peers, lambda port, number: send_to(f"{scheme}://127.0.0.1:{port}", target.pid, f"peers{scheme}{number}"))


@test
def receivers_of_spans_do_their_worst():
    results = send_to_all(RECEIVERS, "http")
    for name in ("says nothing", "sends slowly", "sends headers without end", "sends a header without end", "closes"):
        assert results[name][0]["sent"] == 0, (name, results[name])
    assert "headers" in results["sends headers without end"][1], results["sends headers without end"]
    assert "HTTP 400" in results["refuses in colours"][1], results["refuses in colours"]


@test
def receivers_of_encrypted_spans_do_their_worst():
    for name, (export, words) in send_to_all(TLS_RECEIVERS, "https").items():
        assert export["sent"] == 0, (name, words)


@test
def a_receiver_that_takes_no_connection_or_sends_elsewhere():
    with Target() as target, Peer(None, backlog=0) as full, Peer(lambda peer, c: None) as elsewhere:
        waiting = []
        for _ in range(4):  # the kernel has no room for another one then
            waiting.append(socket.socket())
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(("127.0.0.1", full.port))
        export, words = send_to(f"http://127.0.0.1:{full.port}", target.pid, "peersfull")
        assert export["sent"] == 0, words
        redirect = b"HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:%d/\r\nContent-Length: 0\r\n\r\n" % elsewhere.port
        with Peer(receiver(lambda peer, c: c.sendall(redirect))) as sends_elsewhere:
            export, words = send_to(f"http://127.0.0.1:{sends_elsewhere.port}", target.pid, "peerselse")
        assert export["sent"] == 0 and "HTTP 307" in words and elsewhere.connections == 0, words
        for s in waiting:
            s.close()


@test
def a_name_server_says_nothing():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent, Target() as target:
        try:
            silent.bind(("127.0.0.77", 53))
        except OSError as why:
            raise Skip(f"a name server's port: {why}")
        with open(path("resolv.conf"), "w", encoding="ascii") as f:
            f.write("nameserver 127.0.0.77\n")
        through = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', path("resolv.conf"))
        if subprocess.run([*through, "true"], capture_output=True).returncode != 0:
            raise Skip("needs a mount namespace of its own")
        export, words = send_to("http://name.example:4318", target.pid, "peersname", through=through)
        assert export["sent"] == 0 and "name wasn't resolved before the end" in words, words


@test
def a_receiver_is_who_its_certificate_says():
    if not shutil.which("openssl"):
        raise Skip("needs openssl")
    certificates = {}
    for name in ("IP:127.0.0.1", "DNS:other.example"):
        key, certificate = path("peers.key"), path("peers.crt")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=x",
                        "-addext", f"subjectAltName={name}", "-keyout", key, "-out", certificate], check=True, capture_output=True)
        certificates[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificates[name].load_cert_chain(certificate, key)
        os.rename(certificate, path(name))

    def talk_as(name, answers):
        def talk(peer, connection):
            with certificates[name].wrap_socket(connection, server_side=True) as s:
                for _ in range(answers):
                    head = b""
                    while b"\r\n\r\n" not in head:
                        head += s.recv(65536)
                    head, _, body = head.partition(b"\r\n\r\n")
                    left = int(re.search(rb"Content-Length: (\d+)", head)[1]) - len(body)
                    while left > 0:
                        left -= len(s.recv(65536))
                    s.sendall(OK + b"Content-Length: 0\r\n\r\n")
        return talk

    with Target() as target:
        for name, trusted, words_wanted in (("IP:127.0.0.1", "IP:127.0.0.1", None), ("IP:127.0.0.1", None, "isn't one that this system trusts"),
                                            ("DNS:other.example", "DNS:other.example", "IP address mismatch")):
            with Peer(talk_as(name, 1 if words_wanted is None else 2)) as peer:  # the first one closes each connection after one answer
                export, words = send_to(f"https://127.0.0.1:{peer.port}", target.pid, "peerstls", seconds=2.3,
                                        env={"SSL_CERT_FILE": path(trusted) if trusted else "/dev/null"})
            if words_wanted is None:
                assert export["sent"] > 0 and not export["failed"] and peer.connections > 1, (export, words, peer.connections)
            else:
                assert export["sent"] == 0 and words_wanted in words, (export, words)


@test
def a_second_interrupt_waits_for_no_receiver():
    with Target() as target, Peer(RECEIVERS["says nothing"]) as peer:
        r = Watched("trace", f"uprobe:{worker()}:work", "--otlp", f"http://127.0.0.1:{peer.port}", "-p", str(target.pid), "-o", path("peers.file"))
        r.until_said("spans go to")
        time.sleep(0.5)
        interrupt(r.p)
        status, words = r.end(within=1)
        assert status == 1 and "spans were lost" in words, (status, words)


# ---- who is asked for debug files -------------------------------------------------------------------------------------------------

BURNER = r'''
extern "C" __attribute__((noinline)) int burn(unsigned n) { for (volatile unsigned i = 0; i < n; ++i) {} return 1; }
int main() { while (burn(1000000)) {} }
'''
SERVERS = {
    "says nothing": receiver(lambda peer, c: peer.over.wait(20)),
    "sends headers slowly": receiver(lambda peer, c: peer.slowly(c, OK + b"Content-Length: 2\r\n\r\n" + b"x" * 1000)),
    "sends a file slowly": receiver(lambda peer, c: (c.sendall(OK + b"Content-Length: 1000000\r\n\r\n"), peer.slowly(c, b"x" * 1000))),
    "sends headers without end": receiver(lambda peer, c: peer.flood(c, OK, b"X-DEBUGINFOD-A: " + b"y" * 4000 + b"\r\n")),
    "sends a header without end": receiver(lambda peer, c: peer.flood(c, OK + b"X-DEBUGINFOD-A: ", b"y" * 65536)),
    "sends a file without end": receiver(lambda peer, c: peer.flood(c, OK + b"\r\n", b"x" * 65536)),
    "sends chunks without end": receiver(lambda peer, c: peer.flood(c, CHUNKED, b"10000\r\n" + b"x" * 65536 + b"\r\n")),
    "says 4 TB and sends": receiver(lambda peer, c: peer.flood(c, OK + b"Content-Length: 4000000000000\r\n\r\n", b"x" * 65536)),
    "says 300 MB and sends": receiver(lambda peer, c: peer.flood(c, OK + b"Content-Length: 300000000\r\n\r\n", b"x" * 65536)),
    "sends itself": receiver(lambda peer, c: c.sendall(b"HTTP/1.1 302 Found\r\nLocation: /buildid\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")),
    "refuses in colours": receiver(lambda peer, c: c.sendall(b"HTTP/1.1 404 \x1b[31mred\x07\r\nContent-Length: 5\r\n\r\n\x1b[2J\x07")),
}


def burner():
    """A program without symbols, for which a server is asked."""
    if lacks("debuginfod"):
        raise Skip("this build was made without libdebuginfod")
    if os.geteuid() != 0:
        raise Skip("profiling needs root")
    program = path("peers_burner")
    return program if os.path.exists(program) else compile_program("peers_burner", BURNER, "-Wl,--build-id", "-s")


def servers_at(port, number, **more):
    folder = path(f"peers_cache{number}")
    os.makedirs(folder, exist_ok=True)
    return folder, {"DEBUGINFOD_URLS": f"http://127.0.0.1:{port}", "DEBUGINFOD_CACHE_PATH": folder, **more}


@test
def servers_of_debug_files_do_their_worst():
    program = burner()
    good("profile", "-F", "99", "-d", "0.3", "--record", path("peers.rec"), "-q", "--", program)

    def report(port, number):
        folder, env = servers_at(port, number, DEBUGINFOD_TIMEOUT="1")
        r = Watched("report", "--inline", "-f", "folded", path("peers.rec"), env=env, name=f"peersdebug{number}", folder=folder)
        status, words = r.end(interrupt=False, within=6)
        assert status == 0 and re.search(r"no lines for \S*peers_burner: no debug info here; debuginfod: see below|none at DEBUGINFOD_URLS", words), words
        assert os.path.getsize(path(f"peersdebug{number}.out")) > 0  # the stacks are shown all the same
        return words

    results = against_all(SERVERS, report)
    for name, pattern in (("says nothing", "no file came in [12] s"), ("sends a file slowly", "of 1000000 bytes came in [12] s"),
                          ("sends chunks without end", "whose size wasn't said")):
        assert re.search(f"debuginfod: .*{pattern}.*: not asked again", results[name]), (name, results[name])
    for name, size in (("says 4 TB and sends", 4000000000000), ("says 300 MB and sends", 300000000)):
        wanted = rf"debuginfod: \d+ files? of more than 268435456 bytes \(as much as {size}\) not fetched: DEBUGINFOD_MAXSIZE=BYTES"
        assert re.search(wanted, results[name]) and "not asked again" not in results[name], (name, results[name])


@test
def an_interrupt_waits_for_no_server_of_debug_files():
    program = burner()

    def profile(port, number):
        folder, env = servers_at(port, f"int{number}")
        r = Watched("profile", "--inline", "-F", "99", "-f", "folded", "-o", path(f"peersint{number}.file"), "--", program, env=env, name=f"peersint{number}",
                    folder=folder)
        time.sleep(1)
        status, words = r.end()
        assert status == 0 and "the run was to end before" in words, (status, words)
        assert "peers_burner" in read(f"peersint{number}.file")

    against_all({name: SERVERS[name] for name in ("says nothing", "sends headers slowly", "sends a file slowly")}, profile)


def begun(folder):
    return [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if name.startswith("debuginfo")]


@test
def an_interrupt_leaves_no_part_of_a_file():
    program = burner()
    good("profile", "-F", "99", "-d", "0.3", "--record", path("part.rec"), "-q", "--", program)
    with Peer(SERVERS["sends a file slowly"]) as peer:
        for number, (interrupts, words) in enumerate(((1, ("report", "--inline", path("part.rec"))),
                                                      (2, ("profile", "--inline", "-F", "99", "-d", "0.3", "--", program)))):
            folder, env = servers_at(peer.port, f"part{number}", DEBUGINFOD_TIMEOUT="30")
            r = Watched(*words[:2], "-f", "folded", *words[2:], env=env, name=f"part{number}", folder=folder)
            end = time.monotonic() + 20
            while not begun(folder) and time.monotonic() < end:
                time.sleep(0.02)
            assert begun(folder), (words[0], r.words())
            for _ in range(interrupts - 1):
                interrupt(r.p)
            status, said = r.end(within=10)  # of the 30 that the server would hold it
            assert status == (-signal.SIGINT if words[0] == "report" else 0), (words[0], status, said)
            assert not begun(folder), begun(folder)


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
