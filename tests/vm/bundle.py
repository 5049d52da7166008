"""rawbpf vm bundle: a folder that works offline and without root, for a class: rawbpf, the lessons, a kernel, and what boots it.

    README.md  start                         the first command that a student types
    bin/rawbpf                               a script: that of this machine (bundle/rawbpf); on macOS it runs in the guest
    bin/rawbpf-x86_64  bin/rawbpf-arm64      static; the second where there is one
    share/rawbpf/lessons, share/rawbpf/vm    as they are installed, the guest's first process and busybox included
    include/                                 for the lessons in C
    guests/                                  the cache of `rawbpf vm`: the kernels with a few modules, and busybox
    machine/x86_64/bin                       qemu-system-... and python3, as scripts; used where the system has none
    machine/x86_64/{programs,so,firmware,qemu,python}   what these need: their libraries by ldd(1), Python's modules that `run` imports

A dynamically linked program of this machine runs on any other Linux of its architecture: its own ld.so loads it with its own
libraries. The bundle that was made is proved: a guest boots with nothing but what is in it.
"""
import ast
import glob
import os
import shutil
import subprocess
import sys

import guest
import kernels

HERE = os.path.dirname(os.path.abspath(__file__))
MACHINES = {"amd64": "x86_64", "arm64": "arm64"}
# What `tc` needs, and a device to try it on; with what they depend on.
MODULES = ("cls_bpf", "sch_ingress", "dummy", "veth")
QEMU = {"amd64": "qemu-system-x86_64", "arm64": "qemu-system-aarch64"}
# Without BIOS no PVH kernel boots; QEMU looks for these two at once.
FIRMWARE = {"amd64": ("bios-256k.bin", "kvmvapic.bin", "linuxboot_dma.bin", "pvh.bin"), "arm64": ()}
FIRMWARE_FOLDERS = ("/usr/share/qemu", "/usr/share/seabios", "/usr/local/share/qemu")
# What these import is copied into the bundle, and what Python itself imports when it is used: codecs, and what os.wait4() answers with.
SCRIPTS = ("run", "guest.py", "kernels.py")
IMPORTED_LATER = ("encodings.ascii", "encodings.latin_1", "encodings.idna", "resource")
# Asked of the Python that the bundle gets: its version, where its modules are, and the files of those that are named and of what they import.
FILES_OF_MODULES = """import importlib, os, sys
for name in sys.argv[1:]: importlib.import_module(name)
print(sys.version_info[0], sys.version_info[1], os.path.dirname(os.__file__), sep=chr(10))
for module in list(sys.modules.values()):
    path = getattr(module, "__file__", None)
    if path and path != "<stdin>": print(path)
"""


class Broken(Exception):
    """The bundle was made, and doesn't work."""


