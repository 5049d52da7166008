"""Sources of the corpus, and objects from them.

    package                     what is taken                               compiler
    linux-source-6.1            tools/testing/selftests/bpf/progs           clang-16, gcc's BPF back end
    linux-source-6.12           the same                                    clang-19 (arenas need it)
    bpfcc (its source package)  libbpf-tools                                clang-16
    libbpf-tools                the objects that its programs carry along   Debian's, as packaged

Everything lies under one cache folder and is made once: packages as downloaded, the parts of them that are used, and for each
set a folder of objects. A source that doesn't compile against this kernel's types leaves NAME.log in place of NAME.o, so that
the next run doesn't try again; another vmlinux.h makes another folder.
"""
import hashlib
import os
import re
import shutil
import struct
import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

KERNELS = {"6.1": "clang-16", "6.12": "clang-19"}
# What the selftests' Makefile links together (bpftool gen object); parts that don't compile leave the whole out.
LINKED = {
    "linked_funcs": ["linked_funcs1", "linked_funcs2"],
    "linked_vars": ["linked_vars1", "linked_vars2"],
    "linked_maps": ["linked_maps1", "linked_maps2"],
    "linked_list_linked": ["linked_list"],
    "test_static_linked": ["test_static_linked1", "test_static_linked2"],
    "test_subskeleton": ["test_subskeleton_lib2", "test_subskeleton_lib", "test_subskeleton"],
    "test_subskeleton_lib_linked": ["test_subskeleton_lib2", "test_subskeleton_lib"],
    "test_usdt_linked": ["test_usdt", "test_usdt_multispec"],
}


# Sets, or packages they need, that can't be had here, each with the reason: the table shows them.
SKIPPED = {}


def last_line(error):
    return (error.stderr.strip().splitlines() or ["no reason given"])[-1]


