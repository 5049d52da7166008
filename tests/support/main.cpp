// The runner of every test binary: doctest underneath, one line a test on stdout, so that scripts, guests and people read the
// same thing. Exit status: 0 all passed, 1 something failed, 77 nothing ran because everything was skipped.
#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/support/test.h"

#include <cstdio>
#include <sstream>

namespace {

std::string skip_reason; // of the test that is running; empty: not skipped
int passed, failed, skipped;

struct Lines : doctest::IReporter {
    const doctest::ContextOptions &options;
    const doctest::TestCaseData *test = nullptr;
    bool broken = false;

    explicit Lines(const doctest::ContextOptions &in) : options(in) {}
    void report_query(const doctest::QueryData &data) override {
        for (unsigned i = 0; i < data.num_data; ++i) std::printf("%s\n", data.data[i]->m_name);
    }
    void test_run_start() override {}
    void test_run_end(const doctest::TestRunStats &) override {
        std::printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    }
    void test_case_start(const doctest::TestCaseData &data) override {
        test = &data;
        broken = false;
        skip_reason.clear();
    }
    void test_case_reenter(const doctest::TestCaseData &) override {}
    void test_case_end(const doctest::CurrentTestCaseStats &stats) override {
        bool bad = broken || stats.failure_flags != 0 || stats.numAssertsFailedCurrentTest > 0;
        if (bad) {
            ++failed;
            std::printf("FAIL %s\n", test->m_name);
        } else if (!skip_reason.empty()) {
            ++skipped;
            std::printf("SKIP %s: %s\n", test->m_name, skip_reason.c_str());
        } else {
            ++passed;
            std::printf("PASS %s\n", test->m_name);
        }
        std::fflush(stdout);
    }
    void test_case_exception(const doctest::TestCaseException &e) override {
        broken = true;
        std::printf("  %s:%d: exception: %s\n", test->m_file.c_str(), static_cast<int>(test->m_line), e.error_string.c_str());
    }
    void subcase_start(const doctest::SubcaseSignature &) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData &a) override {
        if (!a.m_failed) return;
        std::printf("  %s:%d: %s( %s ) is wrong: %s\n", a.m_file, a.m_line, doctest::assertString(a.m_at), a.m_expr,
                    a.m_decomp.c_str());
        print_context();
    }
    void log_message(const doctest::MessageData &m) override {
        std::printf("  %s:%d: %s\n", m.m_file, m.m_line, m.m_string.c_str());
        if (m.m_severity != doctest::assertType::is_warn) print_context();
    }
    void test_case_skipped(const doctest::TestCaseData &) override {}

    static void print_context() {
        const doctest::IContextScope *const *scopes = doctest::IReporter::get_active_contexts();
        for (int i = 0; i < doctest::IReporter::get_num_active_contexts(); ++i) {
            std::ostringstream text;
            scopes[i]->stringify(&text);
            std::printf("    with %s\n", text.str().c_str());
        }
    }
};

} // namespace

REGISTER_REPORTER("lines", 1, Lines);

void rawbpf::test::skip(const std::string &reason) { skip_reason = reason.empty() ? "no reason given" : reason; }

int main(int argc, char **argv) {
    doctest::Context context;
    context.setOption("reporters", "lines");
    context.applyCommandLine(argc, argv);
    int status = context.run();
    if (status != 0) return 1;
    return passed == 0 && skipped > 0 ? 77 : 0;
}
