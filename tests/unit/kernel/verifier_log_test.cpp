// Logs of real kernels, from 5.10 to 7.3, shortened.
#include "runtime/kernel/verifier_log.h"

#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("verifier log: 6.18, with source lines") {
    VerifierReport r = read_verifier_log("0: R1=ctx() R10=fp0\n"
                                         "; int on_tick(void *ctx) @ tick.bpf.c:10\n"
                                         "0: (b7) r1 = 5                        ; R1=5\n"
                                         "; return *(int *)value; @ tick.bpf.c:14\n"
                                         "1: (61) r0 = *(u32 *)(r1 +0)\n"
                                         "R1 invalid mem access 'scalar'\n"
                                         "processed 2 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 "
                                         "mark_read 0\n");
    CHECK(r.insn == 1);
    CHECK(r.instruction == "r0 = *(u32 *)(r1 +0)");
    CHECK(r.source == "return *(int *)value;");
    CHECK(r.file == "tick.bpf.c");
    CHECK(r.line == 14);
    CHECK(r.registers == "R1=5 R10=fp0");
    CHECK(r.reason == "R1 invalid mem access 'scalar'");
    CHECK(r.hint.find("bpf_probe_read_kernel") != std::string::npos);
    CHECK_FALSE(r.structured);
    CHECK_FALSE(r.poisoned());
}

TEST_CASE("verifier log: a helper's call loses r1 to r5, a call within the program doesn't") {
    for (auto [call, left] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
             {"call bpf_ktime_get_ns#5", "R0=scalar() R6=3"}, {"call pc+3", "R0=scalar() R1=ctx() R2=4 R6=3"}}) {
        const std::string log = std::string("0: R1=ctx() R6=3\n0: (b7) r2 = 4 ; R2_w=4\n1: (85) ") + std::string(call) +
                                " ; R0_w=scalar()\n2: (61) r3 = *(u32 *)(r1 +0)\nR1 !read_ok\n";
        const VerifierReport r = read_verifier_log(log);
        CHECK(r.registers == left);
    }
    // Until the call has succeeded they are what it was refused for.
    CHECK(read_verifier_log("0: R1=ctx() R2=5\n0: (85) call bpf_map_lookup_elem#1\nR1 type=ctx expected=map_ptr\n").registers ==
          "R1=ctx() R2=5");
}

TEST_CASE("verifier log: what programs are refused for most has a hint, by its wording on several kernels") {
    for (auto [reason, hint] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
             {"math between map_value pointer and register with unbounded min value is not allowed", "bound it just before"},
             {"R2 unbounded memory access, use 'var &= const' or 'if (var < const)'", "bound it just before"},
             {"R2 min value is negative, either use unsigned or 'var &= const'", "may be negative"},
             {"R0 max value is outside of the allowed memory range", "may pass the end"},
             {"R0 min value is outside of the allowed memory range", "before the memory"},
             {"R0 invalid mem access 'map_value_or_null'", "a map lookup may find nothing"},
             {"R0 invalid mem access 'ringbuf_mem_or_null'", "reservation may have failed"},
             {"R0 invalid mem access 'alloc_mem_or_null'", "reservation may have failed"},
             {"R1 invalid mem access 'mem_or_null'", "__arg_nonnull"},
             {"Possibly NULL pointer passed to trusted arg0", "compare the pointer with NULL"},
             {"invalid write to stack R1 off=-8 size=600", "has room for"},
             {"invalid variable-offset read from stack R2 var_off=(0x0; 0xf) off=-16 size=1", "bound the index"},
             {"invalid stack off=-520 size=8", "512 bytes of stack"},
             {"combined stack size of 2 calls is 608. Too large", "per-CPU array"},
             {"infinite loop detected at insn 0", "bpf_loop()"},
             {"back-edge from insn 4 to 2", "unroll them"},
             {"BPF program is too large. Processed 1000001 insn", "split by tail calls"},
             {"The sequence of 8193 jumps is too complex.", "too many branches"},
             {"unknown func bpf_override_return#58", "may not call it"},
             {"program of this type cannot use helper bpf_override_return#58", "this type of program"},
             {"cannot call GPL-restricted function from non-GPL compatible program", "\"GPL\""},
             {"socket filter progs cannot use bpf_spin_lock yet", "only other types of programs use"},
             {"function calls are not allowed while holding a lock", "may access memory, but not call functions"},
             {"Unreleased reference id=2 alloc_insn=4", "on every path"},
             {"helper call might sleep in a non-sleepable prog", "fentry.s"},
             {"R1 must be referenced or trusted", "bpf_task_acquire()"},
             {"invalid access to packet, off=20 size=1, R1(id=0,off=20,r=0)", "data_end"},
             {"variable ctx access var_off=(0x0; 0xc) disallowed", "fixed offsets"},
             {"write into map forbidden, value_size=4 off=0 size=4", "read-only"},
             {"At program exit the register R0 has smin=7 smax=7 should have been in [0, 1]", "certain values"},
             {"R7 !read_ok", "never set it"},
             {"R1 pointer arithmetic with *= operator prohibited", "arithmetic"},
             {"ldimm64 failed to find the address for kernel symbol 'bpf_prog_active'.", "CONFIG_KALLSYMS_ALL"}}) {
        const std::string found(verifier_hint(reason));
        CHECK_MESSAGE(found.find(hint) != std::string::npos, reason << ": " << found);
    }
}

