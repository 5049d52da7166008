# Builds the student's loader with a kernel of the check's own (kernel.c), so no privileges are needed, and lets it load check/program.hex.
cc=$(command -v cc || command -v gcc || command -v clang) || {
    echo "this lesson needs a C compiler: apt-get install gcc libc6-dev"
    exit 3
}
"$cc" -x c -o "$WORK/loader" "$LAB" "$CHECK/kernel.c" 2>"$WORK/messages" || {
    grep -E 'error' "$WORK/messages" | head -5
    exit 1
}
"$WORK/loader" "$CHECK/program.hex" 5 >"$WORK/out" 2>&1 || {
    head -5 "$WORK/out"
    exit 1
}
printf 'loaded: 12 instructions\nresult 2, counts[0] = 5\n' | cmp -s - "$WORK/out" || {
    echo "it must print the instructions, the result and the value of the map; it prints:"
    head -5 "$WORK/out"
    exit 1
}
