// rawbpf's entry: argv in, exit status out. All else is in commands.cpp, where tests reach it.
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "runtime/sys/truncated.h"

int main(int argc, char **argv) {
    rawbpf::cli::fill_standard_descriptors();
    // A handler, not SIG_IGN: write(2) returns EPIPE or EFBIG either way, but exec gives a workload the default back only from a
    // handler.
    struct sigaction quiet {};
    quiet.sa_handler = [](int) {};
    quiet.sa_flags = SA_RESTART;
    sigaction(SIGPIPE, &quiet, nullptr);
    sigaction(SIGXFSZ, &quiet, nullptr);
    rawbpf::sys::outlive_truncated_files();
    std::vector<std::string_view> words(argv + (argc > 0), argv + argc);
    // What a command held it has given back. The destructors of global tables that are left would fault in a tenth of the
    // program.
    std::_Exit(rawbpf::cli::run(words));
}
