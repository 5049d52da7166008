# A kernel's types: an old one. A variable of the type is enough; the assembler writes the type into the object's BTF
.struct task
    pid u32
    flags u32
    start u64
.end
.bss of_old task
.program none "socket"
    r1 = of_old ll
    r0 = 0
    exit
