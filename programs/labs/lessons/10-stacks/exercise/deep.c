// Four functions that call each other: main, outer, middle, leaf
#include <stdio.h>

volatile long sum;

__attribute__((noinline)) void leaf(long n) { sum += n; }
__attribute__((noinline)) void middle(long n) {
    leaf(n);
    sum += 1; // something after the call: otherwise the compiler jumps to leaf, and middle has no frame
}
__attribute__((noinline)) void outer(long n) {
    middle(n);
    sum += 2;
}
int main(void) {
    for (long i = 0; i < 1000; ++i) outer(i);
    printf("sum %ld\n", sum);
    return 0;
}