def run(*words, **more):
    return subprocess.run([str(w) for w in words], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def download(cache, package):
    """The .deb of a package, downloaded once; None where the archive doesn't have it."""
    place = cache / "packages"
    place.mkdir(parents=True, exist_ok=True)
    have = sorted(place.glob(f"{package}_*.deb"))
    if have:
        return have[-1]
    try:
        run("apt-get", "download", package, cwd=place)
    except subprocess.CalledProcessError as error:
        SKIPPED[package] = f"not to be had: {last_line(error)}"
        return None
    return sorted(place.glob(f"{package}_*.deb"))[-1]


def kernel_source(cache, version):
    """tools/, include/uapi and scripts/ of a kernel, unpacked from Debian's package of its source."""
    tree = cache / f"linux-source-{version}"
    if (tree / ".complete").exists():
        return tree
    package = download(cache, f"linux-source-{version}")
    if not package:
        return None
    print(f"unpacking {package.name}")
    shutil.rmtree(tree, ignore_errors=True)
    outer = cache / f"unpacked-{version}"
    outer.mkdir(exist_ok=True)
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as deb:
        with tarfile.open(fileobj=deb.stdout, mode="r|") as tar:
            for member in tar:
                if member.name.endswith(".tar.xz"):
                    with open(outer / "source.tar.xz", "wb") as out:
                        shutil.copyfileobj(tar.extractfile(member), out)
    top = f"linux-source-{version}"
    run("tar", "-xf", outer / "source.tar.xz", "-C", cache, f"{top}/tools", f"{top}/include/uapi", f"{top}/scripts")
    shutil.rmtree(outer)
    (tree / ".complete").touch()
    return tree


def bpfcc_source(cache, given):
    """The libbpf-tools folder of Debian's bpfcc source package, or of the tree given."""
    if given:
        return next((p for p in (Path(given), Path(given) / "libbpf-tools") if list(p.glob("*.bpf.c"))), None)
    tree = cache / "bpfcc"
    if (tree / ".complete").exists():
        return tree / "libbpf-tools"
    # The system's list of archives, asked for sources instead of packages, in a folder of our own: nothing is changed.
    lists = cache / "apt"
    (lists / "parts").mkdir(parents=True, exist_ok=True)
    (lists / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    for file in list(Path("/etc/apt/sources.list.d").glob("*.sources")):
        text = re.sub(r"^Types:.*$", "Types: deb-src", file.read_text(), flags=re.M)
        if "debian" in text:
            (lists / "parts" / file.name).write_text(text)
    for file in [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*.list")]:
        if file.exists():
            lines = [re.sub(r"^deb\s", "deb-src ", l) for l in file.read_text().splitlines() if l.startswith("deb ")]
            (lists / "parts" / (file.stem + ".list")).write_text("\n".join(lines) + "\n")
    options = ["-o", f"Dir::Etc::sourceparts={lists}/parts", "-o", "Dir::Etc::sourcelist=/dev/null",
               "-o", f"Dir::State::lists={lists}/lists"]
    place = cache / "packages"
    place.mkdir(parents=True, exist_ok=True)
    try:
        run("apt-get", *options, "update")
        run("apt-get", *options, "source", "--download-only", "bpfcc", cwd=place)
    except subprocess.CalledProcessError as error:
        SKIPPED["libbpf-tools"] = f"bpfcc's source package is not to be had (--bpfcc DIR takes an unpacked one): {last_line(error)}"
        return None
    archive = sorted(place.glob("bpfcc_*.orig.tar.*"))[-1]
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir()
    run("tar", "-xf", archive, "-C", tree, "--strip-components=1")
    (tree / ".complete").touch()
    return tree / "libbpf-tools"


def vmlinux_header(cache):
    """vmlinux.h of the running kernel, by bpftool; its folder is named after its contents."""
    text = subprocess.run(["bpftool", "btf", "dump", "file", "/sys/kernel/btf/vmlinux", "format", "c"], check=True,
                          stdout=subprocess.PIPE).stdout
    folder = cache / ("vmlinux-" + hashlib.sha256(text).hexdigest()[:12])
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "vmlinux.h").exists():
        (folder / "vmlinux.h").write_bytes(text)
    return folder


def libbpf_headers(cache, tree, version):
    """bpf/*.h as that kernel's libbpf installs them."""
    place = cache / f"headers-{version}"
    if (place / ".complete").exists():
        return place
    (place / "bpf").mkdir(parents=True, exist_ok=True)
    for name in ("bpf_helpers.h", "bpf_tracing.h", "bpf_endian.h", "bpf_core_read.h", "usdt.bpf.h"):
        shutil.copy(tree / "tools/lib/bpf" / name, place / "bpf")
    defs = run("python3", tree / "scripts/bpf_doc.py", "--header", "--file", tree / "tools/include/uapi/linux/bpf.h").stdout
    (place / "bpf" / "bpf_helper_defs.h").write_text(defs)
    (place / ".complete").touch()
    return place


def system_includes():
    triplet = run("gcc", "-print-multiarch").stdout.strip()
    return ["-idirafter", "/usr/local/include", "-idirafter", f"/usr/include/{triplet}", "-idirafter", "/usr/include"]


def compile_one(job):
    command, source, out = job
    log = out.with_suffix(".log")
    if out.exists() or log.exists():
        return
    part = out.with_suffix(".part")
    try:
        done = subprocess.run([*command, "-c", str(source), "-o", str(part)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=300, cwd=source.parent, errors="replace")
        failed, text = done.returncode != 0 or not part.exists(), done.stdout
    except subprocess.TimeoutExpired:
        failed, text = True, "took more than 300 s"
    if failed:
        log.write_text(text)
        part.unlink(missing_ok=True)
    else:
        part.rename(out)


def machine():
    return {"x86_64": "x86", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)


def jobs_for_selftests(cache, version, vmlinux):
    clang = KERNELS[version]
    tree = kernel_source(cache, version)
    if not tree:
        return []
    headers = libbpf_headers(cache, tree, version)
    tests = tree / "tools/testing/selftests/bpf"
    include = [f"-I{vmlinux}", f"-I{headers}", f"-I{tests}", f"-I{tree}/tools/include/uapi", f"-I{tree}/tools/include"]
    flags = ["-g", "-O2", f"-D__TARGET_ARCH_{machine()}", "-DENABLE_ATOMICS_TESTS", "-Wno-everything", *include]
    jobs = []
    if shutil.which(clang):
        place = cache / "objects" / f"selftests-{version}-{vmlinux.name[8:]}"
        place.mkdir(parents=True, exist_ok=True)
        command = [clang, "--target=bpf", "-mlittle-endian", "-mcpu=v3", *flags, *system_includes()]
        jobs += [(command, s, place / (s.stem + ".o")) for s in sorted((tests / "progs").glob("*.c"))]
    else:
        SKIPPED[f"selftests-{version}"] = f"no {clang} here"
    if version == "6.1" and not shutil.which("bpf-gcc"):
        SKIPPED["gcc-6.1"] = "no bpf-gcc here"
    elif version == "6.1":
        place = cache / "objects" / f"gcc-{version}-{vmlinux.name[8:]}"
        place.mkdir(parents=True, exist_ok=True)
        command = ["bpf-gcc", "-mlittle-endian", "-mcpu=v3", "-gbtf", "-mco-re", *[f for f in flags if f != "-Wno-everything"], "-w",
                   *system_includes()]
        jobs += [(command, s, place / (s.stem + ".o")) for s in sorted((tests / "progs").glob("*.c"))]
    return jobs


def jobs_for_libbpf_tools(cache, given, vmlinux):
    if not shutil.which("clang-16"):
        SKIPPED["libbpf-tools"] = "no clang-16 here"
        return []
    source = bpfcc_source(cache, given)
    tree = kernel_source(cache, "6.1")
    if not source or not tree:
        SKIPPED.setdefault("libbpf-tools", "no sources")
        return []
    headers = libbpf_headers(cache, tree, "6.1")
    place = cache / "objects" / f"libbpf-tools-{vmlinux.name[8:]}"
    place.mkdir(parents=True, exist_ok=True)
    command = ["clang-16", "--target=bpf", "-g", "-O2", f"-D__TARGET_ARCH_{machine()}", "-Wno-everything", f"-I{vmlinux}",
               f"-I{source}", f"-I{headers}", *system_includes()]
    return [(command, s, place / (s.name[: -len(".bpf.c")] + ".o")) for s in sorted(source.glob("*.bpf.c"))]


def packaged_objects(cache):
    """The objects inside of the programs of Debian's libbpf-tools: each is a whole ELF file in .rodata."""
    place = cache / "objects" / "libbpf-tools-packaged"
    if not (place / ".complete").exists():
        package = download(cache, "libbpf-tools")
        if not package:
            return []
        place.mkdir(parents=True, exist_ok=True)
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as deb:
            with tarfile.open(fileobj=deb.stdout, mode="r|") as tar:
                for member in tar:
                    if member.isfile() and "/sbin/" in member.name:
                        for number, image in enumerate(embedded_objects(tar.extractfile(member).read())):
                            name = Path(member.name).name + ("" if number == 0 else f".{number + 1}")
                            (place / f"{name}.o").write_bytes(image)
        (place / ".complete").touch()
    return sorted(place.glob("*.o"))


def embedded_objects(image):
    """Every ELF file for BPF in these bytes; clang writes the section headers last, so they tell its end."""
    bpf, at = 247, 0
    while (at := image.find(b"\x7fELF\x02\x01\x01", at + 1)) > 0:
        machine, = struct.unpack_from("<H", image, at + 18)
        headers, = struct.unpack_from("<Q", image, at + 40)
        size, count = struct.unpack_from("<HH", image, at + 58)
        if machine == bpf and at + headers + size * count <= len(image):
            yield image[at:at + headers + size * count]


def link_selftests(place):
    for name, parts in LINKED.items():
        out, files = place / f"{name}.o", [place / f"{p}.o" for p in parts]
        log = out.with_suffix(".log")
        if all(f.exists() for f in files) and not log.exists() and not (place / f"{name}.linked").exists():
            done = subprocess.run(["bpftool", "gen", "object", str(place / f"{name}.linked.o"), *map(str, files)],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            (place / f"{name}.linked").touch()
            if done.returncode:
                (place / f"{name}.linked.o").unlink(missing_ok=True)
                log.write_text(done.stdout) if not out.exists() else None


def build(cache, bpfcc, workers, sets):
    """Compiles what isn't compiled yet; returns {set: [objects]}."""
    cache.mkdir(parents=True, exist_ok=True)
    vmlinux = vmlinux_header(cache)
    jobs = []
    for version in KERNELS:
        jobs += jobs_for_selftests(cache, version, vmlinux)
    jobs += jobs_for_libbpf_tools(cache, bpfcc, vmlinux)
    todo = [j for j in jobs if not j[2].exists() and not j[2].with_suffix(".log").exists()]
    if todo:
        print(f"compiling {len(todo)} objects", flush=True)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(compile_one, todo))
    out = {}
    for place in sorted({j[2].parent for j in jobs}):
        if place.name.startswith("selftests"):
            link_selftests(place)
        name = place.name.rsplit("-", 1)[0]
        if not sets or name in sets:
            out[name] = sorted(place.glob("*.o"))
    if not sets or "libbpf-tools-packaged" in sets:
        out["libbpf-tools-packaged"] = packaged_objects(cache)
    return {name: objects for name, objects in out.items() if objects}
