// Relocations for people: resolved, guarded, missing; the candidates that didn't fit.
#include "programs/inspect/core_view.h"

#include <algorithm>

#include "tests/support/test.h"

using namespace rawbpf;

namespace {

struct Sample {
    ObjectSpec spec;
    std::vector<std::byte> kernel_bytes;
    std::optional<btf::Btf> kernel;

    Sample() {
        btf::Writer local;
        const auto i = local.add_int("int", 4, true);
        const auto task = local.add_struct("task", 8, {{"pid", i, 0}, {"gone", i, 32}});
        spec.name = "x.o";
        spec.btf = local.finish();
        ProgramSpec p;
        p.name = "prog";
        p.autoload = false; // "?" sections are looked at, too
        p.insns = {
            {.code = 0x61, .dst = 1, .src = 6, .off = 0}, // 0: pid
            {.code = 0xb7, .dst = 1, .imm = 1},           // 1: exists(gone)?
            {.code = 0x15, .dst = 1, .off = 1},           // 2: if not, over it
            {.code = 0x61, .dst = 1, .src = 6, .off = 4}, // 3: gone
            {.code = 0x61, .dst = 1, .src = 6, .off = 4}, // 4: gone, not asked for
            {.code = 0x95},                               // 5
        };
        auto add = [&](uint32_t insn, const char *access, CoreKind kind) {
            p.core_relocations.push_back({insn, task, access, static_cast<uint32_t>(kind)});
        };
        add(0, "0:0", CoreKind::field_byte_offset);
        add(1, "0:1", CoreKind::field_exists);
        add(3, "0:1", CoreKind::field_byte_offset);
        add(4, "0:1", CoreKind::field_byte_offset);
        spec.programs.push_back(std::move(p));
        btf::Writer w;
        const auto k = w.add_int("int", 4, true);
        w.add_struct("task", 16, {{"pid", k, 64}});
        w.add_struct("task___2", 16, {{"other", k, 64}});
        kernel_bytes = w.finish();
        kernel = *btf::Btf::parse(kernel_bytes, "vmlinux");
    }
    inspect::CoreView view() {
        auto out = inspect::view_core(spec, CoreTargets{.kernel = &*kernel}, "5.0.btf");
        REQUIRE(out);
        return std::move(*out);
    }
};

} // namespace

TEST_CASE("relocs: text") {
    Sample sample;
    const inspect::CoreView view = sample.view();
    CHECK(view.resolved == 2);
    CHECK(view.guarded == 1);
    CHECK(view.unresolved == 1);
    CHECK(sample.spec.programs[0].insns[0].off == 0); // a copy was relocated
    std::string out;
    append_relocs_text(out, view);
    CHECK(out == R"(against 5.0.btf: 2 resolved, 1 missing but guarded, 1 missing
program prog
      0: byte_off       struct task.pid  0 -> 8
         took [2] task of vmlinux: 8
         not  [3] task___2 of vmlinux: struct task___2 has no field pid
      1: field_exists   struct task.gone  1 -> 0
         not  [2] task of vmlinux: struct task has no field gone
      3: byte_off       struct task.gone  4 -> missing, guarded: struct task has no field gone
         not  [2] task of vmlinux: struct task has no field gone
      4: byte_off       struct task.gone  4 -> missing: struct task has no field gone
         not  [2] task of vmlinux: struct task has no field gone
)");
}

TEST_CASE("check: text and JSON") {
    Sample sample;
    const inspect::CoreView view = sample.view();
    std::string out;
    append_check_text(out, view, false);
    CHECK(out == "5.0.btf: no, 2 relocations resolved, 1 missing but guarded, 1 missing\n"
                 "  prog: instruction 4: byte_off of struct task.gone: struct task has no field gone\n");
    out.clear();
    append_check_text(out, view, true);
    CHECK(out.find("  guarded: prog: instruction 3:") != std::string::npos);
    out.clear();
    append_check_json(out, view, "x.o");
    CHECK(out.find("{\"type\":\"relocation\",\"object\":\"x.o\",\"btf\":\"5.0.btf\",\"program\":\"prog\",\"insn\":3,\"kind\":"
                   "\"byte_off\","
                   "\"what\":\"struct task.gone\",\"before\":\"4\",\"after\":null,\"resolved\":false,\"reachable\":false,") == 0);
    CHECK(out.find("{\"type\":\"check\",\"object\":\"x.o\",\"btf\":\"5.0.btf\",\"ok\":false,\"resolved\":2,\"guarded\":1,"
                   "\"unresolved\":1}\n") != std::string::npos);
    out.clear();
    append_relocs_json(out, view, "x.o");
    CHECK(std::count(out.begin(), out.end(), '\n') == 4);
    CHECK(out.find("\"after\":\"8\"") != std::string::npos);
}
