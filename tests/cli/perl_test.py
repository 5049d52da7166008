"""Perl's own functions in a profile: as many and the same as Perl says (caller), with their files and lines."""
import collections

from harness import *
from languages import frames_of, learnt

# A method, a closure, a lexical sub, an operator, a tied variable, a comparison, an eval of a block and of a text, a file that is
# required: half of these are called by native code. Then it spins in a known place.
PROGRAM = '''use strict; use warnings; use utf8; use feature 'lexical_subs'; no warnings 'experimental::lexical_subs';
use List::Util qw(first);
binmode STDOUT, ':utf8';
my $directory = $ARGV[0];

package Tied {
    sub TIESCALAR { bless [], shift }
    sub FETCH {
        return Over->new + 1;
    }
}

package Over {
    use overload '+' => \\&plus, fallback => 1;
    sub new { bless {}, shift }
    sub plus {
        my $sum = eval {
            main::łąka(3)
        };
        die $@ if $@;
        return $sum;
    }
}

sub łąka {
    my $n = shift;
    return łąka($n - 1)
        if $n;
    return tête();
}

sub tête {
    my @sorted = sort by_key 2, 1;
}

sub by_key {
    my $key = eval { eval q{

        included($a)} };
    die $@ if $@;
    return $key;
}

sub included {
    for my $v (@_) {
        require "$directory/included.pl";
    }
}

sub spin {
    for (my $i = 0; my @c = caller $i; ++$i) {
        my $kind = $c[7] ? 'require' : defined $c[6] ? 'text' : $c[3] eq '(eval)' ? 'block' : 'sub';
        print join("\\t", 'frame', $kind, @c[3, 2, 1]), "\\n";
    }
    my $from = (times)[0];
    1 while (times)[0] < $from + 1.2;
    exit;
}

my sub privé {
    my $closure = shift;
    first { $closure->($_) } 1, 2;
}

tie my $tied, 'Tied';
my @sorted = sort { privé(sub {
    my $text = "<$tied>";
}) } 1, 2;
'''
INCLUDED = '''package Included;
use strict;
sub run {
    main::spin();
}

run(); 1;
'''


def put_script():
    for name, text in (("known.pl", PROGRAM.replace("use File::Basename ();\n", "\n")), ("included.pl", INCLUDED)):
        with open(path(name), "w", encoding="utf-8") as file:
            file.write(text)
    return [shutil.which("perl") or "/usr/bin/perl", path("known.pl"), os.path.dirname(path("known.pl"))]


def perl_says(out):
    """[(function, line, file)], leaf first. Perl says of each where it was called, which is where its caller is. Of the leaf: None."""
    said, at = [], (None, None)
    for kind, name, line, file in (row.split("\t")[1:] for row in out.splitlines() if row.startswith("frame\t")):
        if kind != "block": # which is a part of its function
            said.append(("included.pl" if kind == "require" else name, *at))
            at = (int(line), file)
    return said + [("known.pl", *at)]


def spinning(lines):
    return [frames for frames in (frames_of("Perl", line) for line in lines if line["type"] == "sample")
            if frames and frames[0]["symbol"] == "main::spin"]


def spins(program=PROGRAM):
    """The lines of spin() that run."""
    rows_of = program.splitlines()
    first = next(i for i, row in enumerate(rows_of) if row.startswith("sub spin"))
    return range(first + 2, first + 9)


@test
def perl_functions_files_and_lines_are_those_that_perl_says():
    command, out = put_script(), path("known.json")
    r = learnt(run("profile", "-v", "-F", "499", "-f", "json", "-o", out, "--", *command))
    said = perl_says(r.out)
    names = {name for name, _, _ in said}
    assert {"Tied::FETCH", "Over::plus", "main::łąka", "main::tête", "main::by_key", "(eval)", "main::included", "included.pl",
            "Included::run", "privé", "main::__ANON__", "known.pl"} <= names and len(said) == 17, said
    lines = rows("known.json")
    records = spinning(lines)
    assert len(records) >= 200, (len(records), r.err)
    wrong = []
    for frames in records:
        ours = [(f["symbol"], f.get("line"), f.get("file")) for f in frames]
        if [name for name, _, _ in ours] != [name for name, _, _ in said] or ours[1:] != said[1:] or ours[0][1] not in spins():
            wrong.append(ours)
    assert not wrong, (len(wrong), len(records), wrong[0], said)
    # Native functions are between them where they called Perl again.
    stack = [f["symbol"] for line in lines if line["type"] == "sample" and frames_of("Perl", line) == records[-1] for f in line["user"]]
    assert "Perl_sortsv_flags" in stack and "Perl_runops_standard" not in stack, stack
    ledger = next(line for line in lines if line["type"] == "ledger")["languages"]
    assert ledger["merged"] + ledger["one_more"] + ledger["one_less"] >= 0.97 * sum(ledger.values()), ledger
    assert "Perl 5" in r.err and "learnt from" in r.err, r.err


