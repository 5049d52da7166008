// The sample, as C:
//
//      int leaf(int x)             { return x; }                          .text 0..1, global
//      static int walk(int x)      { return leaf(x) + 1; }                .text 2..4
//      SEC("kprobe/vfs_read")  first  { walk(1); counts; limit; leaf; }   0..10
//                              second { walk(2); &leaf; }                 11..14
//      SEC("?xdp")             drop   { return seed; }                    0..3
//
//      struct { type HASH; key u32; value u64; max_entries 64 } counts SEC(".maps");
//      struct { type PROG_ARRAY; key_size 4; max_entries 2; values } jumps SEC(".maps") = { [1] = first };
//      struct { type ARRAY_OF_MAPS; key u32; max_entries 2; values } nest SEC(".maps") = { [0] = counts };
//      u32 seed = 7, limit = 9;   .data: limit first
//      const u32 mask = 0xf0f0;   .rodata
//      static u64 ticks;          .bss, 8 bytes at 8
#include "tests/unit/object/sample.h"

#include <elf.h>

#include "runtime/btf/btf.h"
#include "runtime/elf/writer.h"

namespace rawbpf::test {

namespace {

constexpr Insn kExit = {0x95, 0, 0, 0, 0};
Insn mov(uint8_t dst, int32_t imm) { return {0xb7, dst, 0, 0, imm}; }
Insn call(int32_t imm) { return {0x85, 0, 1, 0, imm}; }
Insn wide(uint8_t dst, int32_t imm) { return {0x18, dst, 0, 0, imm}; }
constexpr Insn kSecond = {};

Bytes as_bytes(const std::vector<Insn> &insns) { return std::as_bytes(std::span(insns)); }

elf::Symbol symbol(std::string_view name, uint32_t section, uint64_t value, uint64_t size, uint8_t type,
                   uint8_t binding = STB_GLOBAL) {
    elf::Symbol s;
    s.name = name;
    s.section = static_cast<uint16_t>(section);
    s.value = value;
    s.size = size;
    s.type = type;
    s.binding = binding;
    return s;
}

elf::Relocation relocation(uint64_t insn, uint32_t symbol_handle) {
    elf::Relocation r;
    r.offset = insn * 8;
    r.type = 1;
    r.symbol = symbol_handle;
    return r;
}

struct Types {
    btf::Writer writer;
    btf::TypeId func_leaf, func_walk, func_first, func_second, func_drop, task;
};

/// `int (*name)[n]`, the way numbers are said in a map's definition.
btf::TypeId number(btf::Writer &w, btf::TypeId int32, uint32_t n) { return w.add_ptr(w.add_array(int32, int32, n)); }

Types make_types(const SampleOptions &options) {
    Types t;
    btf::Writer &w = t.writer;
    const btf::TypeId i32 = w.add_int("int", 4, true), u32 = w.add_int("unsigned int", 4, false);
    const btf::TypeId u64 = w.add_int("unsigned long", 8, false);
    const btf::TypeId key = w.add_ptr(u32), value = w.add_ptr(u64);
    const btf::TypeId counts = w.add_struct(
        "", 32,
        {{"type", number(w, i32, 1), 0}, {"key", key, 64}, {"value", value, 128}, {"max_entries", number(w, i32, 64), 192}});
    const btf::TypeId entry = w.add_func_proto(i32, {{"ctx", w.add_ptr(0)}});
    const btf::TypeId jumps = w.add_struct("", 24,
                                           {{"type", number(w, i32, 3), 0},
                                            {"key_size", number(w, i32, 4), 64},
                                            {"max_entries", number(w, i32, 2), 128},
                                            {"values", w.add_array(w.add_ptr(entry), i32, 0), 192}});
    const btf::TypeId nest = w.add_struct("", 24,
                                          {{"type", number(w, i32, 12), 0},
                                           {"key", key, 64},
                                           {"max_entries", number(w, i32, 2), 128},
                                           {"values", w.add_array(w.add_ptr(counts), i32, 0), 192}});
    const btf::TypeId leaf = w.add_func_proto(i32, {{"x", i32}});
    t.func_leaf = w.add_func("leaf", leaf, 1);
    t.func_walk = w.add_func("walk", leaf, 0);
    t.func_first = w.add_func("first", entry, 1);
    t.func_second = w.add_func("second", entry, 1);
    t.func_drop = w.add_func("drop", entry, 1);
    t.task = w.add_struct("task_struct", 8, {{"pid", i32, 0}, {"tgid", i32, 32}});
    // As clang leaves them: sizes and offsets are zero, in order of declaration.
    w.add_datasec(
        ".maps", 0,
        {{w.add_var("nest", nest, 1), 0, 40}, {w.add_var("counts", counts, 1), 0, 32}, {w.add_var("jumps", jumps, 1), 0, 40}});
    w.add_datasec(".data", 0, {{w.add_var("seed", u32, 1), 0, 4}, {w.add_var("limit", u32, 1), 0, 4}});
    w.add_datasec(".rodata", 0, {{w.add_var("mask", w.add_modifier(btf::Kind::const_, u32), 1), 0, 4}});
    w.add_datasec(".bss", 0, {{w.add_var("ticks", u64, 0), 8, 8}});
    if (options.with_externs) {
        const btf::TypeId unnamed = w.add_func_proto(i32, {{"", i32}});
        w.add_datasec(".ksyms", 0,
                      {{w.add_func("bpf_kfunc", unnamed, 2), 0, 0},
                       {w.add_var("bpf_prog_active", w.add_modifier(btf::Kind::const_, i32), 2), 0, 4},
                       {w.add_var("jiffies", w.add_modifier(btf::Kind::const_, 0), 2), 0, 0}});
        w.add_datasec(".kconfig", 0,
                      {{w.add_var("CONFIG_SMALL", w.add_int("char", 1, true), 2), 0, 1},
                       {w.add_var("LINUX_KERNEL_VERSION", u32, 2), 0, 4},
                       {w.add_var("CONFIG_HZ", u64, 2), 0, 8}});
    }
    return t;
}

/// One part of .BTF.ext.
class InfoPart {
  public:
    InfoPart(uint32_t words, uint32_t padding) : padding_(padding) { put(words * 4 + padding); }
    void section(uint32_t name, std::initializer_list<std::initializer_list<uint32_t>> records) {
        put(name);
        put(static_cast<uint32_t>(records.size()));
        for (const auto &record : records) {
            for (uint32_t word : record) put(word);
            bytes_.resize(bytes_.size() + padding_, std::byte{0xee});
        }
    }
    const std::vector<std::byte> &bytes() const { return bytes_; }

