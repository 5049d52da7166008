// The runner of every test binary: doctest underneath, one line a test on stdout, so that scripts, guests and people read the
// same thing. Exit status: 0 all passed, 1 something failed, 77 nothing ran because everything was skipped.
//
// Names and reasons may both hold ": ", which is nothing to a reader and everything to a program. A program asks for other lines:
//
//      RAWBPF_TEST_LINES=tabs   PASS|FAIL <tab> name <tab> seconds, SKIP|FLAKY <tab> name <tab> reason, and RUN <tab> name before each
//      RAWBPF_TESTS=FILE        only the tests whose names are in the file, one a line, whatever characters they have
//      RAWBPF_TEST_LIMIT=S      a test that takes longer than S seconds fails, and ends the run
#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/support/test.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include <unistd.h>

namespace {

std::string skip_reason;  // of the test that is running; empty: not skipped
std::string flaky_reason; // of the same; empty: nothing was measured again
int passed, failed, skipped;
bool tabs;
unsigned limit_seconds;
std::string overdue; // what is printed when the running test takes too long

void too_long(int) {
    // async-signal-safe: the text was made before the test began
    [[maybe_unused]] auto written = write(1, overdue.data(), overdue.size());
    _exit(1);
}

std::string one_line(std::string text) {
    for (char &c : text)
        if (c == '\n' || c == '\t') c = ' ';
    return text;
}

void verdict(const char *word, const char *name, const std::string &text) {
    if (tabs)
        std::printf("%s\t%s\t%s\n", word, name, text.c_str());
    else if (std::strcmp(word, "SKIP") == 0 || std::strcmp(word, "FLAKY") == 0)
        std::printf("%s %s: %s\n", word, name, text.c_str());
    else
        std::printf("%s %s\n", word, name);
    std::fflush(stdout);
}

struct Lines : doctest::IReporter {
    const doctest::ContextOptions &options;
    const doctest::TestCaseData *test = nullptr;
    bool broken = false;

    explicit Lines(const doctest::ContextOptions &in) : options(in) {}
    void report_query(const doctest::QueryData &data) override {
        for (unsigned i = 0; i < data.num_data; ++i) std::printf("%s%s\n", tabs ? "TEST\t" : "", data.data[i]->m_name);
    }
    void test_run_start() override {}
    void test_run_end(const doctest::TestRunStats &) override {
        std::printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    }
    void test_case_start(const doctest::TestCaseData &in) override {
        test = &in;
        broken = false;
        skip_reason.clear();
        flaky_reason.clear();
        if (tabs) {
            std::printf("RUN\t%s\n", in.m_name);
            std::fflush(stdout);
        }
        if (limit_seconds != 0) {
            overdue = "  no end after " + std::to_string(limit_seconds) + " s\nFAIL" + (tabs ? "\t" : " ") + in.m_name + "\n";
            alarm(limit_seconds);
        }
    }
    void test_case_reenter(const doctest::TestCaseData &) override {}
    void test_case_end(const doctest::CurrentTestCaseStats &stats) override {
        alarm(0);
        bool bad = broken || stats.failure_flags != 0 || stats.numAssertsFailedCurrentTest > 0;
        std::string seconds = std::to_string(stats.seconds);
        if (bad) {
            ++failed;
            verdict("FAIL", test->m_name, seconds);
        } else if (!skip_reason.empty()) {
            ++skipped;
            verdict("SKIP", test->m_name, one_line(skip_reason));
        } else if (!flaky_reason.empty()) {
            ++passed;
            verdict("FLAKY", test->m_name, one_line(flaky_reason));
        } else {
            ++passed;
            verdict("PASS", test->m_name, seconds);
        }
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
void rawbpf::test::flaky(const std::string &reason) {
    flaky_reason += (flaky_reason.empty() ? "" : "; ") + (reason.empty() ? "no reason given" : reason);
}

int main(int argc, char **argv) {
    doctest::Context context;
    context.setOption("reporters", "lines");
    std::setvbuf(stdout, nullptr, _IOLBF, 0); // a test that dies leaves what it said
    const char *lines = std::getenv("RAWBPF_TEST_LINES"), *limit = std::getenv("RAWBPF_TEST_LIMIT"),
               *names = std::getenv("RAWBPF_TESTS");
    tabs = lines != nullptr && std::strcmp(lines, "tabs") == 0;
    limit_seconds = limit != nullptr ? static_cast<unsigned>(std::strtoul(limit, nullptr, 10)) : 0;
    if (limit_seconds != 0) std::signal(SIGALRM, too_long);
    if (names != nullptr) {
        std::ifstream file(names);
        if (!file) {
            std::fprintf(stderr, "RAWBPF_TESTS: %s can't be read\n", names);
            return 1;
        }
        for (std::string name; std::getline(file, name);) {
            for (char &c : name)
                if (c == ',' || c == '\\') c = '?'; // doctest takes filters apart at commas; this is any character
            if (!name.empty()) context.addFilter("test-case", name.c_str());
        }
    }
    context.applyCommandLine(argc, argv);
    int status = context.run();
    if (status != 0) return 1;
    return passed == 0 && skipped > 0 ? 77 : 0;
}
