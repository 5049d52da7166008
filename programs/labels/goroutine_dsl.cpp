// The thread is stopped in this very moment. Its goroutine's labels are set at once, by one word, and what that leads to isn't
// changed afterwards, so what is read belongs together. What comes from the process is any number: how many labels are looked at
// is limited, a list that leads in circles ends like any other, and a m of the goroutine's that isn't the thread's is none.
//
// What is counted on the way stands in the record itself: a number in a register or on the stack would be another one on each
// way, and the verifier would follow them all. For its sake there are few ways, too.
#include "programs/labels/goroutine_dsl.h"

#include <cstddef>

#include <linux/bpf.h>

#include "programs/languages/thread_pointer_dsl.h"

namespace rawbpf::inline v0 {

namespace {

constexpr int64_t kMostCapacity = 1 << 16; // of a list: less than any address
constexpr int64_t kMostBits = 5;           // of a map: as many buckets
constexpr int64_t kKeys = 8, kValues = 8 + 8 * 16, kOverflow = 8 + 16 * 16, kBucket = kOverflow + 8; // of a bucket
constexpr int64_t kMostLabels = LABEL_MOST_BYTES - LABEL_HEAD_BYTES;                                 // bytes
constexpr int64_t kMostBefore = kMostLabels - 2 - LABEL_TEXT_BYTES; // of them, in front of another one
constexpr int64_t kBucketsDone = 8;                                 // in the record, while labels are read
constexpr int64_t kLeastFull = 5;                                   // of a slot's first byte: below it is empty, or has moved

class Reader {
  public:
    Reader(Code &f, const GoroutineReading &how) : f_(f), how_(how), words_(f.stack(24, 8, "goroutine words")) {}

    void read(Label none) {
        const Label all = f_.label("goroutine");
        find(none);
        to_record();
        for (int word = 0; word < 4; ++word) f_.store<uint64_t>(r1 + runtime(word * 8), 0);
        f_.store<uint8_t>(r1 + LABEL_VALID_AT, LABEL_GOROUTINE);
        if (how_.number) number();
        if (how_.keys) labels(all);
        f_.bind(all);
        to_record();
        f_.load<uint16_t>(r7, r1 + LABEL_SIZE_AT);
        f_.if_(r7 > runtime(kMostLabels), [&] { f_.mov(r7, runtime(kMostLabels)); });
        f_.add(r7, LABEL_HEAD_BYTES);
        f_.store<uint64_t>(r1 + runtime(kBucketsDone), 0);
        f_.add(r1, r7);
        f_.store<uint64_t>(r1 + 0, 0); // the rest of the last word
    }

  private:
    void to_record() { f_.mov(r1, r8); }
    /// r7 = the goroutine.
    void find(Label none) {
        const Slot m = f_.stack<uint64_t>("goroutine m");
        load_thread_pointer(f_, how_.arch);
        f_.load<uint64_t>(r7, RAWBPF_AT(r6, LabelProcess, offset));
        f_.add(r7, r1);
        follow(none);
        f_.load<uint32_t>(r1, RAWBPF_AT(r6, LabelProcess, go_m));
        f_.add(r7, r1);
        follow(none);
        f_.store<uint64_t>(m, r7);
        f_.load<uint32_t>(r1, RAWBPF_AT(r6, LabelProcess, go_curg));
        f_.add(r7, r1);
        follow(none);
        f_.load<uint32_t>(r1, RAWBPF_AT(r6, LabelProcess, go_m));
        f_.add(r1, r7);
        f_.read_user<uint64_t>(r1, r1 + 0);
        f_.load<uint64_t>(r2, m);
        f_.jump_if(r1 != r2, none);
    }
    void follow(Label none) {
        f_.read_user<uint64_t>(r7, r7 + 0);
        f_.jump_if(r7 == 0, none);
    }

    void number() {
        f_.load<uint32_t>(r1, RAWBPF_AT(r6, LabelProcess, go_number));
        f_.if_(r1 != 0, [&] {
            f_.add(r1, r7);
            f_.read_user<uint64_t>(r2, r1 + 0);
            to_record();
            f_.store<uint64_t>(r1 + 0, r2);
        });
    }

    void labels(Label all) {
        const Label map = f_.label("labels in a map");
        entry_.emplace(f_.stack(32, 8, "goroutine label"));
        key_.emplace(f_.stack(LABEL_KEY_BYTES, 8, "goroutine key"));
        f_.load<uint32_t>(r1, RAWBPF_AT(r6, LabelProcess, go_labels));
        f_.jump_if(r1 == 0, all);
        f_.add(r7, r1);
        f_.read_user<uint64_t>(r6, r7 + 0);
        f_.jump_if(r6 == 0, all);
        f_.call(helper::probe_read_user, words_, 24, r6);
        f_.if_(r0 != 0, [&] { // a map's address, and behind it a page that nobody has touched
            f_.read_user<uint64_t>(r1, r6 + 0);
            f_.store<uint64_t>(words_, r1);
        });
        f_.load<uint64_t>(r6, words_);
        f_.load<uint64_t>(r1, words_ + 8);
        f_.load<uint64_t>(r2, words_ + 16);
        f_.jump_if(r1 == 0, map);
        f_.jump_if(r1 > r2, map);
        f_.jump_if(r2 > kMostCapacity, map);
        of_list();
        f_.jump(all);
        f_.bind(map);
        of_map(all);
    }

