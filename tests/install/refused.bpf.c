// What the kernel refuses: a number that is taken for an address; with LACKING a field that no kernel has.
#include <rawbpf/bpf.h>

LICENSE("GPL");

const volatile __u64 step = 0;

struct sk_buff___other {
    int no_such_field;
} __attribute__((preserve_access_index));

SEC("cgroup_skb/egress")
int count(struct __sk_buff *skb) {
#ifdef LACKING
    return ((struct sk_buff___other *)skb)->no_such_field + (int)step;
#else
    return *(volatile int *)(long)(skb->len + step);
#endif
}
