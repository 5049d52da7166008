// What the builder's tests look at: a program as text, or the complaints about it.
#pragma once

#include <string>

#include "asm/builder.h"
#include "asm/print.h"
#include "tests/support/test.h"

namespace rawbpf::test {

/// The text of a one-program unit whose body is `body`, without its heading; or the complaints.
template <class Body> std::string built(Body &&body) {
    Builder b("test");
    Code &f = b.program("socket", "p");
    body(b, f);
    Built result = b.finish();
    if (!result) {
        std::string out;
        for (const Diagnostic &problem : result.problems) {
            CHECK(problem.line > 0);
            CHECK(problem.file.find("unit/asm/") != std::string::npos);
            out += problem.message + "\n";
        }
        return out;
    }
    std::string out;
    for (const Function &function : result->functions) out += print(function);
    return out.substr(out.find('\n') + 1);
}

} // namespace rawbpf::test
