// The instructions that fetch an argument, run in the emulator on saved registers and memory of either architecture.
#include "programs/usdt/fetch.h"

#include <algorithm>
#include <elf.h>

#include <cstring>

#include "runtime/base/fail.h"
#include "tests/unit/emulator/emulated.h"
#include "tests/unit/usdt/notes_elf.h"

using namespace rawbpf;

namespace {

constexpr uint64_t kSize = 0x5000;    // the registers are its first bytes, the process's memory the rest
constexpr uint64_t kMemory = 0x1000;  // where the tests' variables are
constexpr uint64_t kCounter = 0x3010; // so far from the probe is the symbol `counter`

struct Fetching {
    uint16_t machine;
    std::vector<std::byte> bytes = std::vector<std::byte>(kSize);
    std::vector<std::byte> file = {};

    explicit Fetching(uint16_t its_machine) : machine(its_machine) {
        test::NotesElf program;
        program.target.machine = machine;
        program.symbols = {{"counter", 0x1010 + kCounter}};
        file = program.file({{}});
    }
    template <class T> void put(uint64_t at, T value) { std::memcpy(bytes.data() + at, &value, sizeof value); }
    // Registers by name; `relative`: an address, which is known when the memory has its place.
    struct Setting {
        std::string_view name;
        uint64_t value;
        bool relative = false;
    };
    Result<uint64_t> fetch(std::string_view spec, const std::vector<Setting> &settings) {
        usdt::Argument argument = usdt::parse_argument(spec, machine);
        const elf::Elf elf = TRY(elf::Elf::parse(file, "app"));
        usdt::resolve(elf, {{&argument, 0x1010}});
        if (!argument.problem.empty()) return fail(Errc::unsupported, "{}", argument.problem);
        Builder builder("fetch");
        Code &code = builder.program("uprobe", "fetch");
        code.mov(r6, r1);
        usdt::emit_argument(code, r7, r6, argument);
        code.mov(r0, r7);
        code.exit();
        Built built = builder.finish();
        if (!built) return fail(Errc::internal, "{}", built.report());
        const ObjectSpec spec_of_it = test::spec_of(built->functions[0].insns);
        std::unique_ptr<emulator::Machine> machine_of_it = TRY(emulator::Machine::create(spec_of_it));
        TRY(machine_of_it->set_memory(bytes));
        TRY(machine_of_it->enter(0));
        const uint64_t origin = machine_of_it->cpu().r[1];
        for (const Setting &s : settings)
            put(static_cast<uint64_t>(usdt::find_register(machine, s.name).offset), s.value + (s.relative ? origin : 0));
        put(static_cast<uint64_t>(usdt::program_counter(machine)), origin + 0x800);
        return machine_of_it->run();
    }
};

} // namespace

TEST_CASE("usdt fetch: x86_64") {
    Fetching f(EM_X86_64);
    f.put<uint64_t>(kMemory, 0x1122334455667788);
    f.put<int32_t>(kMemory - 20, -7);
    f.put<uint8_t>(kMemory + 24 + 5, 0x9c);
    f.put<uint32_t>(0x800 + kCounter + 4, 0xdeadbeef);
    f.put<double>(kMemory + 64, 2.5);
    const std::vector<Fetching::Setting> registers = {
        {"rax", 0xfedcba98765432f1}, {"rbp", kMemory, true}, {"rcx", 3}, {"rbx", 0xffffffff80000000 + 5}};
    auto value = [&](std::string_view spec) {
        Result<uint64_t> got = f.fetch(spec, registers);
        REQUIRE_MESSAGE(got, spec << ": " << got.error().message());
        return *got;
    };
    CHECK(value("8@%rax") == 0xfedcba98765432f1);
    CHECK(value("4@%eax") == 0x765432f1);
    CHECK(value("-4@%eax") == 0x765432f1);
    CHECK(value("-2@%ax") == 0x32f1);
    CHECK(value("1@%al") == 0xf1);
    CHECK(value("-1@%al") == static_cast<uint64_t>(-15));
    CHECK(value("1@%ah") == 0x32);
    CHECK(value("8@%eax") == 0x765432f1);
    CHECK(value("-4@%ebx") == 0xffffffff80000005);
    CHECK(value("4@%ebx") == 0x80000005);
    CHECK(value("-4@$-9") == static_cast<uint64_t>(-9));
    CHECK(value("4@$-9") == 0xfffffff7);
    CHECK(value("1@$300") == 44);
    CHECK(value("8@$81985529216486895") == 81985529216486895);
    CHECK(value("8@(%rbp)") == 0x1122334455667788);
    CHECK(value("2@2(%rbp)") == 0x5566);
    CHECK(value("-4@-20(%rbp)") == static_cast<uint64_t>(-7));
    CHECK(value("4@-20(%rbp)") == 0xfffffff9);
    CHECK(value("1@5(%rbp,%rcx,8)") == 0x9c);
    CHECK(value("-1@5(%rbp,%rcx,8)") == 0xffffffffffffff9c);
    CHECK(value("8f@64(%rbp)") == 0x4004000000000000);
    CHECK(value("4@4+counter(%rip)") == 0xdeadbeef);
    CHECK(value("-4@4+counter(%rip)") == 0xffffffffdeadbeef);
    CHECK(value("-4@counter+4") == 0xffffffffdeadbeef);
    CHECK(value("8@$counter") - value("8@$counter-16") == 16);
    // What isn't there is zero, and the next argument is right again.
    CHECK(value("8@(%rax)") == 0);
    CHECK(f.fetch("8f@%xmm0", registers).error().kind == Errc::unsupported);
    CHECK(f.fetch("8@elsewhere(%rip)", registers).error().kind == Errc::unsupported);
}

