"""Labels of goroutines: `profile --label` of Go programs that label their work by runtime/pprof; and goroutines' numbers."""
from go_programs import build_go
from labelled import assert_shares, assert_stay, assert_waits, by_label, doctor_row, profiled
from protobuf import decoded_pprof, one

from harness import *

SOURCE = r"""
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

//go:noinline
func spin(n int) uint64 {
	x := uint64(n)
	for i := 0; i < n; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

//go:noinline
func work_a(n int) uint64 { return spin(n) + 1 }

//go:noinline
func work_b(n int) uint64 { return spin(n) + 2 }

//go:noinline
func work_none(n int) uint64 { return spin(n) + 3 }

var end time.Time
var more int

func pairs(route, user string) []string {
	all := []string{"http_route", route, "user", user, "empty", "", "long", strings.Repeat(route, 100)}
	for i := 0; i < more; i++ {
		all = append(all, fmt.Sprintf("more%02d", i), strconv.Itoa(i))
	}
	return all
}

func with(all []string, f func()) {
	pprof.Do(context.Background(), pprof.Labels(all...), func(context.Context) { f() })
}

func own() string {
	b := make([]byte, 64)
	return strings.Fields(string(b[:runtime.Stack(b, false)]))[1]
}

// Three parts /a, one /b, one without.
func shares() {
	const n = 300000
	a, b := pairs("/a", "alice"), pairs("/b", "bob")
	for time.Now().Before(end) {
		with(a, func() { work_a(3 * n) })
		with(b, func() { work_b(n) })
		work_none(n)
	}
}

// Labels change all the time, and those of one moment agree: also with the goroutine's number.
func torn() {
	self := own()
	for i := 0; time.Now().Before(end); i++ {
		n := strconv.Itoa(i)
		with([]string{"one", n, "two", n, "self", self}, func() { work_a(2000) })
		runtime.Gosched()
	}
}

// Calls of the kernel that wait: 10 ms /a, 10 ms without.
func waits() {
	wait := syscall.Timespec{Nsec: 10000000}
	for time.Now().Before(end) {
		with(pairs("/a", "alice"), func() { syscall.Nanosleep(&wait, nil) })
		syscall.Nanosleep(&wait, nil)
	}
}

// One call, after a long time in which there was none.
func late() {
	time.Sleep(time.Until(end))
	with(pairs("/a", "alice"), func() { work_a(1000) })
}

// What a context's labels lead to becomes whatever a hostile program may put there, while its work goes on.
func hostile() {
	memory, _ := syscall.Mmap(-1, 0, 1<<16, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&memory[0])), len(memory)/8)
	base := uint64(uintptr(unsafe.Pointer(&memory[0])))
	for i := 0; time.Now().Before(end); i++ {
		ctx := pprof.WithLabels(context.Background(), pprof.Labels("http_route", "/a", "user", "alice"))
		value := (*struct {
			parent   context.Context
			key, val [2]unsafe.Pointer
		})((*[2]unsafe.Pointer)(unsafe.Pointer(&ctx))[1])
		labels := (*uint64)(value.val[1])
		was := *labels
		for j := range words {
			words[j] = []uint64{0, ^uint64(0), base, base + uint64(j%64)*8, uint64(j), 1 << 63, uint64(i * j)}[i%7]
		}
		for j := 1; i%2 == 0 && j+34 < len(words); j += 34 { // buckets that are full, and follow themselves
			words[j-1], words[j] = 8, 0x0505050505050505
			words[j+33] = base + uint64(j)*8
		}
		words[0], words[1], words[2] = uint64(i), uint64(i%8)<<8, base+8
		words[3] = uint64(i) << 32
		*labels = []uint64{base, base + 4096, 1, ^uint64(0), base + uint64(len(memory)) - 8}[i%5]
		pprof.SetGoroutineLabels(ctx)
		work_none(100000)
		pprof.SetGoroutineLabels(context.Background())
		*labels = was
	}
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[2], 64)
	end = time.Now().Add(time.Duration(seconds * 1e9))
	if len(os.Args) > 3 {
		more, _ = strconv.Atoi(os.Args[3])
	}
	kinds := map[string][]func(){"shares": {shares, shares}, "torn": {torn, torn, torn, torn}, "waits": {waits}, "late": {late}, "hostile": {hostile, shares}}[os.Args[1]]
	var all sync.WaitGroup
	for _, kind := range kinds {
		kind := kind
		all.Add(1)
		go func() {
			defer all.Done()
			fmt.Println("goroutine", own())
			kind()
		}()
	}
	all.Wait()
}
"""

