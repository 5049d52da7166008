// What would make stacks whole, by runtime and by reason.
#include "programs/processes/advice.h"

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::processes;

namespace {

ModuleEnds ends(std::string_view path, bool anonymous, uint64_t stacks, uint32_t reason, uint64_t early) {
    ModuleEnds out{path, anonymous, stacks, {}};
    out.early[reason] = early;
    return out;
}

constexpr Remedy kAnywhere{"", Arch::x86_64}; // whichever machine this runs on

} // namespace

TEST_CASE("advice: what a runtime wrote, by the files that its process has mapped") {
    struct Case {
        std::string_view mapped, named, option;
    };
    for (const Case &one :
         {Case{"/usr/lib/jvm/java-17/lib/server/libjvm.so", "Java", "-XX:+PreserveFramePointer"},
          Case{"/usr/bin/node", "node", "--interpreted-frames-native-stack"},
          Case{"/usr/lib/libnode.so.115", "node", "of a node that has v8dbg_ symbols"},
          Case{"/usr/bin/python3.12", "Python", "-X perf"}, Case{"/usr/lib/libpython3.13.so.1.0", "Python", "-X perf"},
          Case{"/usr/lib/php/20220829/opcache.so", "PHP", "opcache.jit=disable"}, Case{"/usr/bin/ruby3.3", "Ruby", "--yjit-perf"},
          Case{"/usr/lib/libruby-3.3.so.3.3", "Ruby", "--yjit-perf"},
          Case{"/usr/share/dotnet/libcoreclr.so", ".NET", "DOTNET_PerfMapEnabled=1"},
          Case{"/usr/lib/erlang/beam.smp", "Erlang", "+JPperf true"}, Case{"/usr/lib/libluajit-5.1.so.2", "LuaJIT", "-joff"}}) {
        CAPTURE(one.mapped);
        const ModuleEnds modules[] = {ends("//anon", true, 1000, UNWIND_ENDED_STUCK, 987)};
        const std::string_view mapped[] = {"/usr/lib/libc.so.6", one.mapped};
        const std::vector<render::StackAdvice> said = advice_on(modules, mapped, kAnywhere);
        REQUIRE(said.size() == 1);
        CHECK(said[0].sentence().find(one.named) != std::string::npos);
        CHECK(said[0].sentence().find(one.option) != std::string::npos);
        CHECK(said[0].sentence().starts_with("99 % of the stacks in code that "));
    }
    const ModuleEnds modules[] = {ends("//anon", true, 1000, UNWIND_ENDED_STUCK, 987)};
    const std::string_view others[] = {"/usr/bin/nodejs-like", "/usr/bin/cat"}; // not node
    REQUIRE(advice_on(modules, others, kAnywhere).size() == 1);
    CHECK(advice_on(modules, others, kAnywhere)[0].sentence().find("code made at run time") != std::string::npos);
}

TEST_CASE("advice: a runtime that runs somewhere hasn't written what lies in a probe's slot or in a file in memory") {
    const std::string_view mapped[] = {"/usr/bin/python3.12", "/bin/c-program"};
    const ModuleEnds modules[] = {ends("[uprobes]", true, 20, UNWIND_ENDED_NO_TABLE, 20),
                                  ends("/memfd:runc (deleted)", true, 19, UNWIND_ENDED_NO_TABLE, 19)};
    const std::vector<render::StackAdvice> said = advice_on(modules, mapped, kAnywhere);
    REQUIRE(said.size() == 2);
    CHECK(said[0].sentence().find(
              "in the page where the kernel runs probed instructions, and returns to ([uprobes]) end early: a profile of") !=
          std::string::npos);
    CHECK(said[1].sentence().find("in /memfd:runc (deleted) end early: it is a file in memory") != std::string::npos);
    for (const render::StackAdvice &one : said) CHECK(one.sentence().find("Python") == std::string::npos);
}