    void of_list() {
        f_.loop(r7, LABEL_MOST_SEEN, [&] {
            f_.load<uint64_t>(r1, words_ + 8);
            f_.if_(r7 >= r1, [&] { f_.break_(); });
            f_.mov(r3, r7);
            f_.lsh(r3, 5);
            f_.add(r3, r6);
            f_.call(helper::probe_read_user, *entry_, 32, r3);
            take();
        });
    }

    // r6 the map, then the bucket.
    void of_map(Label all) {
        f_.call(helper::probe_read_user, words_, 24, r6);
        f_.jump_if(r0 != 0, all);
        f_.load<uint64_t>(r6, words_ + 16);
        f_.load<uint8_t>(r1, words_ + 9);
        f_.jump_if(r1 > kMostBits, all);
        f_.mov(r2, 1);
        f_.lsh(r2, r1);
        f_.store<uint64_t>(words_, r2); // buckets that there are
        f_.loop(r7, 2 * LABEL_MOST_SEEN, [&] {
            const Label slot = f_.label("slot");
            f_.mov(r1, r7);
            f_.and_(r1, 7);
            f_.jump_if(r1 != 0, slot);
            f_.jump_if(r7 == 0, slot);
            f_.read_user<uint64_t>(r6, r6 + runtime(kOverflow));
            f_.jump_if(r6 != 0, slot);
            to_record();
            f_.load<uint64_t>(r3, r1 + runtime(kBucketsDone));
            f_.add(r3, 1);
            f_.store<uint64_t>(r1 + runtime(kBucketsDone), r3);
            f_.load<uint64_t>(r2, words_);
            f_.mov(r1, r3);
            f_.if_(r1 >= r2, [&] { f_.break_(); });
            f_.mul(r1, runtime(kBucket));
            f_.load<uint64_t>(r6, words_ + 16);
            f_.add(r6, r1);
            f_.bind(slot);
            f_.mov(r1, r7);
            f_.and_(r1, 7);
            f_.add(r1, r6);
            f_.read_user<uint8_t>(r1, r1 + 0);
            f_.if_(r1 < kLeastFull, [&] { f_.continue_(); });
            to_slot(kKeys);
            f_.call(helper::probe_read_user, *entry_, 16, r3);
            to_slot(kValues);
            f_.call(helper::probe_read_user, *entry_ + 16, 16, r3);
            take();
        });
    }
    // r3 = the string of slot r7 & 7 of the bucket.
    void to_slot(int64_t from) {
        f_.mov(r3, r7);
        f_.and_(r3, 7);
        f_.lsh(r3, 4);
        f_.add(r3, r6);
        f_.add(r3, runtime(from));
    }

    // The label in entry_, if somebody asks for it and there is room: its key's number, its length, its text. What can't be read
    // the helper makes zeros: no key.
    void take() {
        const Label next = f_.label("next label");
        f_.zero(*key_);
        f_.load<uint64_t>(r2, *entry_ + 8);
        f_.sub(r2, 1);
        f_.jump_if(r2 >= LABEL_KEY_BYTES - 1, next);
        f_.add(r2, 1);
        f_.load<uint64_t>(r3, *entry_);
        f_.call(helper::probe_read_user, *key_, r2, r3);
        f_.call(helper::map_lookup_elem, *how_.keys, *key_);
        f_.jump_if(r0 == 0, next);
        f_.load<uint32_t>(r4, r0);
        to_record();
        f_.load<uint16_t>(r3, r1 + LABEL_SIZE_AT);
        f_.jump_if(r3 > runtime(kMostBefore), next);
        f_.load<uint64_t>(r2, *entry_ + 24);
        f_.if_(r2 > LABEL_TEXT_BYTES, [&] { f_.mov(r2, LABEL_TEXT_BYTES); });
        f_.add(r1, r3);
        f_.store<uint8_t>(r1 + LABEL_HEAD_BYTES, r4);
        f_.store<uint8_t>(r1 + (LABEL_HEAD_BYTES + 1), r2);
        f_.load<uint64_t>(r3, *entry_ + 16);
        f_.call(helper::probe_read_user, r1 + (LABEL_HEAD_BYTES + 2), r2, r3);
        f_.jump_if(r0 != 0, next);
        to_record();
        f_.mov(r4, r1);
        f_.load<uint16_t>(r3, r1 + LABEL_SIZE_AT);
        static_assert(kMostBefore < 512);
        f_.and_(r3, 511); // it changes nothing; the verifier wants to see it
        f_.add(r1, r3);
        f_.load<uint8_t>(r2, r1 + (LABEL_HEAD_BYTES + 1));
        f_.add(r3, r2);
        f_.add(r3, 2);
        f_.store<uint16_t>(r4 + LABEL_SIZE_AT, r3);
        f_.bind(next);
    }

    Code &f_;
    const GoroutineReading &how_;
    Slot words_;
    std::optional<Slot> entry_, key_;
};

} // namespace

void read_goroutine(Code &f, const GoroutineReading &how, Label none) { Reader(f, how).read(none); }

} // namespace rawbpf::inline v0
