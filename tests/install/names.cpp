// Addresses of a live process as names, with the installed headers and library only: those of two functions of this program.
#include <rawbpf/rawbpf.h>

#include <cstdint>
#include <cstdio>

using namespace rawbpf;

int main() {
    const uint64_t addresses[] = {reinterpret_cast<uintptr_t>(&main), reinterpret_cast<uintptr_t>(&std::puts)};
    auto symbols = symbols::ProcessSymbols::of(0); // any process's number; 0: this one
    if (!symbols) return std::fprintf(stderr, "%s\n", symbols.error().message().c_str()), 1;
    for (const symbols::NamedAddress &at : symbols->name(addresses))
        std::printf("%s+%lu %s\n", at.function.c_str(), at.offset, at.module.c_str());
}
