// What would make stacks whole, by runtime and by reason.
#include "programs/profile/advice.h"

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::profile;

namespace {

ModuleEnds ends(std::string_view path, bool anonymous, uint64_t stacks, uint32_t reason, uint64_t early) {
    ModuleEnds out{path, anonymous, stacks, {}};
    out.early[reason] = early;
    return out;
}

} // namespace

TEST_CASE("advice: what a runtime wrote, by the files that its process has mapped") {
    struct Case {
        std::string_view mapped, named, option;
    };
    for (const Case &one :
         {Case{"/usr/lib/jvm/java-17/lib/server/libjvm.so", "Java", "-XX:+PreserveFramePointer"},
          Case{"/usr/bin/node", "node", "--interpreted-frames-native-stack"},
          Case{"/usr/lib/libnode.so.115", "node", "--perf-basic-prof"}, Case{"/usr/bin/python3.12", "Python", "-X perf"},
          Case{"/usr/lib/libpython3.13.so.1.0", "Python", "-X perf"},
          Case{"/usr/lib/php/20220829/opcache.so", "PHP", "opcache.jit=disable"}, Case{"/usr/bin/ruby3.3", "Ruby", "--yjit-perf"},
          Case{"/usr/lib/libruby-3.3.so.3.3", "Ruby", "--yjit-perf"},
          Case{"/usr/share/dotnet/libcoreclr.so", ".NET", "DOTNET_PerfMapEnabled=1"},
          Case{"/usr/lib/erlang/beam.smp", "Erlang", "+JPperf true"}, Case{"/usr/lib/libluajit-5.1.so.2", "LuaJIT", "-joff"}}) {
        CAPTURE(one.mapped);
        const ModuleEnds modules[] = {ends("//anon", true, 1000, UNWIND_ENDED_STUCK, 987)};
        const std::string_view mapped[] = {"/usr/lib/libc.so.6", one.mapped};
        const std::vector<std::string> said = advice(modules, mapped);
        REQUIRE(said.size() == 1);
        CHECK(said[0].find(one.named) != std::string::npos);
        CHECK(said[0].find(one.option) != std::string::npos);
        CHECK(said[0].starts_with("99 % of the stacks in code that "));
    }
    const ModuleEnds modules[] = {ends("//anon", true, 1000, UNWIND_ENDED_STUCK, 987)};
    const std::string_view others[] = {"/usr/bin/nodejs-like", "/usr/bin/cat"}; // not node
    REQUIRE(advice(modules, others).size() == 1);
    CHECK(advice(modules, others)[0].find("code made at run time") != std::string::npos);
}

TEST_CASE("advice: only where more than one in twenty ends early") {
    const std::string_view none[] = {"/usr/bin/cat"};
    const ModuleEnds good[] = {ends("/bin/a", false, 1000, UNWIND_ENDED_NO_RULE, 50),
                               ends("/bin/b", false, 9, UNWIND_ENDED_NO_RULE, 9)};
    CHECK(advice(good, none).empty());
    const ModuleEnds poor[] = {
        ends("/bin/a", false, 1000, UNWIND_ENDED_NO_RULE, 51), ends("/bin/b", false, 300, UNWIND_ENDED_DEPTH, 299),
        ends("/bin/c", false, 100, UNWIND_ENDED_NO_PROCESS, 90), ends("/bin/d", false, 100, UNWIND_ENDED_NO_TABLE, 80),
        ends("/bin/e", false, 99, UNWIND_ENDED_UNREADABLE, 99)};
    const std::vector<std::string> said = advice(poor, none);
    REQUIRE(said.size() == 4); // of e nothing can be done
    CHECK(said[0].find("in b end early: --depth") != std::string::npos);
    CHECK(said[1].find("in c end early: with -p PID") != std::string::npos);
    CHECK(said[2].find("in d end early: --unwind-memory") != std::string::npos);
    CHECK(said[3] ==
          "5 % of the stacks in a end early: compiled with -fasynchronous-unwind-tables it has all its tables; if it was "
          "compiled with -fno-omit-frame-pointer, --unwind fp walks it");
    const ModuleEnds both[] = {ends("//anon", true, 100, UNWIND_ENDED_STUCK, 90),
                               ends("/x/libjvm.so", false, 100, UNWIND_ENDED_STUCK, 20)};
    const std::string_view java[] = {"/x/libjvm.so"};
    CHECK(advice(both, java).size() == 1); // a runtime is told of once
    CHECK(advice({}, {}).empty());
}
