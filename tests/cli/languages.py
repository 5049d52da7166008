"""What the tests of interpreters' own functions share."""
from harness import *
from known_python import frames_of


def learnt(r):
    """A run of `profile` that could walk them."""
    if "aren't shown" in r.err and "bpf_loop" in r.err:
        raise Skip("this kernel has no bpf_loop(), by which the frames are walked")
    assert r.code == 0, r.err
    return r
