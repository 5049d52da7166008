"""Probes inside of functions: FUNCTION+OFFSET."""
import platform

from harness import *

X86 = platform.machine() == "x86_64"
# Whose instructions are known: where they begin, and what is in the first argument's register when each is reached.
STEPS = """    .globl steps
    .type steps, @function
steps:
    mov $1, %edi        # +0, 5 bytes
    mov $2, %edi        # +5
    mov $3, %edi        # +10
    ret                 # +15
    .size steps, .-steps
""" if X86 else """    .globl steps
    .type steps, %function
steps:
    mov x0, #1
    mov x0, #2
    mov x0, #3
    ret
    .size steps, .-steps
"""
BEGINS = [0, 5, 10, 15] if X86 else [0, 4, 8, 12]
MAIN = """
extern "C" void steps(long);
asm(R"(    .text
%s)");
int main() {
    for (int i = 0; i < 3; ++i) steps(7);
}
""" % STEPS


def program():
    return path("steps") if os.path.exists(path("steps")) else compile_program("steps", MAIN)


@test
def places_inside_a_function():
    for i, offset in enumerate(BEGINS[1:], 1):
        for text in (f"{offset}", f"{offset:#x}"):
            r = good("trace", f"uprobe:{program()}:steps+{text}", "--sig", "void (long n)", "--json", "--", program())
            calls = [o for o in map(json.loads, r.out.splitlines()) if o["type"] == "call"]
            assert [(o["function"], o["args"][0]["value"]) for o in calls] == [(f"steps+{offset:#x}", i)] * 3, calls
    listed = good("trace", "-l", f"uprobe:{program()}:steps+{BEGINS[1]}").out
    assert listed == f"uprobe:{program()}:steps+{BEGINS[1]:#x}\n", listed
    # Beside the function itself, and in one run.
    r = good("trace", f"uprobe:{program()}:steps", f"uprobe:{program()}:steps+{BEGINS[2]}", "--count", "--", program())
    assert re.search(r"^steps +: 3 calls$", r.out, re.M) and re.search(rf"^steps\+{BEGINS[2]:#x} +: 3 calls$", r.out, re.M), r.out


@test
def places_where_no_instruction_begins():
    """A probe there would make another instruction of the one that is there: it is refused, and the near ones are told."""
    for wrong in [o for o in range(1, BEGINS[-1]) if o not in BEGINS]:
        before, after = max(b for b in BEGINS if b < wrong), min(b for b in BEGINS if b > wrong)
        r = bad(1, "no instruction begins there", "trace", f"uprobe:{program()}:steps+{wrong}", "--", program())
        assert f"steps+{before:#x}, the next at steps+{after:#x}" in r.err, r.err
    size = BEGINS[-1] + (1 if X86 else 4)
    bad(1, f"steps has {size} bytes", "trace", f"uprobe:{program()}:steps+{size}", "--", program())
    bad(1, "has no return", "trace", f"uprobe:{program()}:steps+{BEGINS[1]}", "-r", "--", program())
    bad(1, "has no return", "trace", f"uprobe:{program()}:steps+{BEGINS[1]}", "--min-duration", "1us", "--", program())


@test
def places_inside_a_function_of_the_kernel():
    """Where an instruction begins there the kernel knows, and says."""
    fine, refused = [], ""
    for offset in range(1, 24):
        r = run("trace", f"kprobe:do_sys_openat2+{offset}", "--count", "--", "cat", "/dev/null")
        if "no kprobes" in r.err or r.code == 3 and "CAP_" in r.err:
            raise Skip(r.err)
        if r.code == 0:
            assert re.search(rf"^do_sys_openat2\+{offset:#x} +: [1-9]\d* calls?$", r.out, re.M), r.out
            fine.append(offset)
        else:
            refused += r.err
    if not fine and "do_sys_openat2" in refused and "inside of an instruction" not in refused:
        raise Skip(refused)
    assert fine and len(fine) < 23 and "inside of an instruction" in refused, (fine, refused)
    bad(1, "has no return", "trace", "kprobe:do_sys_openat2+4", "-r", "--", "true")
