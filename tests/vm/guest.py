"""Boots a kernel under QEMU, without KVM and without root, runs one command in it, and brings back what it printed.

The root is an initramfs written here, file by file (the newc cpio format, Documentation/driver-api/early-userspace): no loop
devices, no root, no cpio program. Nothing is compressed: emulated, unpacking costs more than reading.
"""
import dataclasses
import os
import re
import shutil
import stat
import struct
import subprocess
import tempfile
import time


class Cpio:
    """A newc archive in memory."""

    def __init__(self):
        self.parts = []
        self.names = set()
        self.inode = 1

    def _entry(self, name, mode, data=b"", rdev=(0, 0)):
        name = name.strip("/")
        encoded = name.encode() + b"\0"
        self.inode += 1
        fields = [self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, rdev[0], rdev[1], len(encoded), 0]
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + encoded
        self.parts.append(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))
        self.names.add(name)

    def directory(self, name, mode=0o755):
        name = name.strip("/")
        if not name or name in self.names:
            return
        self.directory(os.path.dirname(name))
        self._entry(name, stat.S_IFDIR | mode)

    def file(self, name, data, mode=0o644):
        self.directory(os.path.dirname(name.strip("/")))
        self._entry(name, stat.S_IFREG | mode, data)

    def link(self, name, target):
        self.directory(os.path.dirname(name.strip("/")))
        self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def device(self, name, major, minor):
        self.directory(os.path.dirname(name.strip("/")))
        self._entry(name, stat.S_IFCHR | 0o600, rdev=(major, minor))

    def copy(self, source, name):
        """A file or a whole folder from the host."""
        if os.path.isdir(source):
            self.directory(name)
            for entry in sorted(os.listdir(source)):
                self.copy(os.path.join(source, entry), os.path.join(name, entry))
        else:
            with open(source, "rb") as f:
                self.file(name, f.read(), stat.S_IMODE(os.stat(source).st_mode))

    def write(self, path):
        with open(path, "wb") as f:
            for part in self.parts:
                f.write(part)
            f.write(b"070701" + b"0" * 8 * 11 + b"0000000B" + b"0" * 8 + b"TRAILER!!!\0" + b"\0" * 3)


DATE = "2026-01-01T00:00:00"  # in a guest whose clock counts instructions
PASSWD = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
APPLETS = """[ ash awk basename cat chmod chown chroot cmp cp cut date dd df dirname dmesg echo env expr false find grep gunzip gzip head
hexdump hostname id ifconfig insmod ip kill ln ls lsmod md5sum mkdir mknod mount mv nc nproc od pidof ping printf ps pwd readlink
realpath rm rmdir sed seq sh sha256sum sleep sort stat stty su sync tail tar tee test time timeout touch tr true umount uname uniq
unshare usleep vi wc wget which xargs yes""".split()


@dataclasses.dataclass
class Result:
    status: int        # the command's own; 124 time-out, 125 the guest died without one
    out: bytes
    err: bytes
    seconds: float     # ours, as is the next
    cpu: float
    log: str           # the kernel's


def module_files(folder, wanted):
    """Paths of the modules and what they depend on, in loading order (modules.dep isn't in the package; .modinfo is in each file)."""
    import lzma
    by_name = {}
    for base, _, files in os.walk(folder):
        for f in files:
            if ".ko" in f:
                by_name[f.split(".ko")[0].replace("-", "_")] = os.path.join(base, f)
    order, data = [], {}

    def add(name):
        name = name.replace("-", "_")
        if name in data or name not in by_name:
            return  # already there, or built in
        with open(by_name[name], "rb") as f:
            raw = f.read()
        if by_name[name].endswith(".xz"):
            raw = lzma.decompress(raw)
        elif by_name[name].endswith(".zst"):
            raw = subprocess.run(["zstd", "-dcq"], input=raw, stdout=subprocess.PIPE, check=True).stdout
        data[name] = raw
        at = raw.find(b"\0depends=")
        if at >= 0:
            for dependency in raw[at + 9:raw.index(b"\0", at + 1)].decode().split(","):
                if dependency:
                    add(dependency)
        order.append(name)

    for name in wanted:
        add(name)
    return [(name, data[name]) for name in order]


