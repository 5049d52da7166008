"""rawbpf net list: programs at interfaces, beside bpftool's answer."""
import json
import os
import shutil

from harness import *
from kernel_objects import *


def places(rows):
    return [(r["kind"], r["devname"], r["where"]) for r in rows]


@test
def net_list_has_xdp_and_tcx_with_their_links():
    needs_root()
    seen = 0
    for section, kind, value in (("xdp", ("xdp", "lo", "generic"), 2), ("tcx/ingress", ("tcx", "lo", "ingress"), -1)):
        try:
            with Attached(COUNT % {"name": "net_listed", "section": section, "value": value & 0x7fffffff if value > 0 else 0}, "-i", "lo") as a:
                rows = [r for r in json_rows(*a.inside(RB, "net", "list", "--json")) if r["devname"] == "lo"]
                assert places(rows) == [kind], rows
                program, = json_rows(*a.inside(RB, "prog", "show", "--json", "net_listed"))
                assert rows[0]["prog_id"] == program["id"] and rows[0]["name"] == "net_listed" and rows[0]["ifindex"] == 1, rows
                link, = [l for l in json_rows(*a.inside(RB, "link", "list", "--json")) if l.get("prog_id") == program["id"]]
                assert rows[0]["link_id"] == link["id"], (rows, link)
                text = run(*a.inside(RB, "net", "list"), binary=None).out.splitlines()
                assert re.match(r"KIND +INTERFACE +WHERE +PROGRAM +LINK +PRIORITY +HANDLE", text[0]), text
                assert re.match(rf"{kind[0]} +lo +{kind[2]} +{program['id']} net_listed +{link['id']} +- +-", text[1]), text
                if shutil.which("bpftool") and kind[0] == "xdp":
                    theirs = bpftool_rows(*a.inside("bpftool", "-j", "net", "list"))[0]["xdp"]
                    assert [(t["devname"], t["ifindex"], t["mode"], t["id"]) for t in theirs] == [("lo", 1, "generic", program["id"])], theirs
                seen += 1
        except Skip as reason:
            if "no such program" not in str(reason):
                raise
    assert seen, "neither xdp nor tcx"


@test
def net_list_has_filters_of_tc():
    needs_root()
    if not shutil.which("tc") or not shutil.which("ip"):
        raise Skip("needs tc and ip")
    obj = path("net_filter.o")
    good("asm", written("net_filter.asm", COUNT % {"name": "net_filter", "section": "classifier", "value": 0}), "-o", obj)
    script = f"""set -e
ip link set lo up
tc qdisc add dev lo clsact
tc filter add dev lo egress prio 7 handle 3 bpf da obj {obj} sec classifier
{RB} net list --json
bpftool -j net list || true"""
    r = run("unshare", "-n", "sh", "-c", script, binary=None)
    if r.code != 0:
        raise Skip("tc can't attach a program here: " + r.err[-200:])
    lines = [json.loads(line) for line in r.out.splitlines() if line]
    rows = [l for l in lines if isinstance(l, dict) and l["type"] == "net"]
    assert places(rows) == [("tc", "lo", "egress")] and rows[0]["priority"] == 7 and rows[0]["handle"] == 3 and rows[0]["link_id"] is None, rows
    if isinstance(lines[-1], list):
        theirs, = lines[-1][0]["tc"]
        assert (theirs["devname"], theirs.get("id", theirs.get("prog_id"))) == ("lo", rows[0]["prog_id"]), (theirs, rows)


@test
def net_list_where_there_is_nothing():
    needs_root()
    r = run("unshare", "-n", RB, "net", "list", binary=None)
    assert r.code == 0 and len(r.out.splitlines()) == 1 and not r.err, (r.code, r.out, r.err)
    bad(2, r".", "net", "list", "eth0")
    bad(2, r".", "net", "lsit")
    r = run("net", "list", "-o", "/no/such/folder/file")
    assert r.code == 1 and "/no/such/folder" in r.err, r.err
    if shutil.which("setpriv"):
        r = run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", RB, "net", "list", binary=None)
        assert r.code == 0 and "links can't be listed, so netfilter's programs are missing" in r.err, (r.code, r.err)
