#!/usr/bin/env python3
"""Writes a file's bytes as C++: embed.py SYMBOL INPUT OUTPUT.

The result defines `const std::span<const std::byte> SYMBOL`, aligned to 8 bytes, in namespace rawbpf. Used by the build for compiled
BPF objects, so that the binary carries its programs with it."""
import sys

symbol, source, target = sys.argv[1:]
with open(source, "rb") as file:
    data = file.read()
rows = [", ".join(str(byte) for byte in data[at : at + 32]) for at in range(0, len(data), 32)]
with open(target, "w", encoding="ascii") as out:
    out.write(f"""// Made by programs/embed.py at build time.
#include <cstddef>
#include <span>

namespace rawbpf::inline v0 {{
extern const std::span<const std::byte> {symbol};
alignas(8) static const unsigned char bytes[] = {{
    {(","+chr(10)+"    ").join(rows)}}};
const std::span<const std::byte> {symbol} = std::as_bytes(std::span(bytes));
}} // namespace rawbpf::inline v0
""")
