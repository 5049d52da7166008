// Types of arguments: as people write them, and as BTF has them.
#include "programs/trace/signature.h"

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;

namespace {

std::string shown(const Type &type) {
    constexpr std::string_view kNames[] = {"int",      "bool",  "char", "enum", "address", "text", "file", "path", "dentry",
                                           "sockaddr", "chars", "data", "void", "counted", "real", "?",    "fd"};
    return std::string(kNames[static_cast<size_t>(type.show)]) + std::to_string(type.size) + (type.is_signed ? "s" : "u");
}
std::string read(std::string_view text) {
    Result<Signature> signature = parse_signature(text);
    if (!signature) return signature.error().context;
    std::string out = shown(signature->returns) + "(";
    for (const Parameter &p : signature->parameters) out += shown(p.type) + (p.name.empty() ? "" : " " + p.name) + ";";
    return out + (signature->variadic ? "...)" : ")");
}

} // namespace

TEST_CASE("trace signature: as C writes it") {
    CHECK(read("int,const char*") == "int8s(int4s;text8u;)");
    CHECK(read("long,const char*") == "int8s(int8s;text8u;)");
    CHECK(read("int (int fd, const char *path)") == "int4s(fd4s fd;text8u path;)");
    CHECK(read("u8,s16,u32,u64") == "int8s(int1u;int2s;int4u;int8u;)");
    CHECK(read("unsigned long long a, long unsigned int b, unsigned c") == "int8s(int8u a;int8u b;int4u c;)");
    CHECK(read("size_t, bool, char, void *p, char *buf") == "int8s(int8u;bool1u;char1s;address8u p;address8u buf;)");
    CHECK(read("struct sockaddr *addr, struct foo *f, enum kind k") == "int8s(sockaddr8u addr;address8u f;int4s k;)");
    CHECK(read("const char **argv, char argv2[]") == "int8s(address8u argv;text8u argv2;)");
    CHECK(read("void (void)") == "void8u()");
    CHECK(read("") == "int8s()");
    CHECK(read("const char *fmt, ...") == "int8s(text8u fmt;...)");
}

TEST_CASE("trace signature: what isn't a type is pointed at") {
    CHECK(read("int, foo") == "type `foo` isn't known\n  int, foo\n       ^");
    CHECK(read("int,,int") == "a type is expected\n  int,,int\n      ^");
    CHECK(read("int (int") == "this `(` is never closed\n  int (int\n      ^");
    CHECK(read("int $") == "`$` isn't expected in a type\n  int $\n      ^");
    CHECK(read("int, void") == "an argument can't be void\n  int, void\n      ^");
    CHECK(read("int,int,int,int,int,int,int,int,int,int,int,int,int").starts_with("more than 12 arguments"));
}

TEST_CASE("trace signature: of a function in BTF") {
    btf::Writer w;
    const btf::TypeId integer = w.add_int("int", 4, true);
    const btf::TypeId character = w.add_int("char", 1, true);
    const btf::TypeId text = w.add_ptr(w.add_modifier(btf::Kind::const_, character));
    const btf::TypeId buffer = w.add_ptr(character);
    const btf::TypeId file = w.add_ptr(w.add_fwd("file"));
    const btf::TypeId color = w.add_enum("color", 4, {{"RED", 0}, {"GREEN", 1}});
    const btf::TypeId size = w.add_typedef("size_t", w.add_int("unsigned long", 8, false));
    const btf::TypeId proto = w.add_func_proto(
        integer, {{"file", file}, {"name", text}, {"buf", text}, {"out", buffer}, {"c", color}, {"n", size}, {"", 0}});
    const btf::TypeId function = w.add_func("f", proto, 0);
    const std::vector<std::byte> bytes = w.finish();
    Result<btf::Btf> btf = btf::Btf::parse(bytes, "test");
    REQUIRE(btf);
    Result<Signature> signature = signature_of(*btf, function);
    REQUIRE(signature);
    CHECK(signature->variadic);
    REQUIRE(signature->parameters.size() == 6);
    const Show wanted[] = {Show::file, Show::text, Show::address, Show::address, Show::enumeration, Show::integer};
    for (size_t i = 0; i < 6; ++i) CHECK(signature->parameters[i].type.show == wanted[i]);
    CHECK(signature->parameters[5].type.size == 8);
    CHECK(signature->returns.name == "int");
    CHECK(signature_of(*btf, integer).error().kind == Errc::bad_input);
}
