"""Functions of Go programs: arguments and results where Go has them, and Go's values as such."""
import json
import os
import re

from go_programs import build_go
from harness import *

SOURCE = r"""
package main

import (
	"errors"
	"fmt"
	"os"
)

type item struct {
	I int32
	S string
}
type srv struct{ name string }

func (s *srv) String() string { return s.name }

//go:noinline
func (s *srv) Handle(id int, key string) (int, error) {
	if id == 1 {
		return -1, errors.New("no such key")
	}
	return id*2 + len(key), nil
}

//go:noinline
func mixed(a int8, f float64, b bool, it item, buf []byte, xs []int32, u uint16, names []string) string {
	return fmt.Sprint(a, f, b, it, len(buf), len(xs), u, len(names))
}

//go:noinline
func faces(e error, v interface{}, s fmt.Stringer) error { return e }

//go:noinline
func many(a, b, c, d, e, f, g, h int, s string, i, j int, arr [2]int, one [1]int) (int, string, []byte) {
	return a + b + c + d + e + f + g + h + len(s) + i + j + arr[1] + one[0], s, []byte(s)
}

func main() {
	s := &srv{"a"}
	for i := 0; i < 3; i++ {
		s.Handle(i-1, fmt.Sprintf("key%d", i))
	}
	mixed(-3, 1.5, true, item{7, "seven"}, []byte("by\x01\"\n"), []int32{1, -2, 3}, 65535, []string{"x"})
	faces(errors.New("boom"), 42, s)
	faces(nil, "text", nil)
	faces(os.ErrNotExist, s, nil)
	many(1, 2, 3, 4, 5, 6, 7, 8, "nine", 10, 11, [2]int{12, 13}, [1]int{14})
}
"""


def calls_of(program, function, *options):
    """The lines of its calls, without what is in front of the name."""
    r = good("trace", f"uprobe:{program}:{function}", *options, "--", program)
    lines = re.findall(r"^\[\S+\] \S+\[\d+\]: (.*)", r.out, re.M)
    assert lines, r.out + r.err
    return lines


HANDLE = "func (s *srv) Handle(id int, key string) (int, error)"
MIXED = "a int8, f float64, b bool, it struct{I int32; S string}, buf []byte, xs []int32, u uint16, names []string"
MANY = "(a, b, c, d, e, f, g, h int, s string, i, j int, arr [2]int, one [1]int) (int, string, []byte)"


def check_arguments(program, sig):
    handle = "main.(*srv).Handle"
    lines = calls_of(program, handle, *sig(HANDLE))
    assert [re.sub(r"s=0x[0-9a-f]+", "s=P", line) for line in lines] == [
        f'{handle}(s=P, id={i - 1}, key="key{i}")' for i in range(3)], lines
    lines = calls_of(program, "main.mixed", *sig(MIXED))
    assert re.fullmatch(r'main\.mixed\(a=-3, f=\?, b=true, it\.I=7, it\.S="seven", buf="by\\x01\\"\\n", xs=\[3\]\{1, -2, 3\}, '
                        r'u=65535, names=\[1\]\{"x"\}\)', lines[0]), lines
    lines = calls_of(program, "main.faces", *sig("e error, v any, s fmt.Stringer"))
    assert lines[0].startswith('main.faces(e=*errors.errorString("boom"), v=int(42), s=*main.srv(0x'), lines
    assert lines[1] == 'main.faces(e=nil, v=string("text"), s=nil)', lines
    lines = calls_of(program, "main.many", *sig(MANY))
    assert lines == ['main.many(a=1, b=2, c=3, d=4, e=5, f=6, g=7, h=8, s="nine", i=10, j=11, arr[0]=12, arr[1]=13, one[0]=14)'], lines


@test
def arguments_of_go_functions_by_a_signature():
    program = build_go("go-plain", SOURCE)
    check_arguments(program, lambda text: ["--sig", text])
    # C's words say how wide, Go's convention says where.
    lines = calls_of(program, "main.(*srv).Handle", "--sig", "long (void *s, int id, const char *key, unsigned long key_len)")
    assert [re.sub(r"s=0x[0-9a-f]+", "s=P", line) for line in lines] == [
        f'main.(*srv).Handle(s=P, id={i - 1}, key="key{i}")' for i in range(3)], lines
    # Filters and JSON see the same values.
    out = good("trace", f"uprobe:{program}:main.(*srv).Handle", "--sig", HANDLE, "--filter", "id == 1 && key_len == 4", "--json", "--",
               program).out
    events = [e for e in map(json.loads, out.splitlines()) if e["type"] == "call"]
    assert [{a["name"]: a["value"] for a in e["args"][1:]} for e in events] == [{"id": 1, "key": "key2"}], out
    out = good("trace", f"uprobe:{program}:main.mixed", "--sig", MIXED, "--json", "--", program).out
    event = [e for e in map(json.loads, out.splitlines()) if e["type"] == "call"][0]
    assert [a["value"] for a in event["args"]][:8] == [-3, None, True, 7, "seven", "by\x01\"\n", [1, -2, 3], 65535], event
    bad(1, "--sig: type `item` isn't known", "trace", f"uprobe:{program}:main.mixed", "--sig", "a string, it item", "--", program)


