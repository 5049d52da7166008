// The pure parts of sys: CPU lists, and who is behind sudo.
#include "runtime/sys/narrow_call.h"
#include "runtime/sys/process.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/sys/cpus.h"
#include "runtime/sys/file.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("cpus: lists as the kernel and people write them") {
    using List = std::vector<int>;
    CHECK(parse_cpu_list("0-3,8\n").value() == List{0, 1, 2, 3, 8});
    CHECK(parse_cpu_list("7").value() == List{7});
    CHECK(parse_cpu_list("\n").value().empty());
    CHECK(parse_cpu_list("").value().empty());
    CHECK(parse_cpu_list("5,1-2,2,1").value() == List{1, 2, 5});
    for (const char *bad : {"a", "1,", ",1", "1-", "-1", "3-1", "1--2", "1 2", "99999999999", "0-70000", "0x1", "1,,2"}) {
        CAPTURE(bad);
        Result<List> r = parse_cpu_list(bad);
        REQUIRE_FALSE(r.has_value());
        CHECK(r.error().kind == Errc::invalid_argument);
        CHECK(r.error().message().find(bad) != std::string::npos);
    }
}

TEST_CASE("process: the user behind sudo") {
    const std::string passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1001:Ann, of nowhere:/home/ann:/bin/sh\n";
    const std::string group = "root:x:0:\nann:x:1001:\nvideo:x:44:bob,ann\naudio:x:45:bob\nlast:x:46:ann";
    sys::User user = sys::user_from("1000", "1001", passwd, group).value();
    CHECK(user.uid == 1000);
    CHECK(user.gid == 1001);
    CHECK(user.name == "ann");
    CHECK(user.home == "/home/ann");
    CHECK(user.groups == std::vector<uint32_t>{1001, 44, 46});
    sys::User unknown = sys::user_from("1234", "1235", passwd, group).value();
    CHECK(unknown.name.empty());
    CHECK(unknown.groups == std::vector<uint32_t>{1235});
    for (const char *bad : {"", "-1", "root", "1000x", "99999999999", "4294967295", "0"}) {
        CAPTURE(bad);
        CHECK_FALSE(sys::user_from(bad, "1", passwd, group).has_value());
    }
    CHECK_FALSE(sys::user_from("1000", "", passwd, group).has_value());
    CHECK(sys::user_from("1000", "1001", ":::\n\n:", "::").has_value()); // broken files leave names and groups out
}

TEST_CASE("process: numbers of /proc/PID/status") {
    CHECK(sys::status_number(sys::own_pid(), "Tgid") == static_cast<uint64_t>(sys::own_pid()));
    CHECK(sys::status_number(sys::own_pid(), "PPid") == static_cast<uint64_t>(getppid()));
    CHECK(sys::status_number(sys::own_pid(), "RssAnon").value_or(0) > 0);
    CHECK(!sys::status_number(sys::own_pid(), "Name")); // no number
    CHECK(!sys::status_number(sys::own_pid(), "NoSuchField"));
    CHECK(!sys::status_number(999999999, "Tgid"));
}

TEST_CASE("process: a program that isn't for us to see isn't said to be missing; exists() is for those who look elsewhere then") {
    test::FakeKernel kernel;
    int os = EACCES;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number == __NR_newfstatat) return -os;
        return {};
    };
    const Error locked = sys::Child::spawn({"/locked/program"}).error();
    CHECK(locked.message() == "/locked/program: Permission denied (EACCES)");
    CHECK(locked.kind == Errc::invalid_argument);                                          // more privileges aren't the way out
    CHECK(sys::Child::spawn({"program"}).error().message() == "program: no such program"); // folders of PATH
    for (int answer : {ENOENT, ENOTDIR, EACCES, EPERM, ELOOP}) {
        os = answer;
        CHECK_FALSE(sys::exists("/some/file"));
    }
    for (int shortage : {EIO, ENOMEM, ENFILE}) {
        os = shortage;
        CHECK(sys::exists("/some/file"));
    }
    os = ENOENT;
    CHECK(sys::Child::spawn({"/no/program"}).error().message() == "/no/program: no such program");
}
