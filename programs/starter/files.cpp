// What stands around a new project's program. However it is written, `make` builds NAME.o, so the rest is the same:
//
//      NAME.asm | NAME.bpf.c | NAME.cpp   the program
//      Makefile                           make, make run, make test, make clean; variables say which rawbpf, clang and flags
//      test.sh                            what the program has to do: in the emulator, and as root also in the kernel
//      workload.c                         uprobe: the program that is traced
//      README.md
#include <algorithm>
#include <utility>

#include "asm/builder.h"
#include "programs/starter/starter.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::starter {
namespace {

constexpr std::string_view kDslHead =
    R"(// Writes the object file that the command line names: the program is made by rawbpf's builder, without a compiler for BPF.
#include <rawbpf/rawbpf.h>
#include <rawbpf/runtime/object/unit_elf.h>

#include <cstdint>
#include <cstdio>

using namespace rawbpf;

static void make(Builder &b) {
)";
constexpr std::string_view kDslTail = R"(}

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "usage: %s OBJECT\n", argv[0]), 2;
    Builder b("@NAME@", "GPL");
    make(b);
    Built built = b.finish();
    if (!built) return fprintf(stderr, "%s\n", built.report().c_str()), 1;
    Result<std::vector<std::byte>> object = write_object(*built, nullptr);
    if (!object) return fprintf(stderr, "%s\n", object.error().message().c_str()), 1;
    FILE *file = fopen(argv[1], "wb");
    if (!file) return perror(argv[1]), 1;
    const bool whole = fwrite(object->data(), 1, object->size(), file) == object->size();
    if (fclose(file) != 0 || !whole) return perror(argv[1]), 1;
    return 0;
}
)";

constexpr std::string_view kRules[] = {
    R"(@NAME@.o: @NAME@.asm
	$(RAWBPF) asm @NAME@.asm -o @NAME@.o
)",
    R"(CLANG ?= clang
BPF_CFLAGS ?= $(shell pkg-config --cflags rawbpf)
ARCH := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')

@NAME@.o: @NAME@.bpf.c
	$(CLANG) --target=bpf -O2 -g -Wall -D__TARGET_ARCH_$(ARCH) $(BPF_CFLAGS) -c @NAME@.bpf.c -o @NAME@.o
)",
    R"(RAWBPF_FLAGS ?= $(shell pkg-config --cflags --libs rawbpf)

make-@NAME@: @NAME@.cpp
	$(CXX) -O1 @NAME@.cpp -o make-@NAME@ $(RAWBPF_FLAGS)

@NAME@.o: make-@NAME@
	./make-@NAME@ @NAME@.o
)"};

constexpr std::string_view kWorkloadRule = R"(
workload: workload.c
	$(CC) -O1 -g workload.c -o workload
)";
constexpr std::string_view kWorkload = R"(// Calls work() with 0, 1, 2, 0, 1, 2 ...: what is traced.
#include <stdio.h>

__attribute__((noinline)) long work(long kind)
{
    __asm__ volatile("");
    return kind * 2;
}

int main(void)
{
    long sum = 0;
    for (long i = 0; i < 300; i++)
        sum += work(i % 3);
    printf("%ld\n", sum);
    return 0;
}
)";

constexpr std::string_view kTestHead = R"sh(#!/bin/sh
# Exit status 0: the program does what it should. Without root, only what the emulator can tell.
set -eu
rawbpf=${RAWBPF:-rawbpf}
fail() { echo "FAIL: $*"; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
)sh";
// Attaches, runs what is counted, ends it, and leaves JSON in $scratch/out.
constexpr std::string_view kAttach = R"sh(
[ "$(id -u)" = 0 ] || { echo "PASS (in the emulator; run it as root to attach it)"; exit 0; }
"$rawbpf" load --attach --json -o "$scratch/out" @NAME@.o 2>"$scratch/err" &
pid=$!
until grep -q attached: "$scratch/err"; do
    kill -0 $pid 2>/dev/null || fail "it isn't attached: $(cat "$scratch/err")"
    sleep 0.1
done
)sh";