  private:
    void put(uint32_t word) {
        const Bytes raw = bytes_of_object(word);
        bytes_.insert(bytes_.end(), raw.begin(), raw.end());
    }
    std::vector<std::byte> bytes_;
    uint32_t padding_;
};

std::vector<std::byte> make_btf_ext(Types &t, const SampleOptions &options) {
    btf::Writer &w = t.writer;
    const uint32_t text = w.string(".text"), kprobe = w.string("kprobe/vfs_read"), xdp = w.string("?xdp");
    const uint32_t file = w.string("sample.c"), line = w.string("return leaf(x) + 1;");
    InfoPart funcs(2, options.record_padding), lines(4, options.record_padding), core(4, options.record_padding);
    if (options.info_for_leaf)
        funcs.section(text, {{0, t.func_leaf}, {16, t.func_walk}});
    else
        funcs.section(text, {{16, t.func_walk}});
    funcs.section(kprobe, {{0, t.func_first}, {88, t.func_second}});
    funcs.section(xdp, {{0, t.func_drop}});
    if (options.info_for_leaf) lines.section(text, {{0, file, 0, 1 << 10 | 5}});
    lines.section(text, {{16, file, line, 2 << 10 | 7}, {24, file, line, 2 << 10 | 9}});
    lines.section(kprobe, {{0, file, 0, 4 << 10}, {8, file, 0, 5 << 10}, {88, file, 0, 9 << 10}});
    core.section(kprobe, {{0, t.task, w.string("0:1"), 0}});
    core.section(text, {{24, t.task, w.string("0"), 9}});

    std::vector<std::byte> out(32);
    const uint16_t magic = 0xeb9f;
    std::memcpy(out.data(), &magic, 2);
    out[2] = std::byte{1};
    uint32_t words[7] = {32};
    uint32_t at = 0, i = 1;
    for (const InfoPart *part : {&funcs, &lines, &core}) {
        words[i++] = at;
        words[i++] = static_cast<uint32_t>(part->bytes().size());
        at += static_cast<uint32_t>(part->bytes().size());
        out.insert(out.end(), part->bytes().begin(), part->bytes().end());
    }
    std::memcpy(out.data() + 4, words, sizeof words);
    return out;
}

} // namespace

std::vector<std::byte> sample_object(const SampleOptions &options) {
    // Each call of a static function carries in imm the distance that the symbol alone doesn't say.
    std::vector<Insn> text = {{0xbf, 0, 1, 0, 0}, kExit, mov(2, 8), call(-1), {0x07, 0, 0, 0, 1}, kExit};
    std::vector<Insn> kprobe = {mov(1, 4),  call(1), wide(1, 0), kSecond, wide(2, 0), kSecond,
                                wide(3, 8), kSecond, wide(4, 0), kSecond, kExit, //
                                mov(1, 2),  call(1), wide(2, 0), kSecond, kExit};
    if (options.with_externs) {
        kprobe.insert(kprobe.end(), {call(-1), wide(1, 0), kSecond, wide(2, 0), kSecond, wide(3, 0), kSecond, kExit});
    }
    std::vector<Insn> xdp = {wide(1, 0), kSecond, {0x61, 0, 1, 0, 0}, kExit};

    Types types = make_types(options);
    const std::vector<std::byte> ext = make_btf_ext(types, options);
    if (options.long_string) (void)types.writer.string(std::string(options.long_string, 'a'));

    elf::Writer w;
    const uint32_t text_at = w.add_section(".text", SHF_ALLOC | SHF_EXECINSTR, as_bytes(text));
    const uint32_t kprobe_at = w.add_section("kprobe/vfs_read", SHF_ALLOC | SHF_EXECINSTR, as_bytes(kprobe));
    const uint32_t xdp_at = w.add_section("?xdp", SHF_ALLOC | SHF_EXECINSTR, as_bytes(xdp));
    const std::vector<std::byte> definitions(112);
    const uint32_t maps_at = w.add_section(".maps", SHF_ALLOC | SHF_WRITE, definitions);
    const uint32_t data[] = {9, 7};
    const uint32_t data_at = w.add_section(".data", SHF_ALLOC | SHF_WRITE, std::as_bytes(std::span(data)));
    const uint32_t mask = 0xf0f0;
    const uint32_t rodata_at = w.add_section(".rodata", SHF_ALLOC, bytes_of_object(mask));
    const uint32_t bss_at = w.add_nobits(".bss", SHF_ALLOC | SHF_WRITE, 16);
    w.add_section(".rodata.str1.1", SHF_ALLOC, bytes_of(std::string_view("hi\0", 3)));
    const uint32_t version = 0x60c00;
    w.add_section("version", SHF_ALLOC, bytes_of_object(version));
    w.add_section("license", SHF_ALLOC | SHF_WRITE, bytes_of(std::string_view("GPL\0", 4)));

    auto function = [&](std::string_view name, uint32_t section, uint64_t insn, uint64_t count, uint8_t binding = STB_GLOBAL) {
        return symbol(name, section, insn * 8, options.function_sizes ? count * 8 : 0, STT_FUNC, binding);
    };
    elf::Symbol leaf = function("leaf", text_at, 0, 2);
    elf::Symbol limit = symbol("limit", data_at, 0, 4, STT_OBJECT);
    if (options.hidden_leaf) leaf.visibility = limit.visibility = STV_HIDDEN;
    const uint32_t leaf_s = w.add_symbol(leaf);
    w.add_symbol(function("walk", text_at, 2, 4, STB_LOCAL));
    const uint32_t first_s = w.add_symbol(function("first", kprobe_at, 0, 11));
    w.add_symbol(function("second", kprobe_at, 11, 5));
    w.add_symbol(function("drop", xdp_at, 0, 4));
    const uint32_t counts_s = w.add_symbol(symbol("counts", maps_at, 0, 32, STT_OBJECT));
    w.add_symbol(symbol("jumps", maps_at, 32, 40, STT_OBJECT));
    w.add_symbol(symbol("nest", maps_at, 72, 40, STT_OBJECT));
    const uint32_t seed_s = w.add_symbol(symbol("seed", data_at, 4, 4, STT_OBJECT));
    const uint32_t limit_s = w.add_symbol(limit);
    w.add_symbol(symbol("mask", rodata_at, 0, 4, STT_OBJECT));
    const uint32_t text_s = w.add_symbol(symbol("", text_at, 0, 0, STT_SECTION, STB_LOCAL));
    const uint32_t bss_s = w.add_symbol(symbol("", bss_at, 0, 0, STT_SECTION, STB_LOCAL));

    w.add_relocation(text_at, relocation(3, leaf_s));
    w.add_relocation(kprobe_at, relocation(1, text_s));
    w.add_relocation(kprobe_at, relocation(2, counts_s));
    w.add_relocation(kprobe_at, relocation(4, limit_s));
    w.add_relocation(kprobe_at, relocation(6, bss_s));
    w.add_relocation(kprobe_at, relocation(8, seed_s));
    w.add_relocation(kprobe_at, relocation(12, text_s));
    const uint32_t undefined_s = options.undefined_call ? w.add_symbol(symbol("my_helper", SHN_UNDEF, 0, 0, STT_NOTYPE)) : leaf_s;
    w.add_relocation(kprobe_at, relocation(13, undefined_s));
    w.add_relocation(xdp_at, relocation(0, seed_s));
    w.add_relocation(maps_at, relocation(32 / 8 + 4, first_s));  // jumps.values[1]
    w.add_relocation(maps_at, relocation(72 / 8 + 3, counts_s)); // nest.values[0]

    for (uint32_t i = 0; i < options.pointers; ++i) w.add_relocation(data_at, relocation(i, seed_s));
    if (options.with_externs) {
        w.add_symbol(function("externs", kprobe_at, 16, 8));
        const uint32_t kfunc = w.add_symbol(symbol("bpf_kfunc", SHN_UNDEF, 0, 0, STT_NOTYPE, STB_WEAK));
        const uint32_t typed = w.add_symbol(symbol("bpf_prog_active", SHN_UNDEF, 0, 0, STT_NOTYPE));
        const uint32_t address = w.add_symbol(symbol("jiffies", SHN_UNDEF, 0, 0, STT_NOTYPE));
        w.add_symbol(symbol("CONFIG_SMALL", SHN_UNDEF, 0, 0, STT_NOTYPE));
        const uint32_t linux_version = w.add_symbol(symbol("LINUX_KERNEL_VERSION", SHN_UNDEF, 0, 0, STT_NOTYPE));
        w.add_symbol(symbol("CONFIG_HZ", SHN_UNDEF, 0, 0, STT_NOTYPE, STB_WEAK));
        w.add_relocation(kprobe_at, relocation(16, kfunc));
        w.add_relocation(kprobe_at, relocation(17, typed));
        w.add_relocation(kprobe_at, relocation(19, address));
        w.add_relocation(kprobe_at, relocation(21, linux_version));
    }
    w.add_section(".BTF", 0, types.writer.finish());
    if (options.with_btf_ext) w.add_section(".BTF.ext", 0, ext);
    return w.finish();
}

std::vector<std::byte> bare_object(std::string_view section, const std::vector<Insn> &insns) {
    elf::Writer w;
    const uint32_t at = w.add_section(section, SHF_ALLOC | SHF_EXECINSTR, as_bytes(insns));
    w.add_symbol(symbol("prog", at, 0, insns.size() * 8, STT_FUNC));
    return w.finish();
}

std::vector<std::byte> legacy_maps_object(size_t words, uint32_t extra) {
    elf::Writer w;
    std::vector<uint32_t> maps;
    for (uint32_t scale : {1, 2}) {
        const uint32_t fields[] = {scale, 4, 8 * scale, 16 * scale, 32 * scale};
        maps.insert(maps.end(), std::begin(fields), std::end(fields));
        maps.resize(maps.size() + words - 5, 0);
        if (words > 5) maps.back() = extra;
    }
    const uint32_t code = w.add_section("socket", SHF_ALLOC | SHF_EXECINSTR, as_bytes({wide(1, 0), kSecond, kExit}));
    const uint32_t at = w.add_section("maps", SHF_ALLOC | SHF_WRITE, std::as_bytes(std::span(maps)));
    w.add_symbol(symbol("prog", code, 0, 24, STT_FUNC));
    const uint32_t second = w.add_symbol(symbol("second", at, words * 4, words * 4, STT_OBJECT));
    w.add_symbol(symbol("first", at, 0, words * 4, STT_OBJECT));
    w.add_relocation(code, relocation(0, second));
    return w.finish();
}

std::vector<std::byte> jump_table_object(const TableOptions &options) {
    elf::Writer w;
    const uint32_t code =
        w.add_section("socket", SHF_ALLOC | SHF_EXECINSTR, as_bytes({wide(1, options.addend), kSecond, mov(0, 0), kExit}));
    const uint32_t at = w.add_section(".jumptables", 0, std::as_bytes(std::span(options.entries)));
    w.add_symbol(symbol("prog", code, 0, 32, STT_FUNC));
    w.add_relocation(code, relocation(0, w.add_symbol(symbol("BPF.JT.0.0", at, options.start, options.size, STT_OBJECT))));
    return w.finish();
}

std::vector<std::byte> ops_object(const OpsOptions &options) {
    elf::Writer w;
    btf::Writer t;
    const uint32_t program =
        w.add_section("struct_ops/init", SHF_ALLOC | SHF_EXECINSTR, as_bytes({wide(1, 8), kSecond, {0x79, 0, 1, 0, 0}, kExit}));
    const uint32_t text = w.add_section(".text", SHF_ALLOC | SHF_EXECINSTR, as_bytes({call(-1), kExit, mov(0, 0), kExit}));
    struct {
        uint64_t init = 0, flags;
        char name[8];
    } const live{0, 5, "live"}, spare{0, 6, ""};
    const uint32_t live_at = w.add_section(".struct_ops.link", SHF_ALLOC | SHF_WRITE, bytes_of_object(live));
    w.add_section("?.struct_ops", SHF_ALLOC | SHF_WRITE, bytes_of_object(spare));
    const uint64_t variables[] = {0, 7};
    const uint32_t arena_at = w.add_section(".addr_space.1", SHF_ALLOC | SHF_WRITE, std::as_bytes(std::span(variables)));
    const std::vector<std::byte> definition(16);
    const uint32_t maps_at = options.with_arena ? w.add_section(".maps", SHF_ALLOC | SHF_WRITE, definition) : 0;

    const btf::TypeId i32 = t.add_int("int", 4, true), u64 = t.add_int("long", 8, true), letter = t.add_int("char", 1, true);
    const btf::TypeId proto = t.add_func_proto(i32, {{"x", i32}});
    const btf::TypeId ops =
        t.add_struct("ops", 24, {{"init", t.add_ptr(proto), 0}, {"flags", u64, 64}, {"name", t.add_array(letter, i32, 8), 128}});
    t.add_datasec(".struct_ops.link", 0, {{t.add_var("live", ops, 1), 0, 24}});
    t.add_datasec("?.struct_ops", 0, {{t.add_var("spare", ops, 1), 0, 24}});
    t.add_datasec(".addr_space.1", 0, {{t.add_var("first", u64, 1), 0, 8}, {t.add_var("second", u64, 1), 0, 8}});
    if (options.with_arena) {
        const btf::TypeId arena = t.add_struct("", 16, {{"type", number(t, i32, 33), 0}, {"max_entries", number(t, i32, 2), 64}});
        t.add_datasec(".maps", 0, {{t.add_var("arena", arena, 1), 0, 16}});
        w.add_symbol(symbol("arena", maps_at, 0, 16, STT_OBJECT));
    }
    const btf::TypeId on_init = t.add_func("on_init", proto, 1);
    t.add_func("caught", proto, 1);
    if (options.tagged) t.add_decl_tag("exception_callback:caught", on_init, -1);

    const uint32_t on_init_s = w.add_symbol(symbol("on_init", program, 0, 32, STT_FUNC));
    const uint32_t caught_s = w.add_symbol(symbol("caught", text, 0, 16, STT_FUNC));
    const uint32_t helper_s = w.add_symbol(symbol("helper", text, 16, 16, STT_FUNC));
    w.add_symbol(symbol("live", live_at, 0, 24, STT_OBJECT));
    w.add_symbol(symbol("spare", live_at + 1, 0, 24, STT_OBJECT));
    w.add_symbol(symbol("first", arena_at, 0, 8, STT_OBJECT));
    w.add_symbol(symbol("second", arena_at, 8, 8, STT_OBJECT));
    const uint32_t arena_s = w.add_symbol(symbol("", arena_at, 0, 0, STT_SECTION, STB_LOCAL));
    w.add_relocation(text, relocation(0, helper_s));
    w.add_relocation(program, relocation(0, arena_s));
    elf::Relocation member = relocation(0, options.relocate_to_text ? caught_s : on_init_s);
    member.offset = options.relocation_at;
    w.add_relocation(live_at, member);
    w.add_section(".BTF", 0, t.finish());
    return w.finish();
}

std::vector<std::byte> call_object(int32_t imm) {
    elf::Writer w;
    const uint32_t program = w.add_section("xdp", SHF_ALLOC | SHF_EXECINSTR, as_bytes({call(imm), kExit}));
    const uint32_t text = w.add_section(".text", SHF_ALLOC | SHF_EXECINSTR, as_bytes({mov(0, 0), kExit, mov(0, 1), kExit}));
    w.add_symbol(symbol("prog", program, 0, 16, STT_FUNC));
    w.add_symbol(symbol("other", text, 0, 16, STT_FUNC));
    const uint32_t callee = w.add_symbol(symbol("callee", text, 16, 16, STT_FUNC));
    w.add_relocation(program, relocation(0, callee));
    return w.finish();
}

std::vector<std::byte> two_functions_object(uint64_t start, uint64_t size) {
    elf::Writer w;
    const uint32_t at = w.add_section("xdp", SHF_ALLOC | SHF_EXECINSTR, as_bytes({mov(0, 1), kExit, mov(0, 2), kExit}));
    w.add_symbol(symbol("one", at, 0, 16, STT_FUNC));
    w.add_symbol(symbol("two", at, start, size, STT_FUNC));
    return w.finish();
}

} // namespace rawbpf::test