TEST_CASE("verifier log: a global function's arguments are the reason that its caller is refused; a sum isn't part of it") {
    VerifierReport r = read_verifier_log("0: R1=ctx() R10=fp0\n"
                                         "; return f(ctx); @ t.c:47\n"
                                         "0: (85) call pc+1\n"
                                         "arg#0 reference type('UNKNOWN ') size cannot be determined: -22\n"
                                         "Caller passes invalid args into func#1 ('f')\n"
                                         "processed 1 insns (limit 1000000) max_states_per_insn 0\n");
    CHECK(r.reason ==
          "arg#0 reference type('UNKNOWN ') size cannot be determined: -22; Caller passes invalid args into func#1 ('f')");
    CHECK(r.hint.find("make it static") != std::string::npos);
    r = read_verifier_log("0: (85) call pc+1\ninsn 0 cannot call exception cb directlyprocessed 1 insns (limit 1000000)\n");
    CHECK(r.reason == "insn 0 cannot call exception cb directly");
}

TEST_CASE("verifier log: 5.10, registers on lines of their own, no places of source lines") {
    VerifierReport r =
        read_verifier_log("func#0 @0\n"
                          "0: R1=ctx(id=0,off=0,imm=0) R10=fp0\n"
                          "; __u64 *v = bpf_map_lookup_elem(&m, &k);\n"
                          "0: (85) call bpf_map_lookup_elem#1\n"
                          "1: R0_w=map_value_or_null(id=1,off=0,ks=4,vs=8,imm=0) R10=fp0 fp-8=mmmm????\n"
                          "; *v += 1;\n"
                          "1: (79) r1 = *(u64 *)(r0 +0)\n"
                          "R0 invalid mem access 'map_value_or_null'\n"
                          "processed 5 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0\n");
    CHECK(r.insn == 1);
    CHECK(r.source == "*v += 1;");
    CHECK(r.file.empty());
    CHECK(r.reason == "R0 invalid mem access 'map_value_or_null'");
    CHECK(r.registers == "R0=map_value_or_null(id=1,off=0,ks=4,vs=8,imm=0) R10=fp0");
    CHECK(r.hint.find("NULL") != std::string::npos);
}

TEST_CASE("verifier log: a reason of several lines is kept whole, state notes are not part of it") {
    VerifierReport r = read_verifier_log(
        "7: (0f) r0 += r1                      ; R0_w=map_value(map=m,ks=4,vs=16,smin=0,smax=255,(0x0; 0xff)) R1_w=scalar()\n"
        "8: (71) r0 = *(u8 *)(r0 +0)\n"
        "mark_precise: frame0: last_idx 8 first_idx 0 subseq_idx -1\n"
        "invalid access to map value, value_size=16 off=255 size=1\n"
        "R0 max value is outside of the allowed memory range\n"
        "verification time 120 usec\n"
        "stack depth 8\n"
        "processed 9 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0");
    CHECK(r.insn == 8);
    CHECK(r.reason ==
          "invalid access to map value, value_size=16 off=255 size=1; R0 max value is outside of the allowed memory range");
    CHECK(r.registers == "R0=map_value(map=m,ks=4,vs=16,smin=0,smax=255,(0x0; 0xff)) R1=scalar()");
    CHECK(r.hint.find("check") != std::string::npos);
}

