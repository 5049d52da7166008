"""rawbpf map dump: what loaded maps hold, beside bpftool's answer."""
import json
import os
import re
import shutil

from bpf_objects import compile_bpf
from harness import *
from kernel_objects import *

BPFFS = "/sys/fs/bpf"
SOURCE = """
#include <rawbpf/bpf.h>

enum kind { QUIET, LOUD };
struct flow { __u32 pid; enum kind kind; char comm[16]; };
struct seen { __u64 bytes; __s32 error; __u16 ports[2]; };
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 20000); __type(key, struct flow); __type(value, struct seen); } flows SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 10); __type(key, __u32); __type(value, __u64); } slots SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_HASH); __uint(max_entries, 10); __type(key, __u32); __type(value, __u32); } each_cpu SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); } ring SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PROG_ARRAY); __uint(max_entries, 4); __type(key, __u32); __type(value, __u32); } calls SEC(".maps");
__u64 ticks = 4711;
struct seen last;

SEC("socket")
int entries_prog(struct __sk_buff *ctx)
{
    __u32 key = 0;
    ticks++;
    last.error = -1;
    bpf_ringbuf_query(&ring, 0);
    bpf_tail_call(ctx, &calls, 1);
    struct flow f = {};
    return bpf_map_lookup_elem(&flows, &f) && bpf_map_lookup_elem(&slots, &key) && bpf_map_lookup_elem(&each_cpu, &key);
}

char LICENSE[] SEC("license") = "GPL";
"""


class Pinned:
    """The object above, loaded and pinned below a folder of its own until the block ends."""

    def __enter__(self):
        needs_root()
        if not os.path.ismount(BPFFS):
            raise Skip(f"needs a bpf file system at {BPFFS}")
        self.folder = f"{BPFFS}/entries_test_{os.getpid()}"
        good("load", "--pin", self.folder, compile_bpf("entries", SOURCE))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def map(self, name):
        """Its pin. A map of global variables has the object's name in front."""
        found, = [one for one in os.listdir(f"{self.folder}/maps") if one == name or name.startswith("_") and one.endswith(name)]
        return f"{self.folder}/maps/{found}"


def filled(pin, entries):
    """Puts (key, value) in hexadecimal bytes into a map, by bpftool."""
    if not shutil.which("bpftool"):
        raise Skip("needs bpftool")
    file = written("update.batch", "".join(f"map update pinned {pin} key hex {key.hex(' ')} value hex {value.hex(' ')}\n" for key, value in entries))
    assert run("bpftool", "batch", "file", file, binary=None).code == 0


def flow(n):
    return n.to_bytes(4, "little") + (n % 3).to_bytes(4, "little") + (b"task-%d" % n).ljust(16, b"\0")


def seen(n):
    return (n * 10**15).to_bytes(8, "little") + (-n).to_bytes(4, "little", signed=True) + n.to_bytes(2, "little") + b"\1\0"


def entries_of(rows):
    assert rows[-1]["type"] == "map_contents" and rows[-1]["entries"] == len(rows) - 1, rows[-1]
    return rows[:-1]


