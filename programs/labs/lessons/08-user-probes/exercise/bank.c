// A bank with one probe. The note that the probe leaves in the program is written by hand here, so that you see all of it;
// <sys/sdt.h> and <rawbpf/usdt.h> have macros that do the same.
#include <stdio.h>

__attribute__((noinline)) static void transfer(unsigned long account, int amount) {
    __asm__ volatile("990: nop\n"                                    // the probe: an instruction that does nothing
                     ".pushsection .note.stapsdt, \"?\", \"note\"\n" // and a note about it, which isn't loaded into memory
                     ".balign 4\n"
                     ".4byte 992f - 991f, 994f - 993f, 3\n" // lengths of the name and of the content; type 3
                     "991: .asciz \"stapsdt\"\n"
                     "992: .balign 4\n"
                     "993: .8byte 990b, 0, 0\n" // where the nop is; base (unused); semaphore (none)
                     ".asciz \"bank\"\n"
                     ".asciz \"transfer\"\n"
                     ".asciz \"8@%0 -4@%1\"\n" // the arguments, which the compiler puts where it says here
                     "994: .balign 4\n"
                     ".popsection\n" ::"r"(account),
                     "r"(amount));
}

int main(void) {
    transfer(1, 100);
    transfer(1, -30);
    transfer(2, 7);
    puts("three transfers");
    return 0;
}
