"""<rawbpf/bpf.h> beside the kernel's own headers, in either order, with one include path and nothing else."""
import shutil

from harness import *

KERNEL = """linux/types.h linux/bpf.h linux/if_ether.h linux/ip.h linux/ipv6.h linux/tcp.h linux/udp.h linux/icmp.h linux/in.h linux/in6.h
linux/ptrace.h linux/pkt_cls.h linux/if_packet.h linux/if_vlan.h linux/if_arp.h linux/perf_event.h linux/bpf_perf_event.h linux/socket.h
linux/errno.h linux/stddef.h linux/swab.h linux/sched.h linux/netfilter.h linux/fs.h linux/stat.h linux/time.h linux/limits.h
linux/filter.h linux/version.h linux/byteorder/little_endian.h asm/types.h asm/byteorder.h asm/ptrace.h stddef.h stdbool.h""".split()


@test(long=True)
def headers_in_either_order():
    if not shutil.which("clang"):
        raise Skip("no clang")
    include = os.path.join(HERE, "..", "..", "programs", "include")
    body = 'SEC("socket") int p(struct __sk_buff *ctx) { return (__u32)bpf_ktime_get_ns() & ctx->len; }\nchar LICENSE[] SEC("license") = "GPL";\n'
    own = "#include <rawbpf/bpf.h>\n"
    def compiled(source):
        return subprocess.run(["clang", "--target=bpf", "-O2", "-g", "-Wall", "-Werror", "-I", include, "-x", "c", "-c", "-", "-o", "/dev/null"],
                              input=source.encode(), capture_output=True)
    sources = [source for header in KERNEL for source in (f"#include <{header}>\n{own}", f"{own}#include <{header}>\n")]
    for source, done in zip(sources, on_all_cores(lambda source: compiled(source + body), sources)):
        assert done.returncode == 0, source + done.stderr.decode()[:600]
    everything = "".join(f"#include <{h}>\n" for h in KERNEL)
    for source in (everything + own, own + everything):
        assert compiled(source + body).returncode == 0, "all of them together"
    # The host's programs see the host's headers.
    host = "#include <sys/socket.h>\n#include <linux/types.h>\n#include <asm/ptrace.h>\n#include <rawbpf/usdt.h>\n" \
           "int main(void) { struct sockaddr_storage s; return sizeof s == 128 ? 0 : 1; }\n"
    done = subprocess.run(["cc", "-Wall", "-Werror", "-I", include, "-x", "c", "-", "-o", path("host")], input=host.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[:600]
    assert run(binary=path("host")).code == 0
