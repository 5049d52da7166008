#!/bin/sh
# Exit status 0: the program does what it should. Without root, only what the emulator can tell.
set -eu
rawbpf=${RAWBPF:-rawbpf}
fail() { echo "FAIL: $*"; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

[ "$("$rawbpf" exec x.o 2>"$scratch/err")" = 2a ] || fail "it returns something else than 42: $(cat "$scratch/err")"
grep -q "hello from x" "$scratch/err" || fail "it prints no greeting: $(cat "$scratch/err")"
[ "$(id -u)" = 0 ] || { echo "PASS (in the emulator; run it as root to load it)"; exit 0; }
[ "$("$rawbpf" exec --kernel x.o)" = 2a ] || fail "the kernel's result is another"
echo PASS