TEST_CASE("verifier log: checks before the first instruction name it themselves") {
    CHECK(read_verifier_log("unreachable insn 3\nprocessed 0 insns (limit 1000000)\n").insn == 3);
    CHECK(read_verifier_log("back-edge from insn 4 to 1\n").insn == 4);
    VerifierReport jump = read_verifier_log("jump out of range from insn 2 to 90\nverification time 5 usec\n");
    CHECK(jump.insn == 2);
    CHECK(jump.reason == "jump out of range from insn 2 to 90");
    VerifierReport loop = read_verifier_log("; while (1) @ x.c:3\n5: (05) goto pc-1\n"
                                            "infinite loop detected at insn 5\ncur state: R0=0\nold state: R0=0\n");
    CHECK(loop.insn == 5);
    CHECK(loop.reason == "infinite loop detected at insn 5");
    CHECK(loop.line == 3);
    CHECK(loop.hint.find("bpf_loop") != std::string::npos);
}

TEST_CASE("verifier log: where it gave up is no place to look at") {
    VerifierReport r =
        read_verifier_log("; n++; @ a.c:4\n4: (bc) w0 = w6 ; R0_w=5\nBPF program is too large. Processed 1000001 insn\n");
    CHECK(r.insn == -1);
    CHECK(r.source.empty());
    CHECK(r.reason == "BPF program is too large. Processed 1000001 insn");
    CHECK(r.hint.find("million steps") != std::string::npos);
}

TEST_CASE("verifier log: the last path counts, not the first") {
    VerifierReport r = read_verifier_log("0: R1=ctx() R10=fp0\n0: (bf) r6 = r1 ; R1=ctx() R6_w=ctx()\n"
                                         "1: (15) if r0 == 0x0 goto pc+2\n2: (95) exit\n\n"
                                         "from 1 to 4: R0=0 R6=ctx() R10=fp0\n4: (79) r1 = *(u64 *)(r0 +0)\n"
                                         "R0 invalid mem access 'scalar'\n");
    CHECK(r.insn == 4);
    CHECK(r.registers == "R0=0 R6=ctx() R10=fp0");
}

TEST_CASE("verifier log: 7.3's structured report") {
    VerifierReport r = read_verifier_log("0: R1=ctx() R10=fp0\n"
                                         "0: (95) exit\n"
                                         "R0 !read_ok\n"
                                         "\n"
                                         "Verification failed: Register Type Safety: Unreadable register\n"
                                         "\n"
                                         "Reason:\n"
                                         "  R0 has never been initialized on this path, so the verifier\n"
                                         "  cannot use it as an input.\n"
                                         "\n"
                                         "At:\n"
                                         "  insn 0\n"
                                         "        | ^-- error: R0 is not readable\n"
                                         "  Instruction context:\n"
                                         "  >>> 0 | (95) exit\n"
                                         "\n"
                                         "Causal path:\n"
                                         "  no retained diagnostic events on this path\n"
                                         "\n"
                                         "Suggestion:\n"
                                         "  Initialize R0 on every path before this instruction.\n"
                                         "\n"
                                         "processed 1 insns (limit 1000000) max_states_per_insn 0 total_states 0\n");
    CHECK(r.structured);
    CHECK(r.insn == 0);
    CHECK(r.instruction == "exit");
    CHECK(r.reason == "R0 !read_ok: R0 has never been initialized on this path, so the verifier cannot use it as an input.");
    CHECK(r.hint == "Initialize R0 on every path before this instruction.");
    // Its own report alone, should the old text go away one day.
    VerifierReport alone =
        read_verifier_log("Verification failed: Loops: No end\n\nReason:\n  It never ends.\n\nAt:\n  insn 12\n");
    CHECK(alone.insn == 12);
    CHECK(alone.reason == "Loops: No end: It never ends.");
}

