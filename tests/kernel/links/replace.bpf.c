// A program with a function that another program replaces.
#include <rawbpf/bpf.h>

LICENSE("GPL");

__attribute__((noinline)) int answer(struct __sk_buff *skb) {
    volatile int one = 1; // a global function: verified by itself, so that another may stand in for it
    return one + (skb->len > 1 << 20);
}
SEC("tc") int entry(struct __sk_buff *skb) { return answer(skb); }

SEC("?freplace/answer") int instead(struct __sk_buff *skb) { return skb->len > 1 << 20 ? 1 : 42; }
