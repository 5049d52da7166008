"""Debian's newest tools for guests: bpftool and libbpf-tools with the loader and the libraries that they need, unpacked once into the
cache and never installed. In a guest they run from /peers:

    /peers/run bpftool prog list
"""
import glob
import os
import re
import shutil
import subprocess
import tempfile

import kernels

PACKAGES = "bpftool libbpf-tools libc6 libelf1t64 libzstd1 zlib1g libcap2 libssl3t64".split()
SUITE = "sid"
RUN = """#!/bin/sh
name=$1
shift
exec /peers/lib/ld.so --library-path /peers/lib /peers/bin/$name "$@"
"""


def folder(arch, log=lambda text: None):
    """Where they are; kernels.Unavailable where the archive can't be reached."""
    out = os.path.join(kernels.cache_folder(), f"peers-{arch}")
    if os.path.exists(os.path.join(out, "run")):
        return out
    archive = kernels.current_archive(log)
    if not archive:
        raise kernels.Unavailable("the package archive can't be reached")
    with tempfile.TemporaryDirectory(dir=kernels.cache_folder()) as work:
        r = archive.apt("apt-get", "download", *(f"{name}:{arch}/{SUITE}" for name in PACKAGES), cwd=work, check=False)
        if r.returncode != 0:
            raise kernels.Unavailable(f"packages of {SUITE} can't be downloaded: {' '.join(r.stderr.split())[-200:]}")
        root, part = os.path.join(work, "root"), os.path.join(work, "part")
        for deb in glob.glob(os.path.join(work, "*.deb")):
            subprocess.run(["dpkg-deb", "-x", deb, root], check=True)
        os.makedirs(os.path.join(part, "bin"))
        os.makedirs(os.path.join(part, "lib"))
        for program in glob.glob(os.path.join(root, "usr/sbin/*")):
            if program.endswith("-libbpf") or os.path.basename(program) == "bpftool":
                shutil.copy(program, os.path.join(part, "bin"))
        for library in glob.glob(os.path.join(root, "usr/lib/*-linux-gnu*/*.so.*")):
            if re.fullmatch(r"lib(c|m|elf|zstd|z|cap|crypto)\.so\.\d+", os.path.basename(library)):
                shutil.copy(os.path.realpath(library), os.path.join(part, "lib", os.path.basename(library)))
        loader, = glob.glob(os.path.join(root, "usr/lib/*-linux-gnu*/ld-linux-*"))[:1]
        shutil.copy(os.path.realpath(loader), os.path.join(part, "lib/ld.so"))
        with open(os.path.join(part, "run"), "w", encoding="ascii") as f:
            f.write(RUN)
        os.chmod(os.path.join(part, "run"), 0o755)
        shutil.rmtree(out, ignore_errors=True)
        os.rename(part, out)
    return out


def files(arch, log=lambda text: None):
    """(host path, guest path) pairs for guest.boot(): a folder, whose programs bring their own libraries."""
    return [(folder(arch, log), "peers")]
