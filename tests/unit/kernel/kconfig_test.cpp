// Values of .kconfig variables, by type, against a configuration of our own; and the version in its distributions' spellings.
#include "runtime/kernel/kconfig.h"

#include "runtime/base/format.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

struct Kconfig {
    ObjectSpec spec;
    btf::Writer types;
    uint32_t end = 0;
    Kconfig() { spec.name = "k.o"; }
    void add(std::string name, btf::TypeId type, uint32_t size, bool weak = false) {
        ExternSpec external;
        external.name = std::move(name);
        external.section = ".kconfig";
        external.type = type;
        external.size = size;
        external.weak = weak;
        external.offset = end;
        end += size;
        spec.externs.push_back(external);
    }
    Result<std::vector<std::byte>> values(std::string_view config, const VirtualConfig &facts = {}) {
        spec.btf = types.finish();
        spec.maps.resize(1);
        spec.maps[0].data_section = ".kconfig";
        spec.maps[0].value_size = end;
        return kconfig_values(spec, config, facts);
    }
};

std::string hex(const std::vector<std::byte> &bytes) {
    std::string out;
    for (std::byte b : bytes) append(out, "{:02x}", static_cast<unsigned>(b));
    return out;
}

} // namespace

TEST_CASE("kconfig: each type takes the values that it can hold") {
    Kconfig k;
    const auto flag = k.types.add_int("bool", 1, {8, 0, false, false, true});
    const auto letter = k.types.add_int("char", 1, true), i32 = k.types.add_int("int", 4, true);
    const auto u64 = k.types.add_int("unsigned long", 8, false);
    const auto tristate = k.types.add_enum("libbpf_tristate", 4, {{"TRI_NO", 0}, {"TRI_YES", 1}, {"TRI_MODULE", 2}});
    const auto text = k.types.add_array(letter, i32, 4);
    k.add("CONFIG_FLAG", flag, 1);
    k.add("CONFIG_LETTER", letter, 1);
    k.add("CONFIG_TRI", tristate, 4);
    k.add("CONFIG_HZ", i32, 4);
    k.add("CONFIG_BIG", u64, 8);
    k.add("CONFIG_TEXT", text, 4);
    k.add("CONFIG_NEGATIVE", i32, 4);
    k.add("CONFIG_NOT_SET", u64, 8, true);
    const auto values = k.values("# CONFIG_NOT_SET is not set\nCONFIG_FLAG=y\nCONFIG_LETTER=m\nCONFIG_TRI=m\nCONFIG_HZ=250\n"
                                 "CONFIG_BIG=0xffffffff81000000\nCONFIG_TEXT=\"(none)\"\nCONFIG_NEGATIVE=-2\nCONFIG_HZ=1000\n");
    if (!values) FAIL(values.error().message());
    CHECK(hex(*values) == "016d02000000fa00000000000081ffffffff286e6f00feffffff0000000000000000");
}

TEST_CASE("kconfig: what doesn't fit, or isn't there, is an error that names it") {
    auto one = [](btf::TypeId (*type)(btf::Writer &), uint32_t size, std::string_view line) {
        Kconfig k;
        const btf::TypeId id = type(k.types);
        k.add("CONFIG_X", id, size);
        auto values = k.values(line);
        return values ? std::string("fine") : values.error().message();
    };
    auto byte = [](btf::Writer &w) { return w.add_int("unsigned char", 1, false); };
    auto flag = [](btf::Writer &w) { return w.add_int("bool", 1, {8, 0, false, false, true}); };
    auto i32 = [](btf::Writer &w) { return w.add_int("int", 4, true); };
    CHECK(one(byte, 1, "CONFIG_X=255") == "fine");
    CHECK(one(byte, 1, "CONFIG_X=256").find("256 doesn't fit in 1 bytes") != std::string::npos);
    CHECK(one(i32, 4, "CONFIG_X=2147483647") == "fine");
    CHECK(one(i32, 4, "CONFIG_X=2147483648").find("doesn't fit") != std::string::npos);
    CHECK(one(i32, 4, "CONFIG_X=y").find("must be a bool") != std::string::npos);
    CHECK(one(i32, 4, "CONFIG_X=\"a\"").find("array of char") != std::string::npos);
    CHECK(one(i32, 4, "CONFIG_X=12ab").find("that isn't a number") != std::string::npos);
    CHECK(one(flag, 1, "CONFIG_X=m").find("tristate") != std::string::npos);
    CHECK(one(flag, 1, "CONFIG_X=1").find("must be an integer") != std::string::npos);
    CHECK(one(i32, 4, "CONFIG_Y=1").find("extern CONFIG_X: not set") != std::string::npos);
}

TEST_CASE("kconfig: virtual names") {
    Kconfig k;
    const auto u32 = k.types.add_int("unsigned int", 4, false), flag = k.types.add_int("bool", 1, {8, 0, false, false, true});
    k.add("LINUX_KERNEL_VERSION", u32, 4);
    k.add("LINUX_HAS_BPF_COOKIE", flag, 1);
    k.add("LINUX_HAS_SYSCALL_WRAPPER", u32, 4);
    k.add("LINUX_OF_TOMORROW", u32, 4, true);
    CHECK(hex(k.values("", {.version = 0x60c30, .cookie = true, .syscall_wrapper = true}).value()) ==
          "300c0600010100000000000000");
    k.add("SOMETHING", u32, 4, true);
    CHECK(k.values("", {.version = 1}).error().message().find("SOMETHING: no such value") != std::string::npos);
}

TEST_CASE("kconfig: the version, from the release or Debian's version") {
    CHECK(kernel_version_code("6.18.44-fc-v657", "#1 SMP PREEMPT_DYNAMIC @0") == 0x06122c);
    CHECK(kernel_version_code("6.1.0-40-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.153-1 (2025-09-20)") == 0x060199);
    CHECK(kernel_version_code("5.15", "") == 0x050f00);
    CHECK(kernel_version_code("5.15.999", "") == 0x050fff);
    CHECK(kernel_version_code("next", "") == 0);
}
