"""What the tests of interpreters' own functions share."""
from harness import *


def frames_of(language, sample):
    """The frames of a sample that are functions of the language, leaf first: "CPython", "PHP", "Ruby"."""
    return [f for f in sample["user"] if (f["module"] or "").startswith(language)]


def learnt(r):
    """A run of `profile` that could walk them."""
    if "aren't shown" in r.err and "bpf_loop" in r.err:
        raise Skip("this kernel has no bpf_loop(), by which the frames are walked")
    assert r.code == 0, r.err
    return r
