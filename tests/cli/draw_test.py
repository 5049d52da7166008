"""rawbpf draw: an object as a picture."""
import xml.dom.minidom

from harness import *

COUNT = """.license "GPL"
.map counts array key u32 value u64 entries 1
.program on_exec "raw_tp/sched_process_exec"
    *(u32 *)(r10 - 4) = 0
    r1 = counts ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = 1
    lock *(u64 *)(r0 + 0) += r1
out:
    r0 = 0
    exit
"""


def drawn(text):
    """The picture's texts; it is well-formed, and everything is in it."""
    document = xml.dom.minidom.parseString(text)
    svg = document.documentElement
    width, height = int(svg.getAttribute("width")), int(svg.getAttribute("height"))
    for rect in svg.getElementsByTagName("rect"):
        x, y, w, h = (int(rect.getAttribute(n) or 0) for n in ("x", "y", "width", "height"))
        assert 0 <= x and 0 <= y and x + w <= width and y + h <= height, rect.toxml()
    for each in svg.getElementsByTagName("text"):
        words = each.firstChild.data if each.firstChild else ""
        assert int(each.getAttribute("x")) + len(words) * 7 <= width and int(each.getAttribute("y")) <= height, each.toxml()
    assert "http" not in text.replace("http://www.w3.org/2000/svg", ""), "it needs the network"
    return [each.firstChild.data for each in svg.getElementsByTagName("text") if each.firstChild]


@test
def draw_assembly_as_nobody():
    written("count.asm", COUNT)
    r = as_nobody("draw", path("count.asm"))
    texts = drawn(r.out)
    assert r.code == 0 and not r.err, (r.code, r.err)
    for wanted in ("counts: array, 1 entry", "key of counts: unsigned int", "written by 0", "4 of 512 bytes", "   5  call bpf_map_lookup_elem"):
        assert wanted in texts, (wanted, texts)
    good("draw", path("count.asm"), "-o", path("count.svg"))
    assert read("count.svg") == r.out
    # From standard input; and one that is refused is drawn, with the reason.
    bad_one = run("draw", "-", input=COUNT.replace("array", "hash").replace("if r0 == 0 goto out", "r7 = 0").encode())
    texts = drawn(bad_one.out)
    assert bad_one.code == 0 and any("refuses it: R0 invalid mem access" in t for t in texts), texts


@test
def draw_says_what_is_wrong():
    written("count.asm", COUNT)
    bad(1, r"broken.asm:1:", "draw", written("broken.asm", "wibble\n"))
    bad(1, r"nowhere.o", "draw", path("nowhere.o"))
    bad(1, r"on_exec", "draw", path("count.asm"), "--prog", "none")
    bad(1, r"it has no instructions", "draw", written("empty.asm", ".map m array key u32 value u64 entries 1\n"))
    bad(1, r"none/x.svg", "draw", path("count.asm"), "-o", path("none/x.svg"))


@test
def draw_objects_of_clang():
    clang = next((c for c in ("clang", "clang-19", "clang-16") if shutil.which(c)), None)
    if not clang:
        raise Skip("no clang")
    source = written("two.c", """struct key { unsigned pid, cpu; };
#define SEC(name) __attribute__((section(name), used))
struct { int (*type)[1]; struct key *key; unsigned long *value; int (*max_entries)[64]; } seen SEC(".maps");
static void *(*lookup)(void *map, const void *key) = (void *)1;
SEC("socket") int one(void *context) {
    struct key key = {1, 2};
    unsigned long *v = lookup(&seen, &key);
    return v ? *v : 0;
}
SEC("xdp") int two(void *context) { return 2; }
char _license[] SEC("license") = "GPL";
""")
    subprocess.run([clang, "--target=bpf", "-O2", "-g", "-c", source, "-o", path("two.o")], check=True)
    texts = drawn(good("draw", path("two.o")).out)
    for wanted in ("seen: hash, 64 entries", "key of seen: struct key", "unsigned long *v = lookup(&seen, &key);", "two"):
        assert wanted in texts, (wanted, texts)
    assert "one" not in drawn(good("draw", path("two.o"), "--prog", "two").out)
