"""rawbpf's answers beside bpftool's, field by field: what the tests of the command line here share with those in guests (tests/vm/objects)."""

MAPS = {  # type: sizes of key and value, entries, flags
    "hash": (8, 16, 10, 0), "array": (4, 8, 3, 0), "prog_array": (4, 4, 3, 0), "perf_event_array": (4, 4, 2, 0), "percpu_hash": (4, 8, 5, 1),
    "percpu_array": (4, 8, 5, 0), "stack_trace": (4, 80, 5, 0), "cgroup_array": (4, 4, 2, 0), "lru_hash": (4, 4, 40, 0), "lru_percpu_hash": (4, 4, 40, 0),
    "lpm_trie": (8, 4, 10, 1), "array_of_maps": (4, 4, 3, 0), "hash_of_maps": (8, 4, 3, 0), "devmap": (4, 4, 3, 0), "sockmap": (4, 8, 3, 0),
    "cpumap": (4, 4, 2, 0), "xskmap": (4, 4, 3, 0), "sockhash": (4, 8, 3, 0), "reuseport_sockarray": (4, 8, 3, 0), "queue": (0, 8, 3, 0),
    "stack": (0, 8, 3, 0), "devmap_hash": (4, 4, 3, 0), "ringbuf": (0, 0, 65536, 0), "bloom_filter": (0, 4, 3, 0), "user_ringbuf": (0, 0, 65536, 0),
}

COUNT = """.license "GPL"
.map %(name)s_m array key u32 value u64 entries 4
.program %(name)s "%(section)s"
    *(u32 *)(r10 - 4) = 0
    r1 = %(name)s_m ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1
out:
    r0 = %(value)d
    exit
"""

# Times differ by the moment of the question.
LOOSE = {"loaded_at": 1, "run_cnt": None, "run_time_ns": None}


def compare(theirs, ours, kind):
    """Each field of bpftool's is among ours and says the same."""
    assert ours["type"] == kind, ours
    for field, value in theirs.items():
        name = f"{kind}_type" if field == "type" else field
        assert name in ours, (field, ours)
        mine = ours[name]
        if field.endswith("type") and isinstance(value, int) and isinstance(mine, str):
            continue  # newer than this bpftool, which has no word for it
        if field == "pids":
            assert {p["pid"] for p in value} <= {p["pid"] for p in mine}, (value, mine)
        elif field == "funcs":
            as_number = lambda v: int(v, 16) if isinstance(v, str) and v.startswith("0x") else v
            same = ("addr", "offset", "ref_ctr_offset", "cookie")
            assert [{k: f[k] for k in same if k in f} for f in value] == \
                   [{k: as_number(f[k]) for k in same if k in f and k in t} for t, f in zip(value, mine)], (value, mine)
        elif isinstance(mine, str) and mine.startswith("0x"):
            assert int(mine, 16) == value, (field, mine, value)
        elif field in LOOSE:
            assert LOOSE[field] is None or abs(mine - value) <= LOOSE[field], (field, mine, value)
        else:
            assert mine == value, (field, mine, value)