def imported_modules():
    """Python's modules that SCRIPTS import, at their heads or inside functions."""
    names = set()
    for script_name in SCRIPTS:
        with open(os.path.join(HERE, script_name), encoding="utf-8") as file:
            for node in ast.walk(ast.parse(file.read())):
                if isinstance(node, ast.Import):
                    names.update(alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    names.add(node.module)
    return sorted(name for name in names if not os.path.exists(os.path.join(HERE, name + ".py")))


def copy(source, to, mode=None):
    os.makedirs(os.path.dirname(to), exist_ok=True)
    shutil.copyfile(source, to)
    os.chmod(to, mode or (0o755 if os.access(source, os.X_OK) else 0o644))


def is_static(path, arch):
    """A program of that architecture that needs no interpreter."""
    with open(path, "rb") as f:
        head = f.read(64)
    number = {"amd64": 62, "arm64": 183}[arch]
    if head[:5] != b"\x7fELF\x02" or int.from_bytes(head[18:20], "little") != number:
        return False
    with open(path, "rb") as f:
        f.seek(int.from_bytes(head[32:40], "little"))
        size, count = int.from_bytes(head[54:56], "little"), int.from_bytes(head[56:58], "little")
        table = f.read(size * count)
    return not any(int.from_bytes(table[at:at + 4], "little") == 3 for at in range(0, len(table), size))  # PT_INTERP


def static_rawbpf(arch, own):
    """A static rawbpf for this architecture, or None: the one that was called, one beside it, or where RAWBPF_DIST_ARCH says."""
    machine = MACHINES[arch]
    places = [own, os.path.join(os.path.dirname(own), f"rawbpf-{machine}")]
    named = os.environ.get(f"RAWBPF_DIST_{arch}")
    if named:
        places = [os.path.join(named, f"rawbpf-{machine}"), os.path.join(named, "rawbpf")]
    return next((p for p in places if os.path.isfile(p) and is_static(p, arch)), None)


def share_folder(own, installed, in_tree):
    """A folder of rawbpf's own files, beside an installed rawbpf or in the source tree that this file is in."""
    places = [os.path.join(os.path.dirname(HERE), installed), os.path.join(os.path.dirname(own), "..", "share/rawbpf", installed),
              os.path.join(os.path.dirname(os.path.dirname(HERE)), in_tree)]
    return next((p for p in places if os.path.isdir(p)), None)


def add_program(base, path, name):
    """A program with its libraries, which its own loader loads: nothing of the system that it runs on is used but the kernel."""
    copy(path, os.path.join(base, "programs", name), 0o755)
    add_libraries(base, path)


def add_libraries(base, path):
    for library in guest.libraries(path) or shared_of(path):
        copy(library, os.path.join(base, "so", os.path.basename(library)), 0o755)


def shared_of(path):
    """The libraries of a shared library, which has no interpreter."""
    import re
    out = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    return sorted(set(re.findall(r"=>\s*(/\S+) \(0x", out)))


def script(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o755)


def loader_of(path):
    return next(os.path.basename(l) for l in guest.libraries(path) if os.path.basename(l).startswith("ld-linux"))


def add_emulator(base, arch):
    """QEMU for guests of that architecture: without the modules for sound, screens and disks elsewhere."""
    path = shutil.which(QEMU[arch])
    if not path:
        raise kernels.Unavailable(f"no {QEMU[arch]} here")
    add_program(base, path, QEMU[arch])
    for module in glob.glob(f"/usr/lib/*/qemu/accel-tcg-{QEMU[arch].rsplit('-', 1)[1]}.so"):
        copy(module, os.path.join(base, "qemu", os.path.basename(module)))
        add_libraries(base, module)
    for name in FIRMWARE[arch]:
        found = next((os.path.join(f, name) for f in FIRMWARE_FOLDERS if os.path.exists(os.path.join(f, name))), None)
        if found:
            copy(found, os.path.join(base, "firmware", name))
    script(os.path.join(base, "bin", QEMU[arch]), f"""#!/bin/sh
# This bundle's QEMU, by its own loader and with its own libraries: `rawbpf vm` takes it where the system has none.
here=${{0%/*}}/..
QEMU_MODULE_DIR=$here/qemu exec "$here/so/{loader_of(path)}" --library-path "$here/so" "$here/programs/{QEMU[arch]}" -L "$here/firmware" "$@"
""")


def add_python(base):
    """The distribution's Python, else the one that runs this, with the modules that SCRIPTS import and no others."""
    system = "/usr/bin/python3"  # the distribution's, before one that was built here
    path = os.path.realpath(system if os.path.exists(system) else sys.executable)
    lines = subprocess.run([path, "-", *imported_modules(), *IMPORTED_LATER], input=FILES_OF_MODULES, stdout=subprocess.PIPE, text=True,
                           check=True).stdout.splitlines()
    version, standard = f"{lines[0]}.{lines[1]}", lines[2]
    add_program(base, path, "python3")
    for file in lines[3:]:
        if os.path.commonpath([file, standard]) != standard:
            continue
        copy(file, os.path.join(base, "python/lib", f"python{version}", os.path.relpath(file, standard)))
        if file.endswith(".so"):
            add_libraries(base, file)
    os.makedirs(os.path.join(base, "python/lib", f"python{version}", "lib-dynload"), exist_ok=True)  # else it warns
    script(os.path.join(base, "bin/python3"), f"""#!/bin/sh
# This bundle's Python, with no more modules than `rawbpf vm` needs: it is taken where the system has none.
here=${{0%/*}}/..
PYTHONHOME=$here/python PYTHONDONTWRITEBYTECODE=1 exec "$here/so/{loader_of(path)}" --library-path "$here/so" "$here/programs/python3" -s -S "$@"
""")


def add_kernel(to, image):
    """As kernels.py keeps it: load_image() finds it there."""
    where = os.path.join(to, "guests/kernels", image.kernel.name, image.release)
    copy(image.path, os.path.join(where, "image"))
    copy(os.path.join(os.path.dirname(image.path), "hashes"), os.path.join(where, "hashes"))
    config = os.path.join(os.path.dirname(image.path), "root/boot", f"config-{image.release}")
    if os.path.exists(config):
        copy(config, os.path.join(where, "root/boot", os.path.basename(config)))
    folder = os.path.join(where, "root/lib/modules", image.release)
    for name, data in guest.module_files(image.modules, MODULES) if image.modules else ():
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{name}.ko"), "wb") as f:
            f.write(data)


def add_headers(to, own_folder):
    """What programs in C include, as it is installed: include/rawbpf, and a rawbpf.pc that finds it wherever the folder lies."""
    headers = os.path.join(to, "include/rawbpf")
    installed = os.path.join(own_folder, "../include/rawbpf")
    if os.path.exists(os.path.join(installed, "bpf.h")):
        shutil.copytree(installed, headers)
    else:
        tree = os.path.dirname(os.path.dirname(HERE))
        shutil.copytree(os.path.join(tree, "programs/include/rawbpf"), headers)
        for folder in ("asm", "sys"):
            shutil.copytree(os.path.join(tree, "programs/include", folder), os.path.join(headers, folder))
        copy(os.path.join(tree, "asm/helpers.def"), os.path.join(headers, "asm/helpers.def"))
    with open(os.path.join(to, "include/rawbpf.pc"), "w", encoding="utf-8") as file:
        file.write("includedir=${pcfiledir}\nName: rawbpf\nDescription: headers for BPF programs in C\nVersion: 0\nCflags: -I${includedir} -I${includedir}/rawbpf\n")


def folder_bytes(folder):
    return sum(os.lstat(os.path.join(at, name)).st_size for at, _, names in os.walk(folder) for name in names)


def prove(to):
    """Boots a guest with nothing on the path but the bundle (and the shell's own tools). Returns what uname(1) said in it, and seconds."""
    import tempfile
    import time
    with tempfile.TemporaryDirectory() as work:
        for name in ("sh", "uname"):
            os.symlink(shutil.which(name), os.path.join(work, name))
        start = time.monotonic()
        try:
            r = subprocess.run([os.path.join(to, "bin/rawbpf"), "vm", "--quiet", "--", "uname", "-r"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=180, check=False, cwd="/",
                               env={"PATH": work, "HOME": work, "TMPDIR": work, "LC_ALL": "C.UTF-8"})
        except subprocess.TimeoutExpired:
            raise Broken("the bundle was made, but its guest said nothing for 180 s") from None
        if r.returncode != 0:
            raise Broken(f"the bundle was made, but its guest doesn't boot (status {r.returncode}): {r.stderr.strip()[-600:]}")
        return r.stdout.strip(), time.monotonic() - start


def make(to, own, arch, images, init_for, busybox_for, log):
    """Everything into the folder `to`, which is new. `images`: kernels.Image. Raises Unavailable with what is missing,
    Broken where the guest that was made doesn't boot."""
    rawbpf = static_rawbpf(arch, own)
    if not rawbpf:
        raise kernels.Unavailable("this rawbpf is linked with shared libraries, which students' machines may lack: a static one is needed",
                                  f"./dev dist makes dist/rawbpf-{MACHINES[arch]}, which can make the bundle; or RAWBPF_DIST_{arch} names a folder with one")
    lessons = share_folder(own, "lessons", "programs/labs/lessons")
    if not lessons:
        raise kernels.Unavailable("the lessons aren't installed here")
    with kernels.whole(to) as part:
        os.chmod(part, 0o755)
        for name in ("start", "rawbpf"):
            copy(os.path.join(HERE, "bundle", name), os.path.join(part, "bin" if name == "rawbpf" else "", name), 0o755)
        for each in MACHINES:
            found = static_rawbpf(each, own)
            if found:
                copy(found, os.path.join(part, "bin", f"rawbpf-{MACHINES[each]}"), 0o755)
            else:
                log(f"no static rawbpf for {MACHINES[each]}: the bundle is without (RAWBPF_DIST_{each} names a folder with one)")
        shutil.copytree(lessons, os.path.join(part, "share/rawbpf/lessons"))
        copy(os.path.join(lessons, "CLASS.md"), os.path.join(part, "README.md"))
        for optional in ("page", "slides"):  # where they were built: folders of HTML, which a browser opens as they are
            folder = os.environ.get(f"RAWBPF_{optional.upper()}") or share_folder(own, optional, f"build/{optional}")
            if folder and os.path.isdir(folder):
                shutil.copytree(folder, os.path.join(part, optional))
        add_headers(part, os.path.dirname(own))
        vm = os.path.join(part, "share/rawbpf/vm")
        for name in ("run", "guest.py", "kernels.py", "kernels.lock", "init.c"):
            copy(os.path.join(HERE, name), os.path.join(vm, name))
        for image in images:
            add_kernel(part, image)
        for each in {image.kernel.arch for image in images}:
            copy(init_for(each), os.path.join(vm, f"init-{each}"), 0o755)
            copy(busybox_for(each), os.path.join(part, "guests", f"busybox-{each}"), 0o755)
            add_emulator(os.path.join(part, "machine", os.uname().machine), each)
        add_python(os.path.join(part, "machine", os.uname().machine))
    release, seconds = prove(to)
    log(f"{to}: {folder_bytes(to) >> 20} MiB; its guest says {release} after {seconds:.1f} s")
