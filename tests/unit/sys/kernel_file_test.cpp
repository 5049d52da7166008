// Files of the kernel's: those that aren't there, and those that can't be seen. What is covered is tests/cli/hidden_test.py's.
#include "runtime/sys/kernel_file.h"

#include <cerrno>
#include <fcntl.h>
#include <optional>

#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("kernel files: of a /proc that can be seen whole, what isn't found isn't there") {
    CHECK(sys::hidden_below("/proc/sys/kernel/no_such_setting").empty());
    CHECK(sys::hidden_below("/proc/no/such/folder").empty());
    CHECK(sys::absent_hint("/proc/no_such_file", "built without it") == "built without it");
    const Result<std::string> absent = sys::kernel_line("/proc/no_such_file");
    REQUIRE_FALSE(absent);
    CHECK(sys::is_absent(absent.error()));
    REQUIRE(sys::kernel_line("/proc/sys/kernel/ostype"));
    CHECK(*sys::kernel_line("/proc/sys/kernel/ostype") == "Linux");
    CHECK(sys::hidden_below("/etc/no_such_file").empty()); // no file of the kernel's
}

TEST_CASE("kernel files: an empty one is what something was put over") {
    const Result<std::string> text = sys::read_kernel_file("/dev/null");
    REQUIRE_FALSE(text);
    CHECK(text.error().message() == "/dev/null is empty");
    CHECK_FALSE(sys::is_absent(text.error()));
}

TEST_CASE("kernel files: another file system in their place says nothing of the kernel") {
    // A process has no /sys below its own folders, so this one is looked for where nothing is mounted.
    const Result<std::vector<std::string>> names = sys::list_kernel_directory("/sys/kernel/security/no_such_folder");
    REQUIRE_FALSE(names);
    CHECK(names.error().os == ENOENT);
    const std::string hidden = sys::hidden_below("/sys/kernel/security/no_such_folder");
    CHECK(sys::is_absent(names.error()) == hidden.empty()); // where securityfs is mounted, it isn't there
    if (!hidden.empty()) CHECK(names.error().message().find(hidden) != std::string::npos);
}

TEST_CASE("kernel files: what a small system lacks is said with what helps") {
    test::FakeKernel kernel;
    int os = ENOENT;
    kernel.script = [&](const sys::Call &) -> std::optional<long> { return -os; };
    const Error unmounted = sys::open("/proc/kallsyms", O_RDONLY).error();
    CHECK(unmounted.message() == "opening /proc/kallsyms (no procfs at /proc): No such file or directory (ENOENT)");
    CHECK(unmounted.hint == "mount -t proc proc /proc");
    CHECK(unmounted.kind == Errc::unsupported);
    CHECK(sys::read_kernel_file("/proc/kallsyms").error().message() == unmounted.message()); // said once
    CHECK(sys::open("/sys/kernel/btf/vmlinux", O_RDONLY).error().hint == "mount -t sysfs sysfs /sys");
    CHECK(sys::open("/dev/null", O_WRONLY).error().hint == "mknod -m 666 /dev/null c 1 3");
    CHECK(sys::open("/etc/passwd", O_RDONLY).error().hint.empty());
    CHECK(sys::open("/processes", O_RDONLY).error().hint.empty());
    os = EROFS;
    CHECK(sys::open("a.svg", O_WRONLY).error().hint.find("name a file on") == 0);
    os = ENOSPC;
    CHECK(sys::open("a.svg", O_WRONLY).error().hint.find("that file system is full") == 0);
    CHECK(sys::write_all(1, "a", 1).error().hint.find("that file system is full") == 0);
    os = EIO;
    CHECK(sys::write_all(1, "a", 1).error().hint.empty());
}
