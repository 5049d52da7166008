// Values: enumerators and flags by the types, constants by the names of function and argument.
#include "programs/trace/decode.h"

#include <csignal>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "programs/trace/constants.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;

namespace {

struct Enums {
    btf::Writer w;
    btf::TypeId color, flags, sequence;
    std::vector<std::byte> bytes;
    std::optional<btf::Btf> btf;
    Enums() {
        color = w.add_enum("color", 4, {{"RED", 0}, {"GREEN", 1}, {"GONE", -1}});

        flags = w.add_enum("bits", 4, {{"B_NONE", 0}, {"B_ONE", 1}, {"B_TWO", 2}, {"B_FOUR", 4}, {"B_TOP", 1 << 30}});
        sequence = w.add_enum("sequence", 4, {{"S0", 0}, {"S1", 1}, {"S2", 2}, {"S3", 3}, {"S4", 4}, {"S5", 5}});
        bytes = w.finish();
        Result<btf::Btf> parsed = btf::Btf::parse(bytes, "test");
        REQUIRE(parsed);
        btf = std::move(*parsed);
    }
    std::string text(btf::TypeId id, uint64_t raw, bool json = false, bool is_signed = false) {
        std::string out;
        bool unreadable = false;
        append_value(out, {"enum", Show::enumeration, 4, is_signed, id}, raw, nullptr, {}, &*btf, json, unreadable);
        return out;
    }
};

std::string plain(const Type &type, uint64_t raw, bool json = false) {
    std::string out;
    bool unreadable = false;
    append_value(out, type, raw, nullptr, {}, nullptr, json, unreadable);
    return out;
}

} // namespace

TEST_CASE("trace decode: enumerators, and flags put together") {
    Enums e;
    CHECK(e.text(e.color, 1) == "GREEN");
    CHECK(e.text(e.color, 0xdeadbeef00000001) == "GREEN"); // what is left in the register
    CHECK(e.text(e.color, 0xffffffff, false, true) == "GONE");
    CHECK(e.text(e.color, 7) == "7");
    CHECK(e.text(e.flags, 0) == "B_NONE");
    CHECK(e.text(e.flags, 4) == "B_FOUR");
    CHECK(e.text(e.flags, 0x40000003) == "B_ONE|B_TWO|B_TOP");
    CHECK(e.text(e.flags, 0x19) == "B_ONE|0x18");
    CHECK(e.text(e.flags, 0x18) == "24"); // none of them
    CHECK(e.text(e.sequence, 5) == "S5");
    CHECK(e.text(e.sequence, 9) == "9");    // not S1|0x8: these are no flags
    CHECK(e.text(e.flags, 5, true) == "5"); // JSON has the number; its name is a field of its own
}

TEST_CASE("trace decode: numbers, texts that aren't there, descriptors") {
    CHECK(plain({"int", Show::integer, 4, true}, 0xfffffffe) == "-2");
    CHECK(plain({"unsigned int", Show::integer, 4, false}, 0xfffffffffffffffe) == "4294967294");
    CHECK(plain({"s8", Show::integer, 1, true}, 0x1280) == "-128");
    CHECK(plain({"u64", Show::integer, 8, false}, UINT64_MAX, true) == "\"18446744073709551615\"");
    CHECK(plain({"long", Show::integer, 8, true}, uint64_t{1} << 63, true) == "\"-9223372036854775808\"");
    CHECK(plain({"bool", Show::boolean, 1, false}, 0x1200) == "false");
    CHECK(plain({"char", Show::character, 1, true}, 'a') == "'a'");
    CHECK(plain({"char", Show::character, 1, true}, 7) == "7");
    CHECK(plain({"const char *", Show::text, 8, false}, 0) == "NULL");
    CHECK(plain({"const char *", Show::text, 8, false}, 0, true) == "null");
    CHECK(plain({"void *", Show::address, 8, false}, 4096) == "0x1000");
    CHECK(plain({"void *", Show::address, 8, false}, 4096, true) == "\"0x1000\"");
    CHECK(plain({"unsigned long", Show::descriptor, 8, false}, 0xffffffff) == "-1"); // mmap()'s, as tracefs has it
}

TEST_CASE("trace constants: by function and argument") {
    CHECK(constant_name("openat", "flags", O_RDONLY | O_CLOEXEC) == "O_RDONLY|O_CLOEXEC");
    CHECK(constant_name("openat", "flags", O_WRONLY | O_CREAT | O_TRUNC) == "O_WRONLY|O_CREAT|O_TRUNC");
    CHECK(constant_name("open", "flags", O_RDWR | O_SYNC) == "O_RDWR|O_SYNC"); // which contains O_DSYNC
    CHECK(constant_name("open", "flags", O_RDWR | O_DSYNC) == "O_RDWR|O_DSYNC");
    CHECK(constant_name("open", "flags", O_RDWR | O_TMPFILE) == "O_RDWR|O_TMPFILE"); // which contains O_DIRECTORY
    CHECK(constant_name("open", "flags", O_DIRECTORY) == "O_RDONLY|O_DIRECTORY");
    CHECK(constant_name("open64", "flags", 0) == "O_RDONLY");
    CHECK(constant_name("__open", "flags", uint64_t{0xffffffff00000000} | O_APPEND) == "O_RDONLY|O_APPEND");
    CHECK(constant_name("do_filp_open", "flags", 0) == "O_RDONLY");
    CHECK(constant_name("openat", "dfd", static_cast<uint32_t>(AT_FDCWD)) == "AT_FDCWD");
    CHECK(constant_name("openat", "dfd", static_cast<uint64_t>(AT_FDCWD)) == "AT_FDCWD");
    CHECK(constant_name("openat", "dfd", 3).empty());
    CHECK(constant_name("openat", "mode", 0644) == "0644");
    CHECK(constant_name("openat", "mode", 0) == "0");
    CHECK(constant_name("access", "mode", R_OK | X_OK) == "R_OK|X_OK");
    CHECK(constant_name("access", "mode", F_OK) == "F_OK");
    CHECK(constant_name("mmap", "prot", PROT_READ | PROT_EXEC) == "PROT_READ|PROT_EXEC");
    CHECK(constant_name("mmap", "prot", PROT_NONE) == "");
    CHECK(constant_name("mmap", "flags", MAP_PRIVATE | MAP_ANONYMOUS) == "MAP_PRIVATE|MAP_ANONYMOUS");
    CHECK(constant_name("mmap", "flags", MAP_SHARED_VALIDATE | MAP_SYNC) == "MAP_SHARED_VALIDATE|MAP_SYNC");
    CHECK(constant_name("kill", "sig", SIGTERM) == "SIGTERM");
    CHECK(constant_name("kill", "sig", 0).empty());
    CHECK(constant_name("kill", "sig", 34) == "SIGRT34");
    CHECK(constant_name("socket", "family", AF_INET6) == "AF_INET6");
    CHECK(constant_name("socket", "type", SOCK_STREAM | SOCK_CLOEXEC) == "SOCK_STREAM|SOCK_CLOEXEC");
    CHECK(constant_name("socket", "type", 15).empty());
    CHECK(constant_name("lseek", "whence", SEEK_END) == "SEEK_END");
    CHECK(constant_name("clone", "clone_flags", 0x01200000 | SIGCHLD) == "CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD");
    CHECK(constant_name("vfs_read", "flags", 1).empty()); // nobody knows whose
    CHECK(constant_name("vfs_read", "count", 1).empty());
}
