// Tests with shares and figures of workloads that know how long they take, which with sanitizers they don't.
#pragma once

#include "tests/support/sanitized.h"
#include "tests/support/test.h"

#define PLAIN_ONLY()                                                                                                             \
    if (rawbpf::test::kSanitized) SKIP("its figures are known for programs without sanitizers")
