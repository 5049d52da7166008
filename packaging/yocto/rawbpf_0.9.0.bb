SUMMARY = "An eBPF runtime without libbpf, libelf and LLVM"
DESCRIPTION = "Loads, attaches, traces and profiles; its loader as a library for C and C++"
LICENSE = "MIT"
LIC_FILES_CHKSUM = "file://LICENSE;md5=abdb57b84f9d6928a61636da32a854fc"

# The release's tarball, in a folder of the layer or of PREMIRRORS.
SRC_URI = "file://rawbpf-${PV}.tar.xz"
S = "${WORKDIR}/rawbpf-${PV}"

DEPENDS = "fmt"
COMPATIBLE_HOST = "(x86_64|aarch64|riscv64|arm).*-linux"

inherit meson pkgconfig

PACKAGECONFIG ??= "json"
PACKAGECONFIG[json] = "-Djson=enabled,-Djson=disabled,nlohmann-json"
PACKAGECONFIG[lzma] = "-Dlzma=enabled,-Dlzma=disabled,xz"
PACKAGECONFIG[zlib] = "-Dzlib=enabled,-Dzlib=disabled,zlib"
PACKAGECONFIG[dwarf] = "-Ddwarf=enabled,-Ddwarf=disabled,elfutils"
PACKAGECONFIG[tls] = "-Dotlp=enabled -Dtls=enabled,-Dotlp=disabled -Dtls=disabled,openssl"

# The parts of the rawbpf command; profiling, loading and the libraries are always there.
RAWBPF_PARTS ??= "asm,trace"
EXTRA_OEMESON = "--wrap-mode=nodownload -Dtests=false -Dbpf=dsl -Ddebuginfod=disabled -Dparts=${RAWBPF_PARTS}"

# Each recipe's -dev has its static libraries in a package of their own; ours are the product.
FILES:${PN} += "${datadir}/rawbpf ${datadir}/bash-completion ${datadir}/zsh ${datadir}/fish ${datadir}/vim ${libdir}/rawbpf"
