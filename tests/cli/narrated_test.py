"""--syscalls and --syscalls=json: of every command that makes such calls, from the first to the last."""
from harness import *
from kernel_objects import *

SOURCE = '.map m array key u32 value u64 entries 2\n.program p "socket"\nr1 = m ll\nr0 = 0\nexit\n'


def calls_of(stderr):
    """The lines of JSON; what else was said."""
    lines = stderr.splitlines()
    calls = [json.loads(line) for line in lines if line.startswith("{")]
    for call in calls:
        assert call["type"] == "syscall" and set(call) == {"type", "call", "request", "arguments", "result", "errno", "why"}, call
        assert (call["result"] is None) == (call["errno"] is not None), call
        assert call["call"] in ("bpf", "perf_event_open", "ioctl", "mmap") and (call["request"] is None) == (call["call"] != "bpf"), call
    return calls, [line for line in lines if not line.startswith("{")]


@test
def calls_as_json_have_the_fields_of_the_text():
    needs_root()
    file = written("narrated.asm", SOURCE)
    r = good("load", "--syscalls=json", file)
    calls, rest = calls_of(r.err)
    assert not [line for line in rest if line.startswith("bpf(")], rest
    created = next(c for c in calls if c["request"] == "BPF_MAP_CREATE" and c["arguments"].get("map_name") == '"m"')
    assert created["arguments"]["map_type"] == "BPF_MAP_TYPE_ARRAY" and created["arguments"]["max_entries"] == 2, created
    assert created["arguments"]["size"] > 40 and created["result"] > 2, created
    loaded = [c for c in calls if c["request"] == "BPF_PROG_LOAD" and c["arguments"].get("prog_name") == '"p"'][-1]
    assert f"map[{created['result']}]" in loaded["arguments"]["insns"] or "exit" in loaded["arguments"]["insns"], loaded
    text = good("load", "--syscalls", file).err
    assert len([line for line in text.splitlines() if re.match(r"(bpf|mmap|ioctl|perf_event_open)\(", line)]) == len(calls), (text, calls)
    refused, _ = calls_of(run("load", "--syscalls=json", written("refused.asm", '.program p "socket"\nr0 = r3\nexit\n')).err)
    assert any(c["errno"] == "EACCES" and c["result"] is None for c in refused), refused


@test
def every_command_that_reads_or_asks_narrates():
    file = written("narrated.asm", SOURCE)
    good("asm", "-o", path("narrated.o"), file)
    for words in (["inspect", path("narrated.o")], ["disasm", path("narrated.o")], ["verify", file], ["explain", file], ["step", "--trace", path("narrated.o")],
                  ["asm", file], ["helper", "map_lookup_elem"], ["exec", file], ["bench", "--emulate", "--repeat", "60", file], ["usdt", "list", "/bin/true"],
                  ["prog", "list"], ["map", "list"], ["doctor"], ["run", "--check", written("narrated.exp", "wait 1us\n")]):
        for form in ("--syscalls", "--syscalls=json"):
            r = run(*words, form)
            assert r.code in (0, 1, 3), (words, r.err)
            if form == "--syscalls=json":
                _, rest = calls_of(r.err)
                assert not [line for line in rest if re.match(r"(bpf|mmap|ioctl|perf_event_open)\(", line)], (words, rest)
    calls, _ = calls_of(good("inspect", "--syscalls=json", path("narrated.o")).err)
    assert any(c["call"] == "mmap" and c["result"].startswith("0x") for c in calls), calls
    bad(2, r"--syscalls: 'xml' isn't json, the only word that it may be given", "inspect", "--syscalls=xml", path("narrated.o"))
    bad(2, r"--check takes no value, but was given 'json'", "run", "--check=json", file)
