// A student's first program: one header, one helper, one line of output for each execve on the machine.
#include <rawbpf/bpf.h>

LICENSE("GPL");

SEC("tracepoint/syscalls/sys_enter_execve")
int hello(void *ctx) {
    bpf_printk("hello from pid %d", (int)(bpf_get_current_pid_tgid() >> 32));
    return 0;
}
