"""Messages of Protocol Buffers, as protoc shows them."""
import gzip
import json
import re
import subprocess

from harness import *

PPROF = """syntax = "proto3";
message ValueType { int64 type = 1; int64 unit = 2; }
message Label { int64 key = 1; int64 str = 2; int64 num = 3; int64 num_unit = 4; }
message Sample { repeated uint64 location_id = 1; repeated int64 value = 2; repeated Label label = 3; }
message Mapping { uint64 id = 1; uint64 memory_start = 2; uint64 memory_limit = 3; uint64 file_offset = 4; int64 filename = 5;
  int64 build_id = 6; bool has_functions = 7; bool has_filenames = 8; bool has_line_numbers = 9; bool has_inline_frames = 10; }
message Line { uint64 function_id = 1; int64 line = 2; }
message Location { uint64 id = 1; uint64 mapping_id = 2; uint64 address = 3; repeated Line line = 4; bool is_folded = 5; }
message Function { uint64 id = 1; int64 name = 2; int64 system_name = 3; int64 filename = 4; int64 start_line = 5; }
message Profile { repeated ValueType sample_type = 1; repeated Sample sample = 2; repeated Mapping mapping = 3;
  repeated Location location = 4; repeated Function function = 5; repeated string string_table = 6; int64 drop_frames = 7;
  int64 keep_frames = 8; int64 time_nanos = 9; int64 duration_nanos = 10; ValueType period_type = 11; int64 period = 12;
  repeated int64 comment = 13; int64 default_sample_type = 14; }
"""


def decoded_pprof(name):
    """A pprof file through protoc, by the public field numbers."""
    with open(path(name), "rb") as f:
        packed = f.read()
    with open(path("profile.proto"), "w") as f:
        f.write(PPROF)
    r = subprocess.run(["protoc", "-I", WORK, "--decode", "Profile", "profile.proto"], input=gzip.decompress(packed), capture_output=True)
    assert r.returncode == 0, r.stderr.decode()
    text = r.stdout.decode("utf-8")
    assert not re.search(r"^\s*\d+[: ]", text, re.M), "a field that profile.proto doesn't have"
    return protobuf_text(text)


def one(message, field, default=0):
    values = message.get(field, [default])
    assert len(values) == 1, (field, values)
    return values[0]


def protobuf_text(text):
    """protoc's text format: {field: [values]}, messages as dictionaries."""
    stack = [{}]
    for line in text.splitlines():
        line = line.strip()
        if line == "}":
            stack.pop()
        elif line.endswith(" {"):
            stack.append({})
            stack[-2].setdefault(line[:-2], []).append(stack[-1])
        else:
            name, value = line.split(": ", 1)
            value = json.loads(value) if value.startswith('"') and "\\" not in value else int(value) if re.fullmatch(r"-?\d+", value) else value
            stack[-1].setdefault(name, []).append(value)
    assert len(stack) == 1, text
    return stack[0]