TEST_CASE("verifier log: a report of 7.3 with source lines and the path that led there") {
    const std::string log = "7: (79) r1 = *(u64 *)(r0 +0)\n"
                            "R0 invalid mem access 'map_value_or_null'\n"
                            "\n"
                            "Verification failed: Register Type Safety: Invalid dereference\n"
                            "\n"
                            "Reason:\n"
                            "  R0 may be NULL here (a nullable map value pointer). The program could dereference NULL on this\n"
                            "  path, so the verifier cannot prove this access is safe.\n"
                            "\n"
                            "At:\n"
                            "  on_exec @ prog.bpf.c:12:5\n"
                            "  Source context:\n"
                            "      11 |     __u64 *n = bpf_map_lookup_elem(&counts, &key);\n"
                            "  >>> 12 |     *n += 1;\n"
                            "         |     ^-- error: invalid dereference of R0 (a nullable map value\n"
                            "         |         pointer)\n"
                            "  \n"
                            "  Instruction context:\n"
                            "      6 | (85) call bpf_map_lookup_elem#1\n"
                            "  >>> 7 | (79) r1 = *(u64 *)(r0 +0)\n"
                            "\n"
                            "Causal path:\n"
                            "  on_exec @ prog.bpf.c:9:9\n"
                            "  Source context:\n"
                            "  >>> 9 |     if (ctx->flags)\n"
                            "        |     ^-- branch: took the true branch of this conditional, goto\n"
                            "        |         followed\n"
                            "  Instruction context:\n"
                            "  >>> 2 | (55) if r1 != 0x0 goto pc+3\n"
                            "\n"
                            "  12 intermediate causal-history events omitted\n"
                            "\n"
                            "  insn 6\n"
                            "        | ^-- note: R0 became a nullable map value pointer\n"
                            "  Instruction context:\n"
                            "  >>> 6 | (85) call bpf_map_lookup_elem#1\n"
                            "\n"
                            "Suggestion:\n"
                            "  Add a NULL check before the access and dereference the pointer only on the non-NULL path.\n"
                            "\n"
                            "processed 8 insns (limit 1000000) max_states_per_insn 0 total_states 0\n";
    VerifierReport r = read_verifier_log(log);
    CHECK(r.structured);
    CHECK(r.insn == 7);
    CHECK(r.instruction == "r1 = *(u64 *)(r0 +0)");
    CHECK(r.file == "prog.bpf.c");
    CHECK(r.line == 12);
    CHECK(r.source == "*n += 1;");
    CHECK(r.reason.starts_with("R0 invalid mem access 'map_value_or_null': R0 may be NULL here"));
    CHECK(r.hint.starts_with("Add a NULL check"));
    REQUIRE(r.path.size() == 2);
    CHECK(r.path[0] == "prog.bpf.c:9: branch: took the true branch of this conditional, goto followed");
    CHECK(r.path[1] == "instruction 6: note: R0 became a nullable map value pointer");
    // The report alone says as much.
    VerifierReport alone = read_verifier_log(std::string_view(log).substr(log.find("Verification failed")));
    CHECK(alone.insn == 7);
    CHECK(alone.instruction == r.instruction);
    CHECK(alone.source == r.source);
    CHECK(alone.reason.starts_with("Register Type Safety: Invalid dereference: R0 may be NULL here"));
    for (size_t n = 0; n <= log.size(); ++n) {
        VerifierReport cut = read_verifier_log(std::string_view(log).substr(0, n));
        CHECK(cut.insn <= 7);
        CHECK(cut.path.size() <= 2);
    }
}

