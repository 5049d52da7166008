"""What tests share that run a script of their own in a guest: tools, objects, one_liners. RAWBPF_DIST_amd64 names the folder with rawbpf, as for `run`."""
import importlib.machinery
import importlib.util
import os
import subprocess

import guest
import kernels
import peers

HERE = os.path.dirname(os.path.abspath(__file__))
EXPERIMENTS = os.path.join(HERE, "../../programs/experiment")


def _load(name):
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(HERE, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


run = _load("run")


def compiled(name):
    """A program of this folder, compiled once a version of its source."""
    source = os.path.join(HERE, name + ".c")
    out = os.path.join(kernels.cache_folder(), f"{name}-{kernels.sha256_of(source)[:12]}")
    if not os.path.exists(out):
        subprocess.run(["gcc", "-O1", "-g", "-Wall", "-pthread", "-o", out + ".part", source], check=True)
        os.replace(out + ".part", out)
    return out


def boot(kernel, script, programs=(), files=(), with_peers=True, modules=(), append="", timeout=1200):
    """(release, guest.Result) of a shell's script, with busybox, rawbpf and its experiments, the named programs of this folder, and Debian's newest
    tools. kernels.Unavailable where something of it can't be had."""
    image = run.ready(kernel)
    arch = image.kernel.arch
    files = [*run.guest_files(arch, False), *files, (os.path.join(EXPERIMENTS, "tools"), "usr/share/rawbpf/experiments")]
    files += [(compiled(name), f"usr/bin/{name}") for name in programs]
    if with_peers:
        files += peers.files(arch, run.log)
    r = guest.boot(image, ["/bin/sh", "-c", script], run.init_for(arch), run.busybox_for(arch), files=files, modules=list(modules), memory=1024,
                   timeout=timeout, append=append, instruction_ns=4)
    if os.environ.get("RAWBPF_GUEST_OUTPUT"):
        with open(os.environ["RAWBPF_GUEST_OUTPUT"], "wb") as f:
            f.write(r.out + r.err + r.log.encode())
    return image.release, r
