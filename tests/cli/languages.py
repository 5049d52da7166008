"""What the tests of interpreters' own functions share."""
from harness import *
from known_python import frames_of


def said_by_ruby(text, in_c):
    """[(line, name)] of lines that RUBYS_STACK has printed, as rawbpf names them: without the class, which Ruby says from 3.4 on, and without
    `in_c`, the methods that are C's (Ruby says of them where they were called) unless they are Ruby's own, as `times` from 3.3 on."""
    said = []
    for line in text.splitlines():
        if not line[:1].isdigit():
            continue
        number, file, label = line.split(" ", 2)
        name = re.sub(r"\b[A-Z]\w*(::[A-Z]\w*)*[#.]", "", label)
        if name not in in_c or file.startswith("<internal:"):
            said.append((int(number), name))
    return said


RUBYS_STACK = 'caller_locations(0).each { |l| puts "#{l.lineno} #{l.path} #{l.label}" }'


def learnt(r):
    """A run of `profile` that could walk them."""
    if "aren't shown" in r.err and "bpf_loop" in r.err:
        raise Skip("this kernel has no bpf_loop(), by which the frames are walked")
    assert r.code == 0, r.err
    return r