HIDDEN = r"""
package main

import (
	"fmt"
	"strings"
	"unsafe"
)

//go:noinline
func blank(_ int, s string, _ []byte, n int) (_ int, err error) { fmt.Sprint(s); return n, nil }

//go:noinline
func generic[K comparable, V any](k K, v V, n int) int { return n + 1 }

type T struct {
	_ int32
	A int8
	B string
}

//go:noinline
func (t T) Val(x float32, e struct{}, z [0]int, m map[string]int, r rune) string { return t.B }

//go:noinline
func join(parts []string, rest ...string) []string {
	if len(parts) == 0 {
		return nil
	}
	return parts[1:]
}

func main() {
	join([]string{"", "a\"b", strings.Repeat("x", 1000), "d", "e"})
	join(nil, *(*string)(unsafe.Pointer(&[2]uintptr{16, 3})), "after")
	blank(1, "two", nil, 4)
	generic("key", 3.5, 7)
	generic(5, "val", 8)
	T{0, 2, "three"}.Val(1, struct{}{}, [0]int{}, nil, 'x')
	n := 10
	fs := []func(a string) int{func(a string) int { n++; return n + len(a) }}
	fs[0]("closure")
}
"""


ON_STACK = r"""
package main

//go:noinline
func onArray(_ [3]int, b [2]int, c int) int { return b[0] + c }

//go:noinline
func onWords(_, _, _, _, _, _, _, _, _, _ int, b int, c string) int { return b + len(c) }

func main() {
	println(onArray([3]int{1, 2, 3}, [2]int{4, 5}, 6), onWords(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, "twelve"))
}
"""


@test(long=True)
def arguments_of_go_functions_by_dwarf():
    check_arguments(build_go("go-plain", SOURCE), lambda text: [])
    check_arguments(build_go("go-dwarf-packed", SOURCE, "-ldflags=-compressdwarf=true"), lambda text: [])
    check_arguments(build_go("go-unoptimized", SOURCE, "-gcflags=-N -l"), lambda text: [])
    # Parameters that no name is known of take registers as well.
    program = build_go("go-hidden", HIDDEN)
    # What is called `_` isn't in the DWARF before Go 1.25.
    lines = [re.sub(r'arg0=1, (s="two", )arg2="", ', r"\1", line) for line in calls_of(program, "main.*") if not line.startswith(("main.main()", "main.join("))]
    assert [re.sub(r"\[go\.shape[^()]*\]|main\.main\.func\d+", "F", line) for line in lines] == [
        'main.blank(s="two", n=4)', 'main.genericF(k="key", v=?, n=7)', 'main.genericF(k=5, v="val", n=8)',
        'main.T.Val(t._=0, t.A=2, t.B="three", x=?, m=0x0, r=120)', 'F(a="closure")'], lines
    # And places on the stack: registers are used up, or are too few.
    for flags in [], ["-gcflags=-N -l"]:
        lines = [re.sub(r"\b(?:_|arg\d+)(?:\[\d\])?=[^,)]*(?:, )?", "", line)
                 for line in calls_of(build_go(f"go-on-stack{len(flags)}", ON_STACK, *flags), "main.on*")]
        assert lines[0] == "main.onArray(b[0]=4, b[1]=5, c=6)", lines
        if not flags:
            assert lines[1] == 'main.onWords(b=11, c="twelve")', lines
    # Strings of a slice: the first four, each as far as there is room.
    program = build_go("go-hidden", HIDDEN)
    lines = calls_of(program, "main.join", "-r", "--string", "16")
    assert lines[0] == 'main.join(parts=[5]{"", "a\\"b", "xxxxxxxxxxxxxxxx"..., "d", ...}, rest=[0]{})', lines
    assert lines[1].startswith('main.join() = [4]{"a\\"b", "xxxxxxxxxxxxxxxx"..., "d", "e"}  '), lines
    assert lines[2] == 'main.join(parts=[0]{}, rest=[2]{<fault>0x10, "after"})', lines
    out = good("trace", f"uprobe:{program}:main.join", "--json", "--string", "16", "--", program).out
    args = [[a["value"] for a in e["args"]] for e in map(json.loads, out.splitlines()) if e["type"] == "call"]
    assert args[1] == [[], [None, "after"]] and args[0][0][:2] == ["", 'a"b'], args
    # Without it the registers' words come as they are, and it is said.
    r = good("trace", f"uprobe:{build_go('go-no-dwarf', SOURCE, '-ldflags=-w')}:main.mixed", "--", build_go("go-no-dwarf", SOURCE))
    assert "no DWARF says what its functions take" in r.err and re.search(r"main\.mixed\(arg0=0x\w*fd, arg1=0x\w*1, arg2=0x\w*7, arg3=0x\w+, arg4=0x5, ", r.out), r


