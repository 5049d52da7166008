# Prints a line and returns 42.
.license "GPL"
.rodata greeting "hello from x"

.program hello "socket"
    r1 = greeting ll               # the text ...
    r2 = 13                        # ... and its length, the zero at its end included
    call bpf_trace_printk
    r0 = 42
    exit
