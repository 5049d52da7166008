// What a code object's number stands for, instruction by instruction: the object's name, its owner's, its file, its lines.
#include "programs/languages/walk_places.h"

namespace rawbpf::inline v0 {

namespace {

struct EmitCode : LanguagePlaces {
    /// As much as fits of what is at r7: it may end close to what can't be read. The first size that can be is in `bytes`.
    template <size_t n> void take_most(const uint32_t (&sizes)[n], size_t to, size_t bytes, uint32_t more, Label taken) const {
        for (const uint32_t size : sizes) {
            g.store<uint32_t>(at(bytes), runtime(static_cast<int64_t>(size + more)));
            g.call(helper::probe_read_user, at(to), runtime(static_cast<int64_t>(size)), r7);
            g.jump_if(r0 == 0, taken);
        }
    }

    /// The text whose object's address is r7: the object's bytes, or its head and then its characters. r7 to r9 are gone.
    void take_text(size_t text, size_t bytes) const {
        static constexpr uint32_t kSizes[] = {LANGUAGE_TEXT_BYTES, 160, 96, 64, 48, 40, 32},
                                  kFarSizes[] = {LANGUAGE_TEXT_BYTES - LANGUAGE_TEXT_HEAD, 128, 64, 32, 16, 8};
        constexpr int kCharacters = 24;
        const Label taken = g.label("text taken"), near = g.label("near"), none = g.label("no text");
        g.jump_if(r7 == 0, none);
        g.load<uint32_t>(r8, STATE(process.text_far));
        g.jump_if(r8 == 0, near);
        g.read_user<uint32_t>(r9, r7 + 0);
        g.and_(r9, r8);
        g.jump_if(r9 == 0, near);
        g.call(helper::probe_read_user, at(text), LANGUAGE_TEXT_HEAD, r7);
        g.read_user<uint64_t>(r7, r7 + kCharacters);
        take_most(kFarSizes, text + LANGUAGE_TEXT_HEAD, bytes, LANGUAGE_TEXT_HEAD, taken);
        g.jump(none);
        g.bind(near);
        take_most(kSizes, text, bytes, 0, taken);
        g.bind(none);
        g.store<uint32_t>(at(bytes), 0);
        g.bind(taken);
    }

    /// r7 = what the hops lead to from there; those below `skip` (a u32 of the state) are left out.
    template <uint32_t n> void follow(size_t count, size_t hops, size_t skip) const {
        for (uint32_t i = 0; i < n; ++i) {
            const Label there = g.label("followed"), next = g.label("next hop");
            g.load<uint16_t>(r1, at(count));
            g.jump_if(r1 <= runtime(i), there);
            g.jump_if(r7 == 0, there);
            g.load<uint32_t>(r1, at(skip));
            g.jump_if(r1 > runtime(i), next);
            g.load<uint16_t>(r1, at(hops + i * sizeof(uint16_t)));
            g.add(r7, r1);
            g.read_user<uint64_t>(r7, r7 + 0);
            g.bind(there);
            g.bind(next);
        }
    }

    /// The state's `named`: the hops that are left out, since the code object's word is the name itself.
    void take_named() const {
        g.store<uint32_t>(STATE(named), 0);
        g.load<uint32_t>(r8, STATE(process.named_mask));
        g.if_(r8 != 0, [&] {
            of_code<uint32_t>(r2, offsetof(LanguageState, process.named));
            g.and_(r2, r8);
            g.if_(r2 != 0, [&] { g.store<uint32_t>(STATE(named), LANGUAGE_NAME_HOPS); });
        });
    }

    void take_name() const {
        of_code<uint64_t>(r7, offsetof(LanguageState, process.name));
        follow<LANGUAGE_NAME_HOPS>(offsetof(LanguageState, process.name_hops), offsetof(LanguageState, process.name_hop),
                                   offsetof(LanguageState, named));
        take_text(offsetof(LanguageState, code.name), offsetof(LanguageState, code.name_bytes));
    }

    void take_file() const {
        const Label one = g.label("one path");
        load_file(r7);
        g.load<uint32_t>(r8, STATE(process.list_mask));
        g.jump_if(r8 == 0, one);
        g.read_user<uint32_t>(r9, r7 + 0);
        g.and_(r9, r8);
        g.load<uint32_t>(r8, STATE(process.list_value));
        g.jump_if(r8 != r9, one);
        g.load<uint16_t>(r1, STATE(process.list_first));
        g.add(r7, r1);
        g.read_user<uint64_t>(r7, r7 + 0);
        g.bind(one);
        take_text(offsetof(LanguageState, code.file), offsetof(LanguageState, code.file_bytes));
    }

    void take_owner() const {
        g.store<uint32_t>(STATE(code.owner_bytes), 0);
        if_flag(LANGUAGE_OWNER, [&] {
            of_code<uint64_t>(r7, offsetof(LanguageState, process.owner));
            g.load<uint32_t>(r1, STATE(named));
            g.if_(r1 != 0, [&] { of_code<uint64_t>(r7, offsetof(LanguageState, process.named_owner)); });
            follow<LANGUAGE_OWNER_HOPS>(offsetof(LanguageState, process.owner_hops), offsetof(LanguageState, process.owner_hop),
                                        offsetof(LanguageState, named));
            if_flag(LANGUAGE_OWNER_TABLE, [&] { find_in_table(); });
            take_text(offsetof(LanguageState, code.owner), offsetof(LanguageState, code.owner_bytes));
        });
    }

