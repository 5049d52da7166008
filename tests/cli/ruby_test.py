"""Ruby's own functions in a profile: as many and the same as Ruby says, with their lines."""
from harness import *
from known_python import line_of
from languages import RUBYS_STACK, frames_of, learnt, said_by_ruby

# Methods, blocks that methods in C call, a long function; then it spins in a known place.
PROGRAM = '''
class Tree
  def initialize(depth)
    @depth = depth
  end

  def walk
    if @depth == 0
      return spin
    end
    Tree.new(@depth - 1)
      .walk
  end
end

def by_key(v)
%s
  return Tree.new(3).walk if v == 2
  v
end

def spin
  %s
  STDOUT.flush
  e = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 1
  i = 0
  while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < e
    i += 1
  end
  exit!
end

def tête
  [3, 1].each do |x|
    [1, 2, 3].sort_by { |v| by_key(v) }
  end
end

tête
''' % ("\n".join(f"  n{i} = v + {i}" for i in range(200)), RUBYS_STACK)
IN_C = {"each", "sort_by"} # Ruby says of methods in C where they were called; on the native stack they are themselves


def ruby_frames(sample):
    return frames_of("Ruby", sample)


def put_script():
    if not shutil.which("ruby"):
        raise Skip("this machine has no ruby")
    script = path("known.rb")
    with open(script, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    return script


def compare(env):
    """A profile's frames with what Ruby says of itself; the profile's messages."""
    script, out = put_script(), path("known.json")
    r = learnt(run("profile", "-v", "-F", "199", "-f", "json", "-o", out, "--", "ruby", script, env=env))
    said = said_by_ruby(r.out, IN_C)
    assert {"walk", "tête", "block (2 levels) in tête", "<main>"} <= {name for _, name in said}, said
    lines, records = [json.loads(line) for line in open(out, encoding="utf-8")], []
    for sample in lines:
        if sample["type"] == "sample" and any(f["symbol"] == "spin" for f in ruby_frames(sample)[:1]):
            records.append(ruby_frames(sample))
    assert len(records) >= 25, (len(records), r.err)
    wrong = []
    for frames in records:
        if [f["symbol"] for f in frames] != [name for _, name in said] or {f.get("file") for f in frames} != {script} or \
                [f.get("line") for f in frames][1:] != [line for line, _ in said][1:] or not said[0][0] <= frames[0].get("line", 0) <= line_of(PROGRAM, "exit!"):
            wrong.append([(f["symbol"], f.get("line"), f.get("file")) for f in frames])
    assert not wrong, (len(wrong), len(records), wrong[0], said)
    ledger = next(line for line in lines if line["type"] == "ledger")["languages"]
    assert ledger["merged"] + ledger["one_more"] >= 0.95 * sum(ledger.values()), ledger
    return r.err


@test
def ruby_functions_and_lines_are_those_that_ruby_says():
    compare(None)


@test
def ruby_that_does_not_export_what_evaluates():
    """As Ruby 3.3 does, and stripped builds: libruby with another name there, which has the same hash, so
    that the dynamic linker finds it for libruby's own calls."""
    put_script()
    maps = run("ruby", "-e", "puts File.read('/proc/self/maps')", binary=None).out
    library = next((line.split()[-1] for line in maps.splitlines() if "/libruby" in line), None)
    if not library:
        raise Skip("this ruby has no libruby")
    with open(library, "rb") as file:
        content = file.read()
    soname = re.search(r"SONAME.*\[(.*)\]", run("readelf", "-d", library, binary=None).out)[1]
    os.makedirs(path("without"), exist_ok=True)
    with open(os.path.join(path("without"), soname), "wb") as file:
        file.write(content.replace(b"\0rb_vm_exec\0", b"\0rb_wL_exec\0"))
    said = compare({**os.environ, "LD_LIBRARY_PATH": path("without")})
    assert "evaluates at 0x" in said, said


COMPILED = '''
def leaf(n)
  i = x = 0
  while i < n
    x += i * i % 7
    i += 1
  end
  x
end

def middle(n)
  leaf(n) + leaf(n)
end

class Outer
  def run(n)
    [1, 2].each { |k| middle(n * k) }
  end
end

e = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 3
Outer.new.run(1000) while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < e
'''


def needs_yjit():
    if os.uname().machine != "x86_64" or run("ruby", "--yjit", "-e", "exit RubyVM::YJIT.enabled? ? 7 : 0", binary=None).code != 7:
        raise Skip("this machine has no ruby with YJIT, or it keeps frame pointers")


@test
def compiled_ruby_is_walked_by_the_form_of_its_frames():
    """YJIT's code has neither tables nor frame pointers: each stack ends there until the form of its frames is known."""
    needs_yjit()
    script, out = path("compiled.rb"), path("compiled.json")
    with open(script, "w", encoding="utf-8") as file:
        file.write(COMPILED)
    r = learnt(run("profile", "-F", "499", "-f", "json", "-o", out, "--", "ruby", "--yjit", script))
    stacks = [line["user"] for line in rows("compiled.json") if line["type"] == "sample"]
    inside = [frames for frames in stacks if any(f.get("symbol") == "leaf" for f in frames)]
    assert len(inside) > 150, (len(inside), r.err)
    whole = [[f["symbol"] for f in frames_of("Ruby", {"user": frames})] == ["leaf", "middle", "block in run", "run", "<main>"] and
             frames[-1].get("symbol") == "_start" for frames in inside]
    since = whole[whole.index(True):]
    assert sum(since) > 0.9 * len(since) and len(since) > 0.5 * len(whole), (sum(whole), len(since), len(whole), r.err)


@test
def compiled_ruby_is_walked_where_frame_pointers_would_skip_a_frame():
    """rb_vm_exec keeps a frame pointer, and YJIT's code, which it calls, leaves it alone: by frame pointers such a stack reaches its root
    without rb_vm_exec, so that Ruby's functions seem to be wrong."""
    needs_yjit()
    script, out = path("skips.rb"), path("skips.json")
    with open(script, "w", encoding="utf-8") as file:
        file.write(COMPILED.split("e = ")[0].replace("  x\nend", "  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)\nend") +
                   "\n2000.times { |i| sleep 0.02 if i < 60; Outer.new.run(100) }\n")  # slow at first, so that the form of the frames is learnt while few calls have passed
    r = learnt(run("trace", "syscall:clock_gettime", "--stack", "-f", "json", "-o", out, "--", "ruby", "--yjit", script))
    lines = rows("skips.json")
    ledger = next(line for line in lines if line["type"] == "ledger")["languages"]
    assert ledger["merged"] > 0.95 * sum(ledger.values()) and sum(ledger.values()) > 4000, (ledger, r.err)
    names = [[f["symbol"] for f in frames_of("Ruby", line["stack"])] for line in lines if line["type"] == "call"]
    names = [[name for name in its if name != "times"] for its in names if its[:1] == ["leaf"]] # which is C's before 3.3
    whole = [its[-6:] == ["leaf", "middle", "block in run", "run", "block in <main>", "<main>"] for its in names]
    assert len(names) > 4000 and sum(whole) > 0.95 * len(whole), (len(names), sum(whole), names[-1:], r.err)


@test
def one_side_of_rubys_stacks_alone():
    script = put_script()
    for option, has, hasnt in (("--native", "rb_yield", "by_key"), ("--language", "by_key", "rb_yield")):
        r = learnt(run("profile", option, "-F", "199", "-f", "folded", "--command-output", "stderr", "--", "ruby", script))
        hot = max((line for line in r.out.splitlines() if line), key=lambda line: int(line.rsplit(" ", 1)[1]))
        assert has in hot and hasnt not in hot, (option, hot)
