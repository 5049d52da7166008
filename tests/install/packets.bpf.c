// Counts the packets that the programs of a cgroup send.
#include <rawbpf/bpf.h>

LICENSE("GPL");

const volatile __u64 step = 0;
__u64 packets = 0;

SEC("cgroup_skb/egress")
int count(struct __sk_buff *skb) {
    __sync_fetch_and_add(&packets, step);
    return 1;
}