    /// r7 = the word behind the table of the owner at r7.
    void find_in_table() const {
        g.read_user<uint64_t>(r8, r7 + 0);
        g.load<uint16_t>(r1, STATE(process.owner_size));
        g.add(r1, r8);
        g.read_user<uint64_t>(r8, r1 + 0);
        g.load<uint16_t>(r1, STATE(process.owner_table));
        g.add(r1, r7);
        g.read_user<uint64_t>(r7, r1 + 0);
        g.lsh(r8, 3);
        g.add(r7, r8);
        g.read_user<uint64_t>(r7, r7 + 8);
    }

    /// r9 = bytes of the table, which are in the record then.
    void take_table() const {
        constexpr int kData = 16; // behind the length of a bytes object
        const Label taken = g.label("table taken"), entries = g.label("entries"), read = g.label("read the table");
        g.mov(r9, 0);
        g.load<uint32_t>(r1, STATE(process.tables));
        g.jump_if(r1 == LANGUAGE_TABLE_NONE, taken);
        of_code<uint64_t>(r7, offsetof(LanguageState, process.table));
        g.load<uint32_t>(r1, STATE(process.tables));
        g.jump_if(r1 == LANGUAGE_TABLE_ENTRIES, entries);
        g.load<uint16_t>(r1, STATE(process.table_head));
        g.add(r7, r1);
        g.read_user<uint64_t>(r9, r7 + 0);
        g.if_(r9 > runtime(LANGUAGE_TABLE_BYTES), [&] { g.mov(r9, LANGUAGE_TABLE_BYTES); });
        g.add(r7, kData);
        g.jump(read);
        g.bind(entries);
        constexpr int64_t kEntries = LANGUAGE_TABLE_BYTES - LANGUAGE_INDEX_BYTES;
        of_code<uint32_t>(r9, offsetof(LanguageState, process.entries));
        g.load<uint16_t>(r1, STATE(process.entry));
        g.mul(r9, r1);
        g.if_(r9 > runtime(kEntries), [&] { g.mov(r9, runtime(kEntries)); });
        g.bind(read);
        g.call(helper::probe_read_user, STATE(code.table), r9, r7);
        g.if_(r0 != 0, [&] { g.mov(r9, 0); });
        g.bind(taken);
    }

    /// Behind the r9 bytes of a table of entries: r9 more. How many blocks an index has isn't known, and behind its end there may
    /// be nothing: as many as can be read.
    void take_index() const {
        constexpr uint32_t kHead = 48, kBlock = 80;
        static_assert((LANGUAGE_INDEX_BYTES - kHead) % kBlock == 0);
        const Label taken = g.label("index taken");
        g.store<uint32_t>(STATE(code.index_bytes), 0);
        g.store<uint32_t>(STATE(code.table_bytes), r9);
        g.load<uint32_t>(r1, STATE(process.tables));
        g.jump_if(r1 != LANGUAGE_TABLE_ENTRIES, taken);
        g.jump_if(r9 > runtime(LANGUAGE_TABLE_BYTES - LANGUAGE_INDEX_BYTES), taken); // it never is
        of_code<uint64_t>(r7, offsetof(LanguageState, process.index));
        g.jump_if(r7 == 0, taken);
        for (uint32_t blocks = (LANGUAGE_INDEX_BYTES - kHead) / kBlock + 1; blocks-- > 0;) {
            const uint32_t size = kHead + blocks * kBlock;
            const Label smaller = g.label("smaller");
            g.mov(r1, r6);
            g.add(r1, r9);
            g.call(helper::probe_read_user, r1 + runtime(offsetof(LanguageState, code.table)),
                   runtime(static_cast<int64_t>(size)), r7);
            g.jump_if(r0 != 0, smaller);
            g.store<uint32_t>(STATE(code.index_bytes), runtime(static_cast<int64_t>(size)));
            g.add(r9, runtime(static_cast<int64_t>(size)));
            g.store<uint32_t>(STATE(code.table_bytes), r9);
            g.jump(taken);
            g.bind(smaller);
        }
        g.bind(taken);
        // By way of memory: the verifier would look at what follows once for each size.
        g.load<uint32_t>(r9, STATE(code.table_bytes));
        g.if_(r9 > runtime(LANGUAGE_TABLE_BYTES), [&] { g.mov(r9, LANGUAGE_TABLE_BYTES); });
    }

    /// What the number stands for, into a ring. r7 to r9 are gone.
    void send_code() const {
        const Label named = g.label("named");
        g.load<uint64_t>(r1, STATE(id));
        g.store<uint64_t>(STATE(code.id), r1);
        g.store<uint64_t>(STATE(code.address), r7);
        take_named();
        take_name();
        take_owner();
        g.store<uint32_t>(STATE(code.line), 0);
        g.store<uint32_t>(STATE(code.file_bytes), 0);
        g.store<uint32_t>(STATE(code.index_bytes), 0);
        g.mov(r9, 0);
        g.load<uint32_t>(r1, STATE(whole));
        g.store<uint32_t>(STATE(code.whole), r1);
        g.jump_if(r1 == 0, named);
        of_code<uint32_t>(r2, offsetof(LanguageState, process.line));
        g.store<uint32_t>(STATE(code.line), r2);
        take_file();
        take_table();
        take_index();
        g.bind(named);
        g.store<uint32_t>(STATE(code.table_bytes), r9);
        g.add(r9, runtime(offsetof(LanguageCode, table)));
        how.rings->output(g, STATE(code), r9, STATE(code.head.cpu), how.wakes);
    }
};

} // namespace

void emit_language_code(Code &g, const LanguageRound &how) { EmitCode{{g, how}}.send_code(); }

} // namespace rawbpf::inline v0
