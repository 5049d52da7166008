"""Which kernels there are, and how to get one without touching the system's package configuration.

A private apt configuration (its own source list, lists, caches and an empty status file) is derived from the system's sources:
the same archive, other suites. Packages are downloaded and unpacked, never installed. Versions disappear from an archive, so the
newest that the index names is taken, and what was downloaded is kept.

    name -> suites -> package index -> newest linux-image of that series -> .deb -> vmlinuz + modules -> vmlinux or Image
"""
import contextlib
import dataclasses
import functools
import glob
import hashlib
import lzma
import os
import re
import shutil
import struct
import subprocess


@dataclasses.dataclass(frozen=True)
class Kernel:
    name: str
    arch: str     # Debian's: amd64, arm64, riscv64, armhf
    series: str   # "5.10", or "" for the newest there is
    suites: tuple


KERNELS = [
    Kernel("5.10", "amd64", "5.10", ("bullseye-security", "bullseye")),
    Kernel("6.1", "amd64", "6.1", ("bookworm", "bookworm-security", "bookworm-updates")),
    Kernel("6.12", "amd64", "6.12", ("bookworm-security", "bookworm-backports", "trixie", "trixie-security")),
    Kernel("6.18", "amd64", "6.18", ("trixie-backports",)),
    Kernel("newest", "amd64", "", ("sid",)),
    Kernel("arm64-6.1", "arm64", "6.1", ("bookworm", "bookworm-security", "bookworm-updates")),
    Kernel("arm64-6.12", "arm64", "6.12", ("bookworm-security", "bookworm-backports", "trixie", "trixie-security")),
    Kernel("arm64-6.18", "arm64", "6.18", ("trixie-backports",)),
    Kernel("riscv64-6.12", "riscv64", "6.12", ("trixie", "trixie-security")),
    Kernel("armhf-6.1", "armhf", "6.1", ("bookworm", "bookworm-security", "bookworm-updates")),
]
BY_NAME = {k.name: k for k in KERNELS}


class Unavailable(Exception):
    """This kernel or tool can't be had here; the text says why."""