SHARES = '''use strict;
sub three { my $n = 0; for my $i (1 .. 3 * $_[0]) { $n += $i } $n }
sub one { my $n = 0; for my $i (1 .. $_[0]) { $n += $i } $n }
my $from = (times)[0];
my $k = 0; # no two rounds are alike, so that the clock's ticks don't fall into step with them
while ((times)[0] < $from + 2) { $k = ($k + 619) % 1000; three(9500 + $k); one(9500 + $k) }
'''


@test
def perl_functions_have_their_shares():
    with open(path("shares.pl"), "w", encoding="utf-8") as file:
        file.write(SHARES)
    learnt(run("profile", "-F", "499", "-f", "json", "-o", path("shares.json"), "--", "perl", path("shares.pl")))
    leaves = collections.Counter(frames[0]["symbol"] for frames in (frames_of("Perl", line) for line in rows("shares.json")
                                                                    if line["type"] == "sample") if frames)
    n = leaves["main::three"] + leaves["main::one"]
    assert n > 100 and abs(leaves["main::three"] / n - 0.75) < 4 * (0.75 * 0.25 / n) ** 0.5 + 0.02, leaves
    assert leaves["shares.pl"] <= 0.1 * sum(leaves.values()), leaves


SHORT = '''sub work { my $until = (times)[0] + 0.02; my $n = 0; while ((times)[0] < $until) { $n += $_ for 1 .. 200 } } work(); exit'''
CHILDREN = '''use strict;
sub spin { my $until = (times)[0] + shift; my $n; while ((times)[0] < $until) { $n += $_ for 1 .. 200 } }
spin(0.5);
for (1 .. 30) { system $^X, $ARGV[0] }
for (1 .. 30) {
    my $child = fork;
    if (!$child) { forked() }
    waitpid $child, 0;
}
sub forked { spin(0.03); exit }
'''


@test
def short_and_forked_perls_have_their_functions():
    for name, text in (("short.pl", SHORT), ("children.pl", CHILDREN)):
        with open(path(name), "w", encoding="utf-8") as file:
            file.write(text)
    learnt(run("profile", "-F", "999", "-f", "json", "-o", path("children.json"), "--", "perl", path("children.pl"), path("short.pl")))
    short, forked = set(), set()
    for line in rows("children.json"):
        if line["type"] != "sample":
            continue
        names = [f["symbol"] for f in frames_of("Perl", line)]
        if names[:2] == ["main::work", "short.pl"]:
            short.add(line["pid"])
        if names[:3] == ["main::spin", "main::forked", "children.pl"]:
            forked.add(line["pid"])
    # rawbpf has to run before these have ended: with three programs more than CPUs it misses three of ten at times, and while it is
    # stopped all of them.
    assert len(short) >= 10 and len(forked) >= 10, (short, forked)


@test
def one_side_of_perls_stacks_alone():
    command = put_script()
    for option, has, hasnt in (("--native", "Perl_runops_standard", "Included::run"), ("--language", "Included::run", "Perl_call_sv")):
        r = learnt(run("profile", option, "-F", "199", "-f", "folded", "--command-output", "stderr", "--", *command))
        hot = max((line for line in r.out.splitlines() if line), key=lambda line: int(line.rsplit(" ", 1)[1]))
        assert has in hot and hasnt not in hot, (option, hot)


@test
def a_capture_has_perls_names():
    command, capture = put_script(), path("known.rbpf")
    learnt(run("profile", "-F", "199", "--record", capture, "--", *command))
    os.remove(command[1])
    r = run("report", capture, "-f", "folded")
    assert r.code == 0 and "known.pl;" in r.out and "Tied::FETCH" in r.out and "main::łąka" in r.out, (r.err, r.out[-2000:])
