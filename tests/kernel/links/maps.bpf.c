// Maps of several kinds, filled by one program run: what `rawbpf load --attach` shows at its end.
#include <rawbpf/bpf.h>

LICENSE("GPL");

struct who {
    int pid;
    char comm[16];
};
enum mood { CALM, BUSY = 7 };
struct what {
    __u64 hits;
    enum mood mood;
    __u8 bytes[4];
    unsigned low : 3, high : 5;
};
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 8);
    __type(key, struct who);
    __type(value, struct what);
} seen SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 4);
    __type(key, __u32);
    __type(value, __u64);
} slots SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} each SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} events SEC(".maps");

int answer = 41;
char greeting[8];
const volatile int constant = 5;

SEC("socket") int fill(void *ctx __unused) {
    struct who who = {.pid = 12, .comm = "bash"};
    struct what what = {.hits = 1ull << 60, .mood = BUSY, .bytes = {1, 2, 3, 4}, .low = 5, .high = 17};
    bpf_map_update_elem(&seen, &who, &what, 0);
    who.pid = 3;
    what.hits = constant;
    bpf_map_update_elem(&seen, &who, &what, 0);
    __u32 key = 2;
    __u64 *slot = bpf_map_lookup_elem(&slots, &key);
    if (slot) *slot = 9;
    key = 0;
    slot = bpf_map_lookup_elem(&each, &key);
    if (slot) *slot = 1;
    answer++;
    greeting[0] = 'h', greeting[1] = 'i';
    void *record = bpf_ringbuf_reserve(&events, 8, 0);
    if (record) bpf_ringbuf_discard(record, 0);
    return 0;
}
