// A program that the compiler of C++ makes, written as an object file for `rawbpf bundle`: short_packets OBJECT
#include "asm/constant.h"
#include "runtime/object/unit_elf.h"

#include <cstdio>

using namespace rawbpf;

// A filter of a socket: of packets of at most 100 bytes all is kept, of longer ones nothing.
constexpr auto kShort = constant_program([](ConstantCode &f) {
    f.load<uint32_t>(r0, r1 + 0); // __sk_buff.len
    f.if_(r0 > 100, [&] { f.mov(r0, 0); });
    f.exit();
});

int main(int, char **arguments) {
    auto object = write_object(constant_unit("short_packets", "socket", kShort), nullptr);
    FILE *file = object ? fopen(arguments[1], "wb") : nullptr;
    return file && fwrite(object->data(), 1, object->size(), file) == object->size() && fclose(file) == 0 ? 0 : 1;
}
