// Tests with shares and figures of workloads that know how long they take. With sanitizers a program takes five times as long and
// has threads and memory of its own.
#pragma once

#include "tests/support/test.h"

#if defined(__SANITIZE_ADDRESS__)
#define PLAIN_ONLY() SKIP("its figures are known for programs without sanitizers")
#else
#define PLAIN_ONLY() static_cast<void>(0)
#endif