KINDS = ("main.work_a", "main.work_b", "main.work_none")


def program(*flags, name="go-labels", source=SOURCE):
    if os.uname().machine != "x86_64":
        raise Skip("goroutines are read on x86_64")
    return build_go(name, source, *flags)


def shares(name):
    """As by_label(), with the functions' names as the other programs have them."""
    return {(label, kind.removeprefix("main.")): n for (label, kind), n in by_label(name, "http_route", KINDS).items()}


@test
def go_labels_are_the_goroutines():
    r = profiled([program(), "shares", "1.5"], "-v", "-F", "499", "--label", "http_route", "--label", "no.such.key", "-f", "folded", "-o", path("l.folded"))
    assert_shares(shares("l.folded"))
    assert re.search(r"process \d+: goroutines: g at -\d+ from the thread's pointer, its m at \d+, the goroutine at \d+ of that, its number at \d+, "
                     r"its labels at \d+", r.err), r.err
    # Nobody asks for goroutines' numbers here: equal stacks are one line.
    assert "goroutine=" not in read("l.folded") and "no.such.key" not in read("l.folded"), read("l.folded")
    # More labels than a bucket of a map has.
    profiled([program(), "shares", "1", "8"], "-q", "-F", "499", "--label", "http_route", "-f", "folded", "-o", path("l.folded"))
    assert_shares(shares("l.folded"))


@test
def go_labels_in_json_pprof_and_recordings():
    if not has_json():
        raise Skip("this build writes no JSON")
    keys = ("--label", "goroutine", "--label", "http_route", "--label", "user", "--label", "empty", "--label", "long")
    r = profiled([program(), "shares", "1"], "-q", "-F", "499", *keys, "--record", path("l.rec"), "--json", "-o", path("l.json"))
    numbers = set(re.findall(r"^goroutine (\d+)$", r.out, re.M))
    samples = [o for o in rows("l.json") if o["type"] == "sample"]
    labelled = [o["labels"] for o in samples if "labels" in o]
    assert_stay(samples, kinds=("main.work_a", "main.work_b"))
    assert len(numbers) == 2 and len(labelled) > 60, (numbers, len(labelled))
    for labels in labelled:
        if "http_route" not in labels:
            continue
        assert labels["goroutine"] in numbers, (labels, numbers)
        route = labels["http_route"]
        assert labels["user"] == {"/a": "alice", "/b": "bob"}[route] and labels["empty"] == "" and labels["long"] == route * 64, labels
    assert {l["goroutine"] for l in labelled} >= numbers, numbers
    good("report", path("l.rec"), "-q", "--json", "-o", path("l.again"))
    assert [o.get("labels") for o in rows("l.again") if o["type"] == "sample"] == [o.get("labels") for o in samples]
    if shutil.which("protoc"):
        good("report", path("l.rec"), "-q", "-f", "pprof", "-o", path("l.pprof"))
        p = decoded_pprof("l.pprof")
        texts, count = p["string_table"], 0
        for sample in p["sample"]:
            words = {texts[one(l, "key")]: texts[one(l, "str")] for l in sample["label"] if "str" in l}
            values = {texts[one(l, "key")]: one(l, "num") for l in sample["label"] if "num" in l}
            if "http_route" in words:
                assert str(values["goroutine"]) in numbers and "goroutine" not in words, (words, values)
                count += sample["value"][0]
        assert count == sum("http_route" in l for l in labelled), count


@test
def go_labels_that_change_all_the_time():
    keys = ("--label", "one", "--label", "two", "--label", "self", "--label", "goroutine")
    profiled([program(), "torn", "1.5"], "-q", "-F", "1999", *keys, "-f", "folded", "-o", path("l.folded"))
    seen = set()
    for line in read("l.folded").splitlines():
        labels = dict(f.split("=", 1) for f in line.split(";") if re.match(r"(one|two|self|goroutine)=", f))
        if labels.keys() - {"goroutine"}:
            assert labels["one"] == labels["two"] and labels["self"] == labels["goroutine"], line
            seen.add((labels["self"], labels["one"]))
    assert len(seen) > 50 and len({s for s, n in seen}) == 4, len(seen)


@test
def go_labels_that_lie():
    """Circles, lengths and addresses of all kinds: the profile is as ever, and what they stand beside is right."""
    for key in ("http_route", "goroutine"):
        r = profiled([program(), "hostile", "1.5"], "-F", "999", "--label", key, "--label", "user", "-f", "folded", "-o", path("l.folded"))
        counts = shares("l.folded") if key == "http_route" else {}
        wrong = {k: n for k, n in counts.items() if k in (("/b", "work_a"), ("/a", "work_b"), ("/b", "work_none"))}
        assert not wrong, counts
        if counts:
            assert counts.get(("/a", "work_a"), 0) > 50 and counts.get(("/b", "work_b"), 0) > 10, counts
        assert re.search(r"^  lost +0 ", r.err, re.M), r.err