def as_numbers(value):
    """Numbers beyond 2^53 are text here, so that readers with doubles lose nothing."""
    if isinstance(value, dict):
        return {k: as_numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [as_numbers(v) for v in value]
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?\d{16,}", value) else value


@test
def map_dump_is_what_bpftool_says():
    with Pinned() as p:
        filled(p.map("flows"), [(flow(n), seen(n)) for n in range(12000)])
        filled(p.map("slots"), [(n.to_bytes(4, "little"), (n * n).to_bytes(8, "little")) for n in (0, 3, 7)])
        filled(p.map("each_cpu"), [(b"\5\0\0\0", b"\x2a\0\0\0")])
        for name, count in (("flows", 12000), ("slots", 10), ("each_cpu", 1)):
            theirs = bpftool_rows("bpftool", "-j", "map", "dump", "pinned", p.map(name))
            ours = entries_of(json_rows(RB, "map", "dump", "--json", p.map(name)))
            assert len(ours) == len(theirs) == count, (name, len(ours), len(theirs))
            by_key = {tuple(e["key"]): e for e in ours}
            for entry in theirs:
                mine = dict(by_key[tuple(entry["key"])])
                assert mine.pop("type") == "entry"
                formatted, wanted = mine.pop("formatted"), entry.pop("formatted")
                assert mine == entry, (name, mine, entry)
                if name == "flows":  # text as text, enumerators by name: bpftool has numbers
                    n = wanted["key"]["pid"]
                    assert formatted["key"] == {"pid": n, "kind": ["QUIET", "LOUD", 2][n % 3], "comm": f"task-{n}"}, formatted
                    assert as_numbers(formatted["value"]) == {"bytes": n * 10**15, "error": -n, "ports": [n, 1]} == wanted["value"], (formatted, wanted)
                else:
                    assert formatted == wanted, (name, formatted, wanted)
        theirs, = bpftool_rows("bpftool", "-j", "map", "dump", "pinned", p.map("_bss"))
        ours, = entries_of(json_rows(RB, "map", "dump", "--json", p.map("_bss")))
        assert ours["formatted"]["value"] == theirs["formatted"]["value"] == {".bss": [{"last": {"bytes": 0, "error": 0, "ports": [0, 0]}}]}, (ours, theirs)


@test
def map_dump_is_for_people():
    with Pinned() as p:
        filled(p.map("flows"), [(flow(7), seen(7))])
        filled(p.map("slots"), [(b"\3\0\0\0", b"\x2a" + bytes(7))])
        head, entry, end = good("map", "dump", p.map("flows")).out.splitlines()
        assert re.fullmatch(r"map \d+ flows \(hash\): key 24 B, value 16 B, 20000 entries at most", head) and end == "1 entry", (head, end)
        assert entry == '  {.pid = 7, .kind = LOUD, .comm = "task-7"} = {.bytes = 7000000000000000, .error = -7, .ports = {7, 1}}', entry
        assert good("map", "dump", p.map("slots")).out.splitlines()[1:] == ["  3 = 42", "1 entry; 9 more are zero (--all shows them)"]
        assert good("map", "dump", "--all", p.map("slots")).out.splitlines()[-1] == "10 entries"
        assert good("map", "dump", p.map("_data")).out.splitlines()[1:] == ["  ticks = 4711", "1 entry"]
        filled(p.map("calls"), [])
        program = json_rows(RB, "prog", "show", "--json", f"{p.folder}/entries_prog")[0]["id"]
        assert run("bpftool", "map", "update", "pinned", p.map("calls"), "key", "1", "0", "0", "0", "value", "pinned", f"{p.folder}/entries_prog", binary=None).code == 0
        assert f"  1 = program {program} entries_prog\n" in good("map", "dump", p.map("calls")).out


@test
def map_dump_of_what_can_not_be_listed():
    with Pinned() as p:
        bad(1, r"map \d+ ring \(ringbuf\): its contents can't be listed: a ring is read by its reader", "map", "dump", p.map("ring"))
        bad(1, r"isn't a map, but anon_inode:bpf-prog", "map", "dump", f"{p.folder}/entries_prog")
        bad(2, r".", "map", "dump")
    bad(1, r"no map has the id 4294967295\nhint: rawbpf map list", "map", "dump", "4294967295")
    bad(1, r"no map called entries_nobody is loaded", "map", "dump", "entries_nobody")


def bpftool_lookup(pin, key):
    return bpftool_rows("bpftool", "-j", "map", "lookup", "pinned", pin, "key", "hex", *key.hex(" ").split())[0]


@test
def map_get_and_set_write_by_types_what_bpftool_reads():
    with Pinned() as p:
        flows, slots, each = p.map("flows"), p.map("slots"), p.map("each_cpu")
        key = '{.pid = 7, .kind = LOUD, .comm = "task-7"}'
        assert good("map", "set", flows, key, "{.bytes=7000000000000000, .error = -7, .ports = {7, 1}}").out == ""
        assert good("map", "get", flows, key).out == '  {.pid = 7, .kind = LOUD, .comm = "task-7"} = {.bytes = 7000000000000000, .error = -7, .ports = {7, 1}}\n'
        good("map", "set", slots, "3", "0x2a")
        good("map", "set", each, "5", "9")
        entry = json_rows(RB, "map", "get", "--json", slots, "3")
        assert [e["type"] for e in entry] == ["entry"] and entry[0]["formatted"] == {"key": 3, "value": 42}, entry
        assert good("map", "get", slots, "hex:03 00 00 00").out == "  3 = 42\n"
        if shutil.which("bpftool"):
            k = (7).to_bytes(4, "little") + (1).to_bytes(4, "little") + b"task-7".ljust(16, b"\0")
            assert bpftool_lookup(flows, k)["value"] == ["0x%02x" % b for b in (7 * 10**15).to_bytes(8, "little") + b"\xf9\xff\xff\xff\7\0\1\0"]
            assert {one["value"][0] for one in bpftool_lookup(each, b"\5\0\0\0")["values"]} == {"0x09"}
        good("map", "set", "--existing", slots, "3", "43")
        good("map", "set", "--new", each, "6", "1")
        bad(1, r"key 6: .*", "map", "set", "--new", each, "6", "1")
        bad(1, r"key 8: .*", "map", "set", "--existing", each, "8", "1")
        good("map", "delete", each, "6")
        bad(1, r"rawbpf map get: key 6: ", "map", "get", each, "6")
        bad(1, r"rawbpf map delete: key 6: ", "map", "delete", each, "6")
        good("map", "set", p.map("calls"), "1", f"{p.folder}/entries_prog")
        assert "= program " in good("map", "get", p.map("calls"), "1").out
        good("map", "pin", slots, f"{p.folder}/again")
        assert good("map", "get", f"{p.folder}/again", "3").out == "  3 = 43\n"


@test
def map_set_of_maps_without_types():
    needs_root()
    if not os.path.ismount(BPFFS) or not shutil.which("bpftool"):
        raise Skip("needs a bpf file system and bpftool")
    pins = [f"{BPFFS}/entries_plain_{os.getpid()}", f"{BPFFS}/entries_queue_{os.getpid()}"]
    try:
        for pin, kind, key in ((pins[0], "hash", "6"), (pins[1], "queue", "0")):
            r = run("bpftool", "map", "create", pin, "type", kind, "key", key, "value", "4", "entries", "4", "name", "plain", binary=None)
            assert r.code == 0, r.err
        good("map", "set", pins[0], "0a 00 00 01 00 50", "-2")
        assert bpftool_lookup(pins[0], bytes.fromhex("0a0000010050"))["value"] == ["0xfe", "0xff", "0xff", "0xff"]
        good("map", "set", pins[1], "7")
        bad(1, r'the key: "0a 00" is 2 bytes, and the map\'s are 6', "map", "get", pins[0], "0a 00")
        bad(1, r'the key: "port" is neither a number nor bytes in hexadecimal\nhint: it has 6 bytes', "map", "get", pins[0], "port")
        bad(1, r"the value: 4294967296 doesn't fit in 4 bytes", "map", "set", pins[0], "hex:0a0000010050", "4294967296")
        bad(1, r"map plain has no keys|map \d+ plain has no keys", "map", "get", pins[1], "1")
        bad(1, r"has no keys: its name and a value are all", "map", "set", pins[1], "1", "2")
        bad(1, r"its name, a key and a value are needed", "map", "set", pins[0], "1")
    finally:
        for pin in pins:
            if os.path.exists(pin):
                os.unlink(pin)


@test
def map_entries_say_what_is_wrong():
    with Pinned() as p:
        bad(1, r'the key: "x" isn.t a value of type .*: give a whole number', "map", "get", p.map("slots"), "x")
        bad(1, r"the key: it is a struct flow: write \{\.MEMBER = VALUE, \.\.\.\}", "map", "get", p.map("flows"), "7")
        bad(1, r"the key: struct flow has no member port\nhint: its members: pid, kind, comm", "map", "get", p.map("flows"), "{.port = 1}")
        bad(1, r'the key: \.kind: "LUOD" isn.t a value of type enum kind: give one of QUIET, LOUD', "map", "set", p.map("flows"), "{.kind = LUOD}", "{}")
        bad(1, r"key 10: .*\nhint: there is no entry 10: it has 10", "map", "set", p.map("slots"), "10", "1")
        bad(1, r"key 3: ", "map", "delete", p.map("slots"), "3")
        bad(1, r"no program called nobody", "map", "set", p.map("calls"), "1", "nobody")
        bad(1, r"/proc/x|bpf file system|pin", "map", "pin", p.map("slots"), "/proc/x")
        bad(2, r"--new.*--existing|--existing.*--new", "map", "set", "--new", "--existing", p.map("slots"), "1", "1")
        bad(2, r"get: KEY is missing", "map", "get", p.map("slots"))
    bad(1, r"no map has the id 4294967295", "map", "get", "4294967295", "1")
