// The programs of tests/usdt as functions of the kernel tests, so that guests have them, too: other machines, without a compiler.
#include "tests/kernel/usdt_programs.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "programs/include/rawbpf/usdt.h"

namespace {
namespace header {
#define main run
#include "tests/usdt/probes.c" // NOLINT(bugprone-suspicious-include): the same program, as a function
} // namespace header
namespace go {
#include "tests/usdt/go_fork.c" // NOLINT(bugprone-suspicious-include)
#undef main
} // namespace go

int at_once(int (*run)(int, char **)) {
    char name[] = "program", dash[] = "-";
    char *arguments[] = {name, dash, nullptr};
    return run(2, arguments);
}
} // namespace

int fire_header_probes() { return at_once(header::run); }
int fire_go_probes() { return at_once(go::run); }
