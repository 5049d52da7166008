// Twenty frames without frame pointers, and nothing of the C library's above them, for board.sh.
volatile unsigned long sink;
__attribute__((noinline)) int down(int depth) {
    if (depth == 0)
        for (unsigned long i = 0; i < 3000; ++i) sink = sink * 3 + i;
    return depth == 0 ? 1 : down(depth - 1) + (int)(sink & 1);
}
int main(void) {
    for (;;) sink = sink + (unsigned long)down(20);
}