@test
def go_labels_of_waits():
    if not has_json():
        raise Skip("this build writes no JSON")
    profiled([program(), "waits", "1.5"], "-q", "--off-cpu", "--label", "http_route", "--json", "-o", path("l.json"))
    # A goroutine may go on in another thread; only one waits at a time.
    assert_waits([o for o in rows("l.json") if o["type"] == "sample" and "main.waits" in stack_names(o)], {"/a": 10_000_000, None: 10_000_000})


@test
def go_labels_of_events():
    """Each call of a function has the number of its goroutine, and the goroutine's labels; with the stack and without."""
    if not has_json():
        raise Skip("this build writes no JSON")
    keys = ("--label", "goroutine", "--label", "http_route")
    for more in ((), ("--stack",)):
        words = ("trace", f"uprobe:{program()}:main.work_a", f"uprobe:{program()}:main.work_b", "-q", "--json", "-o", path("l.json"), *keys, *more)
        r = run(*words, "--", program(), "shares", "1.5")
        if r.code == 3:
            raise Skip(r.err.strip().splitlines()[-1])
        assert r.code == 0, r.err
        numbers = set(re.findall(r"^goroutine (\d+)$", r.out, re.M))
        events = [o for o in rows("l.json") if o["type"] == "call"]
        labelled = [o for o in events if "labels" in o]
        since = events[events.index(labelled[0]):] if labelled else []  # until then nobody has looked at the process
        assert len(labelled) == len(since) > 50, (len(labelled), len(since), len(events), r.err)
        for o in labelled:
            assert o["labels"]["goroutine"] in numbers, (o, numbers)
            assert o["labels"]["http_route"] == {"main.work_a": "/a", "main.work_b": "/b"}[o["function"]], o
        assert {o["labels"]["goroutine"] for o in labelled} == numbers, numbers


@test(long=True)
def go_labels_of_a_program_that_mostly_rests():
    if not has_json():
        raise Skip("this build writes no JSON")
    target = subprocess.Popen([program(), "late", "12"], stdout=subprocess.PIPE)
    try:
        target.stdout.readline()
        r = run("trace", f"uprobe:{program()}:main.work_a", "-q", "--json", "-p", str(target.pid), "--label", "http_route")
        if r.code == 3:
            raise Skip(r.err.strip().splitlines()[-1])
    finally:
        target.kill()
        target.wait()
    (event,) = [o for o in map(json.loads, r.out.splitlines()) if o["type"] == "call"]
    assert event.get("labels") == {"http_route": "/a"}, event


@test(long=True)
def go_labels_however_it_is_linked():
    """Stripped, position-independent, with C code and the system's linker."""
    with_c = SOURCE.replace("import (", 'import "C"\n\nimport (', 1)
    ways = [("stripped", SOURCE, ("-ldflags=-s -w",)), ("pie", SOURCE, ("-buildmode=pie",)), ("c", with_c, ("-ldflags=-linkmode=external",)),
            ("c-pie", with_c, ("-buildmode=pie", "-ldflags=-linkmode=external -s"))]
    for name, source, flags in ways:
        p = program(*flags, name="go-labels-" + name, source=source)
        profiled([p, "shares", "0.8"], "-q", "-F", "499", "--label", "http_route", "-f", "folded", "-o", path("l.folded"))
        counts = shares("l.folded")
        assert counts.get(("/a", "work_a"), 0) > 20 and counts.get(("/b", "work_b"), 0) > 5, (name, counts)
        assert not {k for k in counts if k in (("/a", "work_b"), ("/b", "work_a"), ("/b", "work_none"), ("/a", "work_none"))}, (name, counts)


@test
def doctor_tells_of_goroutines():
    p = subprocess.Popen([program(), "waits", "20"], stdout=subprocess.PIPE)
    try:
        p.stdout.readline()
        text = good("doctor", "-p", str(p.pid)).out
        assert "goroutines of go-labels: their labels by any key that the program uses, their numbers by goroutine: profile --label KEY." in text, text
        if has_json():
            row = doctor_row(p.pid, "goroutines")
            assert row["labels"] and row["numbers"] and row["why_not"] is None and row["pid"] == p.pid, row
    finally:
        p.kill()
        p.wait()
    assert "goroutines of" not in good("doctor", "-p", str(os.getpid())).out