WANDERING = r"""
package main

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"time"
)

//go:noinline
func deep(n, id int) (int, error) {
	var pad [200]byte
	pad[n&127] = byte(id)
	if n == 0 {
		runtime.Gosched()
		time.Sleep(time.Millisecond)
		return int(pad[0]), nil
	}
	got, err := deep(n-1, id)
	if n == 5 && id == 3 {
		err = errors.New("five")
	}
	return got, err
}

//go:noinline
func throws(s string) (out string) {
	defer func() { out = recover().(string) + "!" }()
	panic(s)
}

func main() {
	var all sync.WaitGroup
	for id := 0; id < 8; id++ {
		all.Add(1)
		go func(id int) {
			defer all.Done()
			if got, _ := deep(40, id); got != id {
				os.Exit(7)
			}
		}(id)
	}
	all.Wait()
	if throws("x") != "x!" {
		os.Exit(8)
	}
}
"""


@test
def go_functions_return_by_their_return_instructions():
    program = build_go("go-plain", SOURCE)
    lines = calls_of(program, "main.(*srv).Handle", "-r")
    results = [re.sub(r" +[0-9.]+ [mun]?s$", "", line) for line in lines[1::2]]
    assert results == ['main.(*srv).Handle() = (2, nil)', 'main.(*srv).Handle() = (4, nil)',
                       'main.(*srv).Handle() = (-1, *errors.errorString("no such key"))'], lines
    lines = calls_of(program, "main.many", "-r", "--sig", MANY)
    assert re.fullmatch(r'main\.many\(\) = \(88, "nine", "nine"\)  [0-9.]+ \S+', lines[1]), lines
    lines = calls_of(program, "main.(*srv).Handle", "--errors")
    assert len(lines) == 1 and re.search(r'id=1, key="key2"\) = \(-1, \*errors\.errorString\("no such key"\)\)  ', lines[0]), lines
    out = good("trace", "-r", f"uprobe:{program}:main.faces", "--json", "--", program).out
    returned = [e["ret"] for e in map(json.loads, out.splitlines()) if e["type"] == "return"]
    assert returned == ['*errors.errorString("boom")', None, '*errors.errorString("file does not exist")'], returned


@test
def go_functions_are_paired_by_goroutine():
    # 8 goroutines, 41 calls each on stacks that grow and move, in whichever thread there is.
    program = build_go("go-wandering", WANDERING)
    r = good("trace", "-r", f"uprobe:{program}:main.deep", "--json", "--", program)
    assert "exited with status 0" in r.err, r.err
    objects = [json.loads(line) for line in r.out.splitlines()]
    calls = [e for e in objects if e["type"] == "call"]
    returns = [e for e in objects if e["type"] == "return"]
    assert len(calls) == len(returns) == 8 * 41, (len(calls), len(returns))
    assert all(e["depth"] == 40 - e["args"][0]["value"] for e in calls), [e for e in calls if e["depth"] != 40 - e["args"][0]["value"]][:2]
    assert all(e["duration_ns"] >= 1000000 for e in returns), min(e["duration_ns"] for e in returns)
    degraded = {k: v for k, v in ledger_of(objects)["degraded"].items() if v}
    assert not degraded, degraded
    # The kernel's pairing, which sees the arguments at the return.
    r = good("trace", "--min-duration", "1ms", f"uprobe:{program}:main.deep", "--json", "--", program)
    pairs = [(e["args"][0]["value"], e["args"][1]["value"], e["ret"]) for e in map(json.loads, r.out.splitlines()) if e["type"] == "return"]
    assert len(pairs) == 8 * 41 and len({p[:2] for p in pairs}) == 8 * 41, len(pairs)
    assert all(ret[0] == who for _, who, ret in pairs), pairs[:3]
    assert sum(ret[1] is not None for _, _, ret in pairs) == 36, [p for p in pairs if p[2][1]][:3]
    # Counted once, though a stack that grows begins its function again.
    assert re.search(r"main\.deep *: 328 calls", good("trace", "--count", f"uprobe:{program}:main.deep", "--", program).out)
    # A panic that was recovered from: the function returns nevertheless.
    lines = calls_of(program, "main.throws", "-r")
    assert len(lines) == 2 and '= "x!"' in lines[1], lines