TEST_CASE("usdt fetch: arm64") {
    Fetching f(EM_AARCH64);
    f.put<uint64_t>(kMemory + 96, 0x1122334455667788);
    f.put<int32_t>(kMemory - 8, -7);
    f.put<uint16_t>(kMemory + 0x24 - 16, 0xbeef);
    f.put<uint16_t>(kMemory + 0x20 + 16, 0xcafe);
    const std::vector<Fetching::Setting> registers = {{"x0", 0xfedcba98765432f1},
                                                      {"sp", kMemory, true},
                                                      {"x29", kMemory, true},
                                                      {"x5", 6},
                                                      {"x7", 0x12345678fffffffe},
                                                      {"x30", 30},
                                                      {"x8", kMemory + 0x20 - 0x20, true}};
    auto value = [&](std::string_view spec) {
        Result<uint64_t> got = f.fetch(spec, registers);
        REQUIRE_MESSAGE(got, spec << ": " << got.error().message());
        return *got;
    };
    CHECK(value("8@x0") == 0xfedcba98765432f1);
    CHECK(value("-4@w0") == 0x765432f1);
    CHECK(value("4@x0") == 0x765432f1);
    CHECK(value("-1@w0") == static_cast<uint64_t>(-15));
    CHECK(value("8@w0") == 0x765432f1);
    CHECK(value("-4@w7") == static_cast<uint64_t>(-2));
    CHECK(value("8@x30") == 30);
    CHECK(value("8@xzr") == 0);
    CHECK(value("-4@-1") == ~uint64_t{0});
    CHECK(value("8@[sp, 96]") == 0x1122334455667788);
    CHECK(value("4@[sp, 100]") == 0x11223344);
    CHECK(value("-4@[x29, -8]") == static_cast<uint64_t>(-7));
    CHECK(value("8@[sp, x5, lsl 4]") == 0x1122334455667788); // 6 << 4 is 96
    CHECK(value("2@[x8, w7, sxtw 3]") == 0);                 // 16 bytes below: nothing was put there
    f.put<uint16_t>(kMemory - 16, 0xabcd);
    CHECK(value("2@[x8, w7, sxtw 3]") == 0xabcd);
    CHECK(value("8@[x0]") == 0);
    CHECK(f.fetch("8f@d0", registers).error().kind == Errc::unsupported);
    // The lower 12 bits of 0x1010 + 0x3010.
    f.put<uint64_t>(kMemory + 0x20, 99);
    CHECK(value("8@[x29, #:lo12:counter]") == 99);
}

TEST_CASE("usdt fetch: riscv64, and the words for it") {
    Fetching f(EM_RISCV);
    f.put<int32_t>(kMemory - 24, -24);
    Result<uint64_t> got = f.fetch("-4@-24(s0)", {{"s0", kMemory, true}});
    REQUIRE(got);
    CHECK(*got == static_cast<uint64_t>(-24));
    CHECK(f.fetch("8@a0", {{"a0", 5}}).value() == 5);

    using Lines = std::vector<std::string>;
    auto squeezed = [](std::string_view spec, uint16_t machine) {
        Lines out = usdt::explain_argument(usdt::parse_argument(spec, machine));
        for (std::string &line : out) // columns aren't the point
            while (line.find("  ") != std::string::npos) line.erase(line.find("  "), 1);
        return out;
    };
    CHECK(squeezed("-4@%eax", EM_X86_64) == Lines{"r7 = *(u64 *)(r6 + 80) # eax", "r7 <<= 32", "r7 s>>= 32"});
    CHECK(squeezed("4@w3", EM_AARCH64) == Lines{"r7 = *(u64 *)(r6 + 24) # w3", "w7 = w7"});
    CHECK(squeezed("-4@r3", EM_ARM) == Lines{"r7 = *(u32 *)(r6 + 12) # r3", "r7 <<= 32", "r7 s>>= 32"});
    const Lines summed = squeezed("4@[r3, r2, lsl #2]", EM_ARM);
    CHECK(std::find(summed.begin(), summed.end(), "w3 = w3") != summed.end()); // an address has 32 bits
    CHECK(squeezed("4@$7", EM_X86_64) == Lines{"r7 = 7"});
    CHECK(squeezed("8@(%rdi)", EM_X86_64) == Lines{"r3 = *(u64 *)(r6 + 112) # rdi", "r1 = r10 # &read", "r1 += -8", "r2 = 8",
                                                   "call bpf_probe_read_user", "r7 = *(u64 *)(r10 - 8)"});
    CHECK(squeezed("8f@%xmm0", EM_X86_64).empty());
}
