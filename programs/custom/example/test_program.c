// Reports five ids. Build with: cc -O1 -fno-omit-frame-pointer -o test_program test_program.c
#include <stdint.h>
#include <stdio.h>

// Does nothing: a uprobe on it sees the id in the first argument's register.
__attribute__((noinline)) void report_trace(uint64_t context_id) { __asm__ volatile("" : : "r"(context_id) : "memory"); }

int main(void) {
    for (uint64_t i = 0; i < 5; i++) report_trace(0x1000 + i);
    puts("reported 0x1000 to 0x1004");
    return 0;
}