def cache_folder():
    base = os.environ.get("RAWBPF_VM_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "rawbpf-vm")
    os.makedirs(base, exist_ok=True)
    return base


def system_sources():
    """(uri, suite) pairs of the system's own apt sources, one-line and deb822 style."""
    pairs = []
    for path in ["/etc/apt/sources.list", *sorted(glob.glob("/etc/apt/sources.list.d/*.list"))]:
        try:
            lines = open(path, encoding="utf-8").read().splitlines()
        except OSError:
            continue
        for line in lines:
            m = re.match(r"deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)", line)
            if m:
                pairs.append((m.group(1), m.group(2)))
    for path in sorted(glob.glob("/etc/apt/sources.list.d/*.sources")):
        for stanza in re.split(r"\n\s*\n", open(path, encoding="utf-8").read()):
            fields = {}
            for line in stanza.splitlines():
                m = re.match(r"([A-Za-z-]+):\s*(.*)", line)
                if m and not line.startswith("#"):
                    fields[m.group(1).lower()] = m.group(2)
            if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() == "no":
                continue
            for uri in fields.get("uris", "").split():
                for suite in fields.get("suites", "").split():
                    pairs.append((uri, suite))
    return pairs


class Archive:
    """The private apt configuration."""

    def __init__(self):
        self.folder = os.path.join(cache_folder(), "apt")
        pairs = system_sources()
        main = [uri for uri, suite in pairs if not suite.endswith("-security")]
        security = [uri for uri, suite in pairs if suite.endswith("-security")]
        if not main:
            raise Unavailable("no apt sources here to derive kernels from")
        self.main = main[0]
        self.security = security[0] if security else None
        for part in ("lists/partial", "cache/archives/partial", "etc"):
            os.makedirs(os.path.join(self.folder, part), exist_ok=True)
        suites = dict.fromkeys(s for k in KERNELS for s in k.suites)
        with open(os.path.join(self.folder, "sources.list"), "w", encoding="utf-8") as f:
            for suite in suites:
                uri = self.security if suite.endswith("-security") else self.main
                if uri:
                    f.write(f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {uri} {suite} main\n")
        open(os.path.join(self.folder, "status"), "a").close()
        self.config = os.path.join(self.folder, "apt.conf")
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(f'''Dir::Etc::sourcelist "{self.folder}/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferencesparts "-";
Dir::State "{self.folder}";
Dir::State::lists "{self.folder}/lists";
Dir::State::status "{self.folder}/status";
Dir::Cache "{self.folder}/cache";
APT::Architecture "amd64";
APT::Architectures {{ "amd64"; "arm64"; "riscv64"; "armhf"; }};
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
''')

    def apt(self, *command, cwd=None, check=True):
        env = {**os.environ, "APT_CONFIG": self.config, "LC_ALL": "C.UTF-8"}
        return subprocess.run(list(command), cwd=cwd, env=env, check=check, capture_output=True, text=True)

    def update(self):
        self.apt("apt-get", "update", check=False)  # its status is 0 also where nothing could be reached
        return bool(glob.glob(os.path.join(self.folder, "lists", "*_Packages*")))

    def index(self):
        """All kernel packages that the indexes name: (package, arch, version)."""
        found = []
        r = self.apt("apt-cache", "dumpavail")
        name = arch = None
        for line in r.stdout.splitlines():
            if line.startswith("Package: "):
                name = line[9:]
            elif line.startswith("Architecture: "):
                arch = line[14:]
            elif line.startswith("Version: ") and name:
                version = line[9:]
            elif not line:
                if name and re.match(r"linux-(image|binary|modules)-\d", name):
                    found.append((name, arch, version))
                name = arch = None
        return found


@functools.cache
def current_archive(log):
    """The archive with its indexes as they are now, asked once a run, or None when it can't be reached."""
    log("updating the private package index")
    archive = Archive()
    return archive if archive.update() else None


def version_key(version):
    """Orders Debian versions well enough for kernels: runs of digits as numbers, "~" before everything."""
    return [(-1, 0) if part == "~" else (1, int(part)) if part.isdigit() else (0, 0) for part in re.findall(r"\d+|~", version)]


def candidates(kernel, index):
    """The packages that hold this kernel's image, newest first: (version string of the kernel, [packages])."""
    series = re.escape(kernel.series) if kernel.series else r"\d+\.\d+"
    flavour = {"riscv64": "riscv64", "armhf": "armmp"}.get(kernel.arch, f"cloud-{kernel.arch}")  # the smaller one, where there are two
    pattern = re.compile(rf"linux-(?:image|binary)-({series}\.\S*-{flavour})$")
    found = {}
    for package, arch, version in index:
        m = pattern.match(package)
        if m and arch == kernel.arch:
            found.setdefault(m.group(1), (version_key(m.group(1)), version))
    names = {p for p, a, _ in index if a == kernel.arch}
    out = []
    for release, (_, version) in sorted(found.items(), key=lambda item: item[1][0], reverse=True):
        packages = [f"linux-{part}-{release}" for part in ("binary", "modules") if f"linux-{part}-{release}" in names]
        if f"linux-binary-{release}" not in packages:
            packages.insert(0, f"linux-image-{release}")  # before 6.19 image and modules are one package
        out.append((release, version, packages))
    return out


@dataclasses.dataclass
class Image:
    kernel: Kernel
    release: str        # as uname -r says
    path: str           # what QEMU boots: an ELF vmlinux (x86) an Image (arm64, riscv64) or a zImage (armhf)
    modules: str        # .../lib/modules/RELEASE
    packages: dict      # file name -> sha256


def sha256_of(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            h.update(block)
    return h.hexdigest()


def unpack_image(vmlinuz, out, arch):
    """Cuts the kernel proper out of its wrapper: QEMU then needs no decompressor in the guest, which saves seconds a boot."""
    data = open(vmlinuz, "rb").read()
    if arch == "armhf":  # a program that unpacks the kernel behind it, in no format of its own: it does so in the guest
        if data[0x24:0x28] != b"\x18\x28\x6f\x01":
            raise Unavailable(f"{vmlinuz}: not a zImage")
        shutil.copyfile(vmlinuz, out + ".part")
        os.replace(out + ".part", out)
        return
    if arch == "amd64":
        # Documentation/arch/x86/boot.rst: setup_sects at 0x1f1, payload_offset and payload_length at 0x248.
        if data[0x202:0x206] != b"HdrS":
            raise Unavailable(f"{vmlinuz}: not a bzImage")
        setup = (data[0x1F1] or 4) + 1
        offset, length = struct.unpack_from("<II", data, 0x248)
        payload = data[setup * 512 + offset:][:length]
    elif data[4:8] == b"zimg":  # drivers/firmware/efi/libstub/zboot-header.S
        offset, length = struct.unpack_from("<II", data, 8)
        payload = data[offset:offset + length]
    else:
        payload = data
    if payload[:2] == b"\x1f\x8b":
        import zlib
        plain = zlib.decompressobj(31).decompress(payload)
    elif payload[:6] == b"\xfd7zXZ\x00":
        plain = lzma.LZMADecompressor().decompress(payload)
    elif payload[:4] == b"\x28\xb5\x2f\xfd":
        # The last four bytes are the size that the build appended; zstd calls them garbage but decodes all before them.
        plain = subprocess.run(["zstd", "-dcq"], input=payload, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    elif payload[:4] == b"\x02\x21\x4c\x18":
        plain = subprocess.run(["lz4", "-dcq"], input=payload, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    else:
        plain = payload
    good = plain[:4] == b"\x7fELF" if arch == "amd64" else plain[56:60] == {"arm64": b"ARMd", "riscv64": b"RSC\x05"}[arch]
    if not good:
        raise Unavailable(f"{vmlinuz}: no kernel found inside")
    with open(out + ".part", "wb") as f:
        f.write(plain)
    os.replace(out + ".part", out)


@contextlib.contextmanager
def whole(folder):
    """A folder to fill, which becomes `folder` when all went well and vanishes otherwise: what is there is whole."""
    part = folder + ".part"
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part)
    try:
        yield part
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def obtain(name, archive=None, release=None, log=lambda text: None):
    """The kernel of that name, from the cache or the archive. Raises Unavailable with the reason."""
    kernel = BY_NAME[name]
    folder = os.path.join(cache_folder(), "kernels", name)
    os.makedirs(folder, exist_ok=True)
    if archive is None:
        kept = sorted((d for d in os.listdir(folder) if os.path.exists(os.path.join(folder, d, "image"))
                       and d.startswith(kernel.series)), key=version_key, reverse=True)
        if release in kept or (kept and not release):
            release = release or kept[0]
            return load_image(kernel, release, os.path.join(folder, release))
        archive = current_archive(log)
        if not archive:
            if kept:
                return load_image(kernel, kept[0], os.path.join(folder, kept[0]))
            raise Unavailable("the package archive can't be reached")
    offers = candidates(kernel, archive.index())
    if not offers:
        raise Unavailable(f"the archive has no {kernel.series or 'kernel'} for {kernel.arch} any more")
    offer = next((o for o in offers if o[0] == release), offers[0])
    release, _, packages = offer
    where = os.path.join(folder, release)
    if not os.path.exists(os.path.join(where, "image")):
        log(f"fetching {' '.join(packages)}")
        with whole(where) as part:
            r = archive.apt("apt-get", "download", *[f"{p}:{kernel.arch}" for p in packages], cwd=part, check=False)
            debs = glob.glob(os.path.join(part, "*.deb"))
            if r.returncode != 0 or len(debs) != len(packages):
                raise Unavailable(f"downloading {' '.join(packages)} failed: {r.stderr.strip().splitlines()[-1:]}")
            with open(os.path.join(part, "hashes"), "w", encoding="utf-8") as f:
                for deb in sorted(debs):
                    f.write(f"{sha256_of(deb)}  {os.path.basename(deb)}\n")
            for deb in debs:
                subprocess.run(["dpkg-deb", "-x", deb, os.path.join(part, "root")], check=True)
                os.remove(deb)
            found = glob.glob(os.path.join(part, "root/boot/vmlinu[xz]-*")) + glob.glob(os.path.join(part, "root/usr/lib/modules/*/vmlinu[xz]*"))
            if not found:
                raise Unavailable(f"{' '.join(packages)}: no kernel inside")
            unpack_image(found[0], os.path.join(part, "image"), kernel.arch)
    return load_image(kernel, release, where)


def load_image(kernel, release, where):
    modules = (glob.glob(os.path.join(where, "root/lib/modules/*")) + glob.glob(os.path.join(where, "root/usr/lib/modules/*")) + [""])[0]
    hashes = {}
    for line in open(os.path.join(where, "hashes"), encoding="utf-8"):
        digest, name = line.split()
        hashes[name] = digest
    return Image(kernel, release, os.path.join(where, "image"), modules, hashes)
