"""rawbpf exec: programs on the engines; and rawbpf alone in a folder."""
import os
import re
import shutil
import subprocess

from harness import *
from bpf_objects import compile_bpf
from instructions import EXIT, MOV, engines, hex_of, sum_asm


@test
def exec_speaks_the_conformance_plugins_protocol():
    cases = [
        ((MOV(0, -2), EXIT), "", "fffffffffffffffe"),
        (((0xbf, 0, 2, 0, 0), EXIT), "", "0"),  # r2: no memory
        (((0xbf, 0, 2, 0, 0), EXIT), "01 02 03", "3"),
        (((0x71, 0, 1, 2, 0), EXIT), "11 22 33", "33"),
        (((0x79, 0, 1, 0, 0), EXIT), "8877665544332211", "1122334455667788"),
        ((MOV(0, 9), (0x73, 1, 0, 1, 0), (0x69, 0, 1, 0, 0), EXIT), "05  06", "905"),
        ((MOV(3, 4), (0xdb, 1, 3, 0, 0x01), (0xbf, 0, 3, 0, 0), EXIT), "0a" + "00" * 7, "a"),
        (((0x85, 0, 1, 0, 1), EXIT, (0xb4, 0, 0, 0, -1), EXIT), "", "ffffffff"),
        (((0x18, 0, 0, 0, 0x11111111), (0, 0, 0, 0, 0x22222222), (0xd7, 0, 0, 0, 64), EXIT), "", "1111111122222222"),
        ((MOV(0, 7), MOV(3, 0), (0x9f, 0, 3, 0, 0), EXIT), "", "7"),
        ((MOV(0, -7), MOV(3, 2), (0x3f, 0, 3, 1, 0), EXIT), "", "fffffffffffffffd"),
        (((0x20, 0, 0, 0, 1), EXIT), "0102030405", "2030405"),  # an old packet load
    ]
    for engine in engines():
        for program, memory, expected in cases:
            old_packet_load = program[0][0] == 0x20
            if engine == "--in-kernel" and old_packet_load:
                program = ((0xbf, 0, 6, 0, 0), *program)  # the harness has put the context into r6
            r = good("exec", engine, "-", *([memory] if memory else []), input=hex_of(*program).encode())
            assert r.out == expected + "\n" and r.err == "", (engine, program, r.out, r.err)
    # The memory by its option, or first; the program without a dash.
    prog = hex_of((0x71, 0, 1, 1, 0), EXIT).encode()
    for args in (("--mem", "0a0b"), ("0a 0b",), ("0a0b", "-"), ("-", "0x0a0b")):
        assert good("exec", *args, input=prog).out == "b\n", args
    with open(path("mem.bin"), "wb") as f:
        f.write(b"\x01\x42")
    assert good("exec", "-", "--mem-file", path("mem.bin"), input=prog).out == "42\n"


@test
def exec_says_what_is_wrong():
    for text, code, message in (
        ("", 1, "it is empty"),
        ("b7 00 00", 1, "3 bytes; an instruction has 8"),
        ("hello", 1, "standard input"),
        (hex_of(MOV(0, 1)), 1, "instruction 0 .r0 = 1.: the program ends here"),
        (hex_of((0x8e, 0, 0, 0, 0), EXIT), 1, "there is no opcode 0x8e"),
        (hex_of((0x79, 0, 1, 8, 0), EXIT), 1, "a null pointer plus 8"),
        (hex_of((0x05, 0, 0, -1, 0), EXIT), 1, "stopped after 1000 instructions"),
        (hex_of((0x85, 0, 0, 0, 69), EXIT), 1, "call 69.*the emulator doesn't have this helper"),
    ):
        bad(code, message, "exec", "--limit", "1000", "-", input=text.encode())
    bad(1, "4 bytes past the end of memory, which has 12 bytes", "exec", "-", "00" * 12, input=hex_of((0x79, 0, 1, 8, 0), EXIT).encode())
    bad(2, "one program at a time", "exec", path("a.o"), path("b.o"))
    bad(2, "more than once", "exec", "-", "01", "--mem", "02", input=b"")
    bad(1, "no hex digit", "exec", "-", "--mem", "0g", input=b"")
    bad(2, "", "exec", "--in-kernel", "--emulate", "-", input=b"")
    bad(1, "No such file", "exec", path("missing.o"))
    if len(engines()) == 2:
        bad(1, "verifier refused instruction", "exec", "--in-kernel", "-", input=hex_of((0x67, 0, 0, 0, 64), EXIT).encode())