TEST_CASE("verifier log: what stands behind a jump on its own line") {
    VerifierReport r = read_verifier_log("7: (61) r2 = *(u32 *)(r10 -4)         ; R2=scalar() R10=fp0\n"
                                         "8: (5d) if r2 != r1 goto pc-5 infinite loop detected at insn 4\n"
                                         "cur state: R1=0xfffffffb R2=scalar() R10=fp0 fp-8=mmmm????\n"
                                         "old state: R1=0xfffffffb R2=scalar() R10=fp0 fp-8=mmmm????\n"
                                         "processed 18 insns (limit 1000000) max_states_per_insn 0\n");
    CHECK(r.reason == "infinite loop detected at insn 4");
    CHECK(r.insn == 4);
    CHECK(r.hint.find("constant bound") != std::string::npos);
    r = read_verifier_log("8: (5d) if r2 != r1 goto pc-5 4: R1=7 R10=fp0\n4: (95) exit\nR0 !read_ok\n");
    CHECK(r.reason == "R0 !read_ok");
    CHECK(r.registers == "R1=7 R10=fp0");
    r = read_verifier_log("8: (05) goto pc-5\nback-edge from insn 8 to 4\n");
    CHECK(r.reason == "back-edge from insn 8 to 4");
    for (std::string_view text :
         {"1: (05) goto pc", "1: (05) goto pc+", "1: (05) goto pc+x", "1: (05) goto pc+1", "1: (05) goto pc+1 ",
          "1: (05) goto pc+1 2", "1: (05) goto pc+1 2:", "1: (05) goto pc+999999999999"})
        CHECK(read_verifier_log(text).insn == 1);
}

TEST_CASE("verifier log: the registers that matter") {
    VerifierReport r = read_verifier_log("4: R1_w=scalar(id=2) R2=map_value(off=0,ks=4,vs=8) R10=fp0\n"
                                         "5: (0f) r2 += r1\n"
                                         "R2 unbounded memory access, make sure to bounds check any such access\n");
    CHECK(r.registers == "R1=scalar(id=2) R2=map_value(off=0,ks=4,vs=8) R10=fp0");
    CHECK(r.named_registers() == "R1=scalar(id=2) R2=map_value(off=0,ks=4,vs=8)");
    r.instruction = "exit";
    r.reason = "program of this type cannot use helper bpf_override_return#58";
    CHECK(r.named_registers() == r.registers); // none is named
    r.registers.clear();
    CHECK(r.named_registers().empty());
}

TEST_CASE("verifier log: what is said of a function's parameters is the reason when nothing else is") {
    VerifierReport r = read_verifier_log("Validating sub() func#1...\n"
                                         "arg#0 reference type('UNKNOWN ') size cannot be determined: -22\n"
                                         "processed 0 insns (limit 1000000)\n");
    CHECK(r.reason == "arg#0 reference type('UNKNOWN ') size cannot be determined: -22");
    CHECK(r.hint.find("__arg_ctx") != std::string::npos);
    CHECK(read_verifier_log("arg#0 x\n0: (95) exit\nR0 !read_ok\n").reason == "R0 !read_ok");
}

TEST_CASE("verifier log: CO-RE's impossible call is recognised") {
    VerifierReport r = read_verifier_log("3: <invalid CO-RE relocation>\ninvalid func unknown#195896080\n");
    CHECK(r.poisoned());
    CHECK(r.hint.find("bpf_core_field_exists") != std::string::npos);
}

TEST_CASE("verifier log: no text is too strange") {
    CHECK(read_verifier_log("").reason.empty());
    CHECK(read_verifier_log("\n\n\n").insn == -1);
    CHECK(read_verifier_log("99999999999999999999: (95) exit\n").insn == -1);
    CHECK(read_verifier_log(";\n; @ :\n; x @ y:0\n1: (\n1: ()\nR\nR1\nR1_=\nframe1: R0=1\n").reason == "R; R1");
    const std::string log =
        "0: R1=ctx() R10=fp0\n; a @ b.c:1\n0: (b7) r1 = 5 ; R1=map((((\nR1 bad ) (\nVerification failed: x\n\nReason:\n"
        "  y\n\nAt:\n  insn 7\nSuggestion:\n z";
    for (size_t n = 0; n <= log.size(); ++n) {
        VerifierReport r = read_verifier_log(std::string_view(log).substr(0, n));
        CHECK(r.insn <= 7);
    }
}