constexpr std::string_view kTests[] = {
    R"sh(
[ "$("$rawbpf" exec @NAME@.o 2>"$scratch/err")" = 2a ] || fail "it returns something else than 42: $(cat "$scratch/err")"
grep -q "hello from @NAME@" "$scratch/err" || fail "it prints no greeting: $(cat "$scratch/err")"
[ "$(id -u)" = 0 ] || { echo "PASS (in the emulator; run it as root to load it)"; exit 0; }
[ "$("$rawbpf" exec --in-kernel @NAME@.o)" = 2a ] || fail "the kernel's result is another"
echo PASS
)sh",
    R"sh(
[ "$("$rawbpf" exec --repeat 3 @NAME@.o 2>/dev/null)" = 3 ] || fail "three runs don't count to 3"
)sh",
    R"sh(
[ "$("$rawbpf" exec --repeat 3 @NAME@.o 2>/dev/null)" = 3 ] || fail "three runs don't send 3 records"
)sh",
    R"sh(
# In the emulator its context is memory: the registers of a thread, all zero.
"$rawbpf" exec @NAME@.o "$(printf '%0336d' 0)" >/dev/null || fail "it doesn't run"
)sh",
    R"sh(
# Ethernet, IPv4, UDP: to port 9, and to port 10.
start=00000000000000000000000008004500001c0000000040110000000000000000000004d2
[ "$("$rawbpf" exec @NAME@.o "${start}000900080000")" = 1 ] || fail "a packet for port 9 isn't dropped"
[ "$("$rawbpf" exec @NAME@.o "${start}000a00080000")" = 2 ] || fail "a packet for port 10 doesn't pass"
[ "$("$rawbpf" exec @NAME@.o "$start")" = 2 ] || fail "half a packet doesn't pass"
[ "$(id -u)" = 0 ] || { echo "PASS (in the emulator; run it as root to load it)"; exit 0; }
[ "$("$rawbpf" exec --in-kernel @NAME@.o "${start}000900080000")" = 1 ] || fail "the kernel doesn't drop it"
echo PASS
)sh"};
constexpr std::string_view kCountExecs = R"sh(for i in 1 2 3 4 5; do /bin/true; done
kill $pid
wait $pid || fail "$(cat "$scratch/err")"
count=$(sed -n 's/.*"map":"counts","key":"*0"*,"value":"*\([0-9]*\).*/\1/p' "$scratch/out")
[ "${count:-0}" -ge 5 ] || fail "5 programs ran, it counted ${count:-none}: $(cat "$scratch/out")"
echo "PASS: $count programs were executed"
)sh";
constexpr std::string_view kCountCalls = R"sh(./workload >/dev/null
kill $pid
wait $pid || fail "$(cat "$scratch/err")"
for kind in 0 1 2; do
    grep -q "\"map\":\"calls\",\"key\":\"*$kind\"*,\"value\":\"*100\"*}" "$scratch/out" || fail "work($kind) was called 100 times: $(cat "$scratch/out")"
done
echo PASS
)sh";

struct Words {
    std::string_view does, run, how;
};
constexpr Words kWords[] = {
    {"prints a line and returns 42", "$(RAWBPF) exec @NAME@.o",
     "runs it in the emulator, without privileges (`sudo rawbpf exec --in-kernel @NAME@.o`: in the kernel)"},
    {"counts the programs that are executed on this machine", "$(RAWBPF) load --attach @NAME@.o",
     "attaches it until Ctrl-C, then shows the map (as root)"},
    {"sends a record for each program that is executed, through a ring buffer", "$(RAWBPF) load --attach @NAME@.o",
     "attaches it until Ctrl-C, then shows how many records were sent and lost (as root). A reader of records is a dozen lines "
     "with rawbpf's C++ library: RingBuffer, in `<rawbpf/rawbpf.h>`"},
    {"counts the calls of a function by its first argument", "$(RAWBPF) load --attach @NAME@.o",
     "attaches it until Ctrl-C; start `./workload` meanwhile (as root)"},
    {"drops UDP packets for port 9", "$(RAWBPF) load --attach -i lo @NAME@.o",
     "attaches it to the loopback interface until Ctrl-C (as root)"},
};

