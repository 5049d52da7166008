# A kernel's types: a new one: members have moved, and flags is gone. A variable of the type is enough; the assembler writes the type into the object's BTF
.struct task
    start u64
    cpu u32
    prio u32
    state u32
    pid u32
.end
.bss of_new task
.program none "socket"
    r1 = of_new ll
    r0 = 0
    exit