@test
def go_functions_are_listed_in_gos_order():
    """The name before its type; C's functions have it the other way round."""
    program = build_go("go-plain", SOURCE)
    listed = good("trace", "--list", f"uprobe:{program}:main.mixed").out
    assert ":main.mixed(a int8, f float64, b bool, it.I int32, it.S string, buf []uint8, xs []int32, u uint16, names []string)\n" in listed, listed
    listed = good("trace", "--list", f"uprobe:{program}:main.(*srv).Handle", "--sig", "(id int, key string) (int, error)").out
    assert ":main.(*srv).Handle(id int, key string)\n" in listed, listed
    assert "int fd, const char *" in good("trace", "--list", "uprobe:libc.so.6:openat", "--sig", "int (int fd, const char *path)").out


@test(long=True)
def go_functions_of_stripped_programs():
    handle = "main.(*srv).Handle"
    for name, flags in (("go-stripped", ["-ldflags=-s -w"]), ("go-stripped-pie", ["-ldflags=-s -w", "-buildmode=pie"])):
        program = build_go(name, SOURCE, *flags)
        assert handle in good("trace", "--list", f"uprobe:{program}:main.*").out
        lines = calls_of(program, handle, "-r", "--sig", HANDLE)
        assert [re.sub(r"s=0x[0-9a-f]+|  [0-9.]+ \S+$", "", line) for line in lines[:4]] == [
            f'{handle}(, id=-1, key="key0")', f"{handle}() = (2, nil)", f'{handle}(, id=0, key="key1")', f"{handle}() = (4, nil)"], lines
        # Interfaces by their type's name, as the program's own description has it.
        lines = calls_of(program, "main.faces", "--sig", "e error, v any, s fmt.Stringer")
        assert lines[0].startswith('main.faces(e=*errors.errorString("boom"), v=int(42), s=*main.srv(0x'), lines
        assert "main.faces(e=nil, " in lines[1] and lines[1].endswith("s=nil)"), lines


CLOCKS = r"""
package main

import "time"

//go:noinline
func now(n int) (sum int64) {
	for i := 0; i < n; i++ {
		sum += time.Now().UnixNano() & 7
	}
	return
}

//go:noinline
func since(n int) (sum int64) {
	for begin, i := time.Now(), 0; i < n; i++ {
		sum += int64(time.Since(begin)) & 7
	}
	return
}

func main() {
	for begin, sum := time.Now(), int64(0); time.Since(begin) < 2*time.Second; {
		sum += now(1000) + since(1000)
	}
}
"""


@test
def stacks_of_go_that_asks_for_the_time_are_whole():
    """time.Now calls the vdso on the thread's own stack, from the goroutine's."""
    for name, flags in (("go-clocks", []), ("go-clocks-stripped", ["-ldflags=-s -w"])):
        r = good("profile", "-F", "499", "-f", "json", "--", build_go(name, CLOCKS, *flags))
        samples = [sample for sample in map(json.loads, r.out.splitlines()) if sample["type"] == "sample" and sample.get("user")]
        stacks = [[frame["symbol"] for frame in sample["user"]] for sample in samples]
        # Not the first: the runtime's own threads; nor those of the time before its tables were made.
        clocks = [(stack, sample["user_end"]) for stack, sample in zip(stacks, samples) if sample["user"][0]["module"] == "[vdso]"]
        assert len(clocks) > 100, (name, len(clocks), r.err)
        right = sum(end == "root" and stack[-2] == "runtime.main" and stack[-1].startswith("runtime.goexit") and
                    (("time.now" in stack and "time.Now" in stack) or ("runtime.nanotime" in stack and "time.Since" in stack))
                    for stack, end in clocks)
        assert right > 0.98 * len(clocks), (name, right, len(clocks), [c for c in clocks if c[1] != "root"][:3], r.err)
        # Before it switches: the caller is in the stack, too.
        for stack in stacks:
            if stack[0] == "time.now" and "main.main" in stack:
                assert stack[1] in ("time.Now", "main.now", "main.since"), stack