std::string with_name(std::string_view text, std::string_view name) {
    constexpr std::string_view kName = "@NAME@", kArgument = "@ARGUMENT@", kLength = "@LENGTH@";
    std::string out;
    while (!text.empty()) {
        const size_t at = text.find('@');
        out += text.substr(0, at);
        if (at == text.npos) break;
        text.remove_prefix(at);
        if (text.starts_with(kName)) {
            out += name;
            text.remove_prefix(kName.size());
        } else if (text.starts_with(kLength)) { // of the greeting
            append(out, "{}", sizeof "hello from " + name.size());
            text.remove_prefix(kLength.size());
        } else if (text.starts_with(kArgument)) { // the first argument in struct pt_regs
            append(out, "{}", kHost.function[0]);
            text.remove_prefix(kArgument.size());
        } else {
            out += text.front();
            text.remove_prefix(1);
        }
    }
    return out;
}

Result<void> check_name(std::string_view name) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    const auto rest = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-'; };
    if (!name.empty() && letter(name.front()) && std::all_of(name.begin(), name.end(), rest) && name.size() <= 64) return {};
    return Unexpected(
        make_error(Errc::invalid_argument, format("\"{}\" can't be the name of a project", name),
                   "letters, digits, _ and -, a letter in front, 64 at most: it is the name of a folder and of files"));
}

} // namespace

Subject subject_named(std::string_view word) {
    return word == "map"          ? Subject::map
           : word == "ringbuf"    ? Subject::ringbuf
           : word == "uprobe"     ? Subject::uprobe
           : word == "xdp"        ? Subject::xdp
           : word == "experiment" ? Subject::experiment
                                  : Subject::hello;
}

Result<std::vector<File>> project(Subject subject, Language language, std::string_view name) {
    TRY(check_name(name));
    if (subject == Subject::experiment) {
        std::vector<File> files = TRY(experiment_files(language));
        for (File &file : files) file.name = with_name(file.name, name), file.text = with_name(file.text, name);
        return files;
    }
    const bool traced = subject == Subject::uprobe;
    const Words &words = kWords[static_cast<int>(subject)];
    std::vector<File> out;
    const auto add = [&](std::string_view file, std::string_view text, bool executable = false) {
        out.push_back({with_name(file, name), with_name(text, name), executable});
    };
    const std::string source(program_source(subject, language));
    if (language == Language::dsl)
        add("@NAME@.cpp", std::string(kDslHead) + source + std::string(kDslTail));
    else
        add(language == Language::c ? "@NAME@.bpf.c" : "@NAME@.asm", source);

    std::string make = format("RAWBPF ?= rawbpf\n\nall: @NAME@.o{}\n\n", traced ? " workload" : "");
    make += kRules[static_cast<int>(language)];
    if (traced) make += kWorkloadRule;
    append(make,
           "\nrun: all\n\t{}\n\ntest: all\n\tRAWBPF=\"$(RAWBPF)\" sh ./test.sh\n\nclean:\n\trm -f @NAME@.o{}{}\n\n.PHONY: all "
           "run test clean\n",
           words.run, language == Language::dsl ? " make-@NAME@" : "", traced ? " workload" : "");
    add("Makefile", make);

    std::string test(kTestHead);
    test += kTests[static_cast<int>(subject)];
    if (subject == Subject::map || subject == Subject::ringbuf) (test += kAttach) += kCountExecs;
    if (traced) (test += kAttach) += kCountCalls;
    add("test.sh", test, true);
    if (traced) add("workload.c", kWorkload);
    add("README.md", format("# @NAME@\n\nA BPF program that {}.\n\n```\nmake         # builds @NAME@.o\nmake test    # says "
                            "whether it does what it should\n"
                            "make run     # runs it\n```\n\n`make run` {}.\n\n`rawbpf disasm @NAME@.o` shows its instructions, "
                            "`rawbpf step @NAME@.o` runs them one by one, "
                            "`sudo rawbpf load --syscalls @NAME@.o`\nshows what loading it takes.\n",
                            words.does, words.how));
    return out;
}

} // namespace rawbpf::inline v0::starter
