SUMMARY = "An eBPF runtime without libbpf, libelf and LLVM"
DESCRIPTION = "Loads, attaches, traces and profiles; its loader as a library for C and C++"
LICENSE = "MIT"
LIC_FILES_CHKSUM = "file://LICENSE;md5=abdb57b84f9d6928a61636da32a854fc"

# Where the release's tarball lies: in a folder of the layer (file:/), or on a server of yours (https://...), for which its checksum is
# stated; ./dev release writes it into dist/yocto.
RAWBPF_SITE ??= "file:/"
SRC_URI = "${RAWBPF_SITE}/rawbpf-${PV}.tar.xz"
SRC_URI[sha256sum] = ""

DEPENDS = "fmt"
COMPATIBLE_HOST = "(x86_64|aarch64|riscv64|arm).*-linux"

inherit meson pkgconfig

# json needs the layer meta-oe, which has nlohmann-json.
PACKAGECONFIG ??= ""
PACKAGECONFIG[json] = "-Djson=enabled,-Djson=disabled,nlohmann-json"
PACKAGECONFIG[lzma] = "-Dlzma=enabled,-Dlzma=disabled,xz"
PACKAGECONFIG[zlib] = "-Dzlib=enabled,-Dzlib=disabled,zlib"
PACKAGECONFIG[dwarf] = "-Ddwarf=enabled,-Ddwarf=disabled,elfutils"
PACKAGECONFIG[tls] = "-Dotlp=enabled -Dtls=enabled,-Dotlp=disabled -Dtls=disabled,openssl"

# The parts of the rawbpf command; recording, loading and the libraries are always there.
RAWBPF_PARTS ??= "doctor,experiments,refusals,report,running,trace,unwind"
EXTRA_OEMESON = "-Dtests=false -Dbpf=dsl -Ddebuginfod=disabled -Dparts=${RAWBPF_PARTS}"

# The libraries are static, and in ${PN}-staticdev, as every recipe's.
FILES:${PN} += "${datadir}/bash-completion ${datadir}/zsh ${datadir}/fish ${datadir}/vim"