def libraries(path):
    """What an executable is loaded with: its interpreter and its shared libraries, by ldd(1). Empty for a static one, for one of
    another machine, and for what isn't executable."""
    if not os.path.isfile(path):
        return []
    with open(path, "rb") as f:
        head = f.read(64)
        if len(head) < 64 or head[:5] != b"\x7fELF\x02" or struct.unpack_from("<H", head, 18)[0] != {"x86_64": 62, "aarch64": 183, "riscv64": 243}.get(os.uname().machine):
            return []
        offset, size, count = *struct.unpack_from("<Q", head, 32), *struct.unpack_from("<HH", head, 54)
        f.seek(offset)
        table = f.read(size * count)
    if not any(struct.unpack_from("<I", table, at)[0] == 3 for at in range(0, len(table), size)):  # PT_INTERP
        return []
    found = re.findall(r"(?:=>|^)\s*(/\S+) \(0x", subprocess.run(["ldd", path], stdout=subprocess.PIPE, text=True, check=True).stdout, re.M)
    return sorted(set(found))


QEMU = {"amd64": "qemu-system-x86_64", "arm64": "qemu-system-aarch64", "riscv64": "qemu-system-riscv64",
        "armhf": "qemu-system-arm"}  # Debian's names of machines


def cpu_seconds(pid):
    """What a running process has used so far (proc(5), utime and stime in /proc/PID/stat)."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for(process, timeout, cpu_limit=None):
    """(whether it had to be killed, the CPU seconds that it took)."""
    end, timed_out = time.monotonic() + timeout, False
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return timed_out, usage.ru_utime + usage.ru_stime
        if not timed_out and (time.monotonic() > end or cpu_limit and cpu_seconds(process.pid) > cpu_limit):
            timed_out = True
            process.kill()
        time.sleep(0.02)


def boot(image, command, init, busybox=None, files=(), modules=(), env=(), memory=512, cpus=1, timeout=60, append="", bare=False,
         directory="/tmp", mounts=(), cpu_limit=None, instruction_ns=128):
    """Runs `command` (a list) in a guest that boots `image` (kernels.Image).

    files: (host path, guest path) pairs; shared libraries come along. bare: nothing but the files in the root and nothing mounted but /dev and `mounts`, pairs
    of a file system's type and where. It is killed after so many seconds, or so many of CPU time.
    """
    arch = image.kernel.arch
    work = tempfile.mkdtemp(prefix="rawbpf-vm-")
    try:
        root = Cpio()
        for name in ("dev", "proc", "sys", "tmp", "run", "root") if not bare else ("dev",):
            root.directory(name)
        root.device("dev/console", 5, 1)
        root.device("dev/null", 1, 3)
        with open(init, "rb") as f:
            root.file("init", f.read(), 0o755)
        if not bare:
            root.directory("etc")
            root.file("etc/passwd", PASSWD.encode())
            root.file("etc/group", b"root:x:0:\nnogroup:x:65534:\n")
            root.file("etc/hosts", b"127.0.0.1 localhost\n")
            config = os.path.join(os.path.dirname(image.path), "root/boot", f"config-{image.release}")
            if os.path.exists(config):
                root.copy(config, f"boot/config-{image.release}")
            if busybox:
                with open(busybox, "rb") as f:
                    root.file("bin/busybox", f.read(), 0o755)
                for applet in APPLETS:
                    root.link(f"bin/{applet}", "busybox")
        placed = {name for _, name in files}
        for source, name in files:
            root.copy(source, name)
            for library in libraries(source):
                if library[1:] not in placed:
                    placed.add(library[1:])
                    root.copy(library, library[1:])
        if not bare:
            root.directory(directory)
        lines = [f"port {'/dev/ttyS0' if arch in ('arm64', 'armhf') else '/dev/ttyS1'}", f"directory {directory}"]
        if bare:
            lines.append("bare")
        lines += [f"mount {kind} {where}" for kind, where in mounts]
        for name, data in module_files(image.modules, modules) if image.modules else ():
            root.file(f"lib/modules/{name}.ko", data)
            lines.append(f"module /lib/modules/{name}.ko")
        lines += [f"env {e}" for e in env]
        lines += ["arg " + word.replace("\\", "\\\\").replace("\n", "\\n") for word in command]
        root.file("guest", ("\n".join(lines) + "\n").encode())
        initrd, out, log = (os.path.join(work, n) for n in ("initrd", "out", "log"))
        root.write(initrd)
        # With one CPU the guest's clock counts instructions and jumps where the guest sleeps: what happens depends on nothing else
        # that goes on on the host, a sleep costs nothing, and a guest takes one CPU of the host. 4 ns each for the tests; 128 ns,
        # a small board's, for commands: what they do themselves is long enough there to be seen in a profile. With more CPUs QEMU
        # would run one after the other, and starve those whose timers come right after another's.
        # What is left that differs from run to run is the date and chance. The date is fixed then, and x86's instructions for random
        # numbers, which are the host's, are taken away: the kernel's are made of the clock. So where programs and their stacks lie is
        # the same each time, and a figure is the same to the last digit.
        accel, chance = ["-accel", "tcg,thread=multi"], ""
        if cpus == 1 and instruction_ns != 0:
            accel = ["-accel", "tcg,thread=single", "-icount", f"shift={instruction_ns.bit_length() - 1},sleep=off", "-rtc", f"base={DATE},clock=vm"]
            chance = ",rdrand=off,rdseed=off"
        common = [*accel, "-m", str(memory), "-smp", str(cpus), "-display", "none", "-monitor", "none", "-no-reboot",
                  "-nodefaults", "-no-user-config", "-kernel", image.path, "-initrd", initrd]
        if arch == "riscv64":
            machine = [QEMU[arch], "-M", "virt", "-bios", "default", *common, "-serial", f"file:{log}",
                       "-chardev", f"file,id=o,path={out}", "-device", "pci-serial,chardev=o"]
            console = "ttyS0"
        elif arch == "armhf":
            # A kernel without LPAE sees the lower 4 GiB.
            machine = [QEMU[arch], "-M", "virt,highmem=off", "-cpu", "cortex-a15", *common, "-serial", f"file:{log}",
                       "-chardev", f"file,id=o,path={out}", "-device", "pci-serial,chardev=o"]
            console = "ttyAMA0"
        elif arch == "arm64":
            machine = [QEMU[arch], "-M", "virt", "-cpu", "cortex-a57", *common, "-serial", f"file:{log}",
                       "-chardev", f"file,id=o,path={out}", "-device", "pci-serial,chardev=o"]
            console = "ttyAMA0"
        else:
            # Of `rep movsb` each byte counts as an instruction: where the CPU isn't said to be good at it, the kernel copies words.
            machine = [QEMU[arch], "-M", "q35", "-cpu", "max,la57=off,erms=off,fsrm=off" + chance, *common,
                       "-chardev", f"file,id=k,path={log}", "-device", "isa-serial,index=0,chardev=k",
                       "-chardev", f"file,id=o,path={out}", "-device", "isa-serial,index=1,chardev=o",
                       "-device", "isa-debug-exit,iobase=0xf4,iosize=1"]
            # The kernel's check of its timer counts ticks against a loop, and panics where the host gave us too little time.
            console, append = "ttyS0", f"no_timer_check {append}"
        # Its own tests of its ciphers would take half of the first seconds.
        machine += ["-append", f"console={console} panic=-1 mitigations=off nokaslr cryptomgr.notests quiet loglevel=4 {append}"]
        said_path = os.path.join(work, "said")
        start = time.monotonic()
        with open(said_path, "wb") as said_file, subprocess.Popen(machine, stdin=subprocess.DEVNULL, stdout=said_file, stderr=subprocess.STDOUT) as p:
            try:
                timed_out, cpu = wait_for(p, timeout, cpu_limit)
            except BaseException:  # whoever is told to end takes the machine along
                p.kill()
                raise
        seconds = time.monotonic() - start
        said = open(said_path, encoding="utf-8", errors="replace").read()
        raw = open(out, "rb").read() if os.path.exists(out) else b""
        kernel_log = open(log, encoding="utf-8", errors="replace").read() if os.path.exists(log) else ""
        result = unframe(raw)
        if result is None or result[0] is None:
            partial = result or (None, b"", b"")
            return Result(124 if timed_out else 125, partial[1], partial[2], seconds, cpu, kernel_log + said)
        return Result(result[0], result[1], result[2], seconds, cpu, kernel_log)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def unframe(raw):
    """(status or None, stdout, stderr), or None when the guest never got to its init."""
    at = raw.find(b"\x01RBb")
    if at < 0:
        return None
    out, err, status = [], [], None
    while at + 8 <= len(raw):
        if raw[at:at + 3] != b"\x01RB":  # kernel text in between: look for the next frame
            at = raw.find(b"\x01RB", at)
            if at < 0:
                break
            continue
        kind, length = raw[at + 3:at + 4], struct.unpack_from("<I", raw, at + 4)[0]
        payload = raw[at + 8:at + 8 + length]
        at += 8 + length
        if kind == b"o":
            out.append(payload)
        elif kind == b"e":
            err.append(payload)
        elif kind == b"x" and payload:
            status = payload[0]
    return status, b"".join(out), b"".join(err)