TEST_CASE("advice: stacks that were walked by frame pointers, as the user chose or the kernel can't do better") {
    ModuleEnds program{"/bin/a", false, 100, {}}, node{"/usr/bin/node", false, 90, {}}, java{"//anon", true, 80, {}};
    program.by_frame_pointers = 90, node.by_frame_pointers = 80, java.by_frame_pointers = 70;
    program.early[UNWIND_ENDED_NO_PROCESS] = 3;
    const ModuleEnds modules[] = {program, node, java};
    const std::string_view mapped[] = {"/x/libjvm.so"};
    const std::vector<render::StackAdvice> said = advice_on(modules, mapped, remedy_of(UnwindBy::fp, Arch::x86_64));
    REQUIRE(said.size() == 3);
    CHECK(said[0].sentence().starts_with("93 % of the stacks in a end early: --unwind auto walks it by its unwind tables"));
    CHECK(said[1].sentence().find("in node end early: --unwind auto") != std::string::npos); // its file, not what it compiles
    CHECK(said[2].sentence().find("-XX:+PreserveFramePointer") != std::string::npos);
    for (const UnwindBy chosen : {UnwindBy::automatic, UnwindBy::tables}) {
        const std::vector<render::StackAdvice> rest = advice_on(modules, mapped, remedy_of(chosen, Arch::x86_64));
        REQUIRE(rest.size() == 3);
        CHECK(rest[0].sentence().find("--unwind") == std::string::npos);
        CHECK(rest[0].sentence().find("-fno-omit-frame-pointer") != std::string::npos);
    }
}

TEST_CASE("advice: by the machine whose stacks they are") {
    ModuleEnds program{"/bin/a", false, 100, {}}, jit{"//anon", true, 80, {}};
    program.by_frame_pointers = 90, jit.by_frame_pointers = 70;
    const ModuleEnds modules[] = {program, jit};
    const std::string_view mapped[] = {"/x/libjvm.so"};
    const std::vector<render::StackAdvice> arm = advice_on(modules, mapped, remedy_of(UnwindBy::fp, Arch::arm));
    REQUIRE(arm.size() == 2);
    CHECK(arm[0].sentence().find("-marm -mapcs-frame") != std::string::npos);
    for (const render::StackAdvice &one : arm) {
        CHECK(one.sentence().find("32-bit ARM's kernel") != std::string::npos);
        CHECK(one.sentence().find("rame-pointer") == std::string::npos);
        CHECK(one.sentence().find("FramePointer") == std::string::npos);
        CHECK(one.sentence().find("--unwind") == std::string::npos);
    }
    CHECK(advice_on(modules, mapped, remedy_of(UnwindBy::fp, Arch::riscv64))[0].sentence().find("--unwind auto") !=
          std::string::npos);
    CHECK(advice_on(modules, mapped, remedy_of(UnwindBy::fp, arch_of_uname("armv7l"))).size() == 2);
    CHECK(arch_of_uname("armv7l") == Arch::arm);
    CHECK(arch_of_uname("sparc64") == Arch::other);
}

TEST_CASE("advice: only where more than one in twenty ends early") {
    const std::string_view none[] = {"/usr/bin/cat"};
    const ModuleEnds good[] = {ends("/bin/a", false, 1000, UNWIND_ENDED_NO_RULE, 50),
                               ends("/bin/b", false, 9, UNWIND_ENDED_NO_RULE, 9)};
    CHECK(advice_on(good, none, kAnywhere).empty());
    const ModuleEnds poor[] = {
        ends("/bin/a", false, 1000, UNWIND_ENDED_NO_RULE, 51), ends("/bin/b", false, 300, UNWIND_ENDED_DEPTH, 299),
        ends("/bin/c", false, 100, UNWIND_ENDED_NO_PROCESS, 90), ends("/bin/d", false, 100, UNWIND_ENDED_NO_TABLE, 80),
        ends("/bin/e", false, 99, UNWIND_ENDED_UNREADABLE, 99)};
    const std::vector<render::StackAdvice> said = advice_on(poor, none, kAnywhere);
    REQUIRE(said.size() == 4); // of e nothing can be done
    CHECK(said[0].sentence().find("in b end early: --depth") != std::string::npos);
    CHECK(said[1].sentence().find("in c end early: rawbpf hadn't heard") != std::string::npos);
    CHECK(said[2].sentence().find("in d end early: --unwind-memory") != std::string::npos);
    CHECK(said[3].sentence() ==
          "5 % of the stacks in a end early: compiled with -fasynchronous-unwind-tables it has all its tables; if it was "
          "compiled with -fno-omit-frame-pointer, --unwind fp walks it");
    const ModuleEnds both[] = {ends("//anon", true, 100, UNWIND_ENDED_STUCK, 90),
                               ends("/x/libjvm.so", false, 100, UNWIND_ENDED_STUCK, 20)};
    const std::string_view java[] = {"/x/libjvm.so"};
    CHECK(advice_on(both, java, kAnywhere).size() == 1); // a runtime is told of once
    CHECK(advice_on({}, {}).empty());
}