@test
def exec_compares_the_engines():
    if len(engines()) < 2:
        raise Skip("needs a kernel that runs programs for us")
    same = hex_of(MOV(0, 5), (0x7b, 1, 0, 0, 0), EXIT)
    assert good("exec", "--diff", "-", "00" * 8, input=same.encode()).out == "5\n"
    # The machines' time and random numbers differ: seen in r0, and in memory.
    clock = hex_of((0x85, 0, 0, 0, 7), EXIT)
    r = run("exec", "--diff", "-", input=clock.encode())
    assert r.code == 4 and re.search(r"r0: kernel [0-9a-f]+, emulator [0-9a-f]+", r.err), r.err
    clock = hex_of((0xbf, 6, 1, 0, 0), (0x85, 0, 0, 0, 7), (0x63, 6, 0, 4, 0), MOV(0, 0), EXIT)
    r = run("exec", "--diff", "-", "00" * 8, input=clock.encode())
    assert r.code == 4 and re.search(r"memory, byte [4-7]: kernel 0x..?, emulator", r.err), r.err
    r = good("exec", "--repeat", "1000", "-v", "-", "00" * 8, input=same.encode())
    assert re.search(r"emulator: [0-9.]+ ns a run, 3 instructions", r.err) and "memory: 05 00" in r.err, r.err
    r = good("exec", "--in-kernel", "--repeat", "1000", "-", "00" * 8, input=same.encode())
    assert re.search(r"kernel: [0-9.]+ ns a run", r.err), r.err


@test
def exec_runs_objects_with_maps_rings_loops_and_packets():
    obj = compile_bpf("exec.bpf.o", """#include <rawbpf/bpf.h>
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 16); __type(key, __u32); __type(value, __u64); } seen SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 2); __type(key, __u32); __type(value, __u64); } each SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); } ring SEC(".maps");
const volatile __u64 factor = 3;
__u64 total;
static long add(__u32 i, void *ctx) { *(__u64 *)ctx += i * factor; return 0; }
static __attribute__((noinline)) __u64 twice(__u64 x) { return x + total; }
SEC("socket")
__u64 sum(__u8 *bytes, __u64 n)
{
    __u64 all = 0;
    bpf_loop(10, add, &all, 0);
    for (int i = 0; i < 4; ++i) {
        __u32 key = bytes[i];
        __u64 one = all + key, *old = bpf_map_lookup_elem(&seen, &key);
        if (old) *old += one; else bpf_map_update_elem(&seen, &key, &one, 0);
        __u64 *record = bpf_ringbuf_reserve(&ring, 8, 0);
        if (record) { *record = one; bpf_ringbuf_submit(record, 0); }
    }
    __u32 zero = 1;
    __u64 *slot = bpf_map_lookup_elem(&each, &zero);
    if (slot) *slot += all;
    total = all;
    return twice(all) << 32;
}
SEC("xdp")
int drop_short(struct xdp_md *ctx)
{
    __u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    if (data + 15 > end) return 1;
    data[14] ^= 0xff;
    return data[14];
}
char LICENSE[] SEC("license") = "GPL";
""")
    assert good("exec", "--prog", "sum", obj, "01020301").out == "10e00000000\n"  # (135 + 135) << 32
    assert good("exec", "--prog", "drop_short", obj, "00" * 14).out == "1\n"
    assert good("exec", "--prog", "drop_short", obj, "00" * 15).out == "ff\n"
    r = run("exec", obj)
    assert r.code == 2 and "there are 2 programs: sum, drop_short" in r.err, r.err
    if len(engines()) < 2:
        raise Skip("all but the comparison: needs a kernel that runs programs for us")
    assert good("exec", "--diff", "--prog", "sum", obj, "01020301").out == "10e00000000\n"
    assert good("exec", "--diff", "--prog", "drop_short", obj, "00" * 20).out == "ff\n"


@test
def one_file_is_the_whole_program():
    folder = path("alone")
    os.mkdir(folder)
    alone = os.path.join(folder, "rawbpf-board")
    shutil.copy(os.path.realpath(RB), alone)
    r = subprocess.run([alone, "asm", sum_asm()], capture_output=True, text=True, check=False)
    assert r.returncode == 0, r.stderr
    r = subprocess.run([alone, "--help"], capture_output=True, text=True, check=False)
    assert r.returncode == 0 and " profile " in r.stdout and " disasm " in r.stdout, r.stdout
    r = subprocess.run([alone, "nonsense"], capture_output=True, text=True, check=False)
    assert r.returncode == 2 and "there is no command nonsense" in r.stderr, r.stderr
    r = subprocess.run([alone, "exec", sum_asm(), "01020304"], capture_output=True, text=True, check=False)
    assert r.returncode == 0 and r.stdout == "a\n", r.stderr


@test
def exec_takes_source_text():
    for engine in engines():
        assert good("exec", engine, sum_asm(), "01020304").out == "a\n"
        assert good("exec", engine, "-", input=b"# hex\nb7 00 00 00 2a 00 00 00# r0 = 42\n95 00 00 00 00 00 00 00 #").out == "2a\n"
    bad(1, r"2:1: there is no register r11", "exec", "-", input=b"r0 = 5\nr11 = 3\nexit\n")
    bad(1, r"\^", "exec", "-", input=b"r0 = 5\nr11 = 3\nexit\n")
