// Tests with shares and figures of workloads that know how long they take. With sanitizers a program takes five times as long and
// has threads and memory of its own, and on arm64 these have been run in emulated guests too seldom to be relied upon.
#pragma once

#include "tests/support/test.h"

#if defined(__aarch64__)
#define PLAIN_X86_ONLY() SKIP("its figures are known for x86_64")
#elif defined(__SANITIZE_ADDRESS__)
#define PLAIN_X86_ONLY() SKIP("its figures are known for programs without sanitizers")
#else
#define PLAIN_X86_ONLY() static_cast<void>(0)
#endif
