// The beginnings and the ends that the long-running commands have in common.
#include "cli/running.h"

#include "cli/console.h"

namespace rawbpf::inline v0::cli {

volatile std::sig_atomic_t stop_wanted = 0;

void stop_on_signals() {
    struct sigaction action {};
    action.sa_handler = [](int) { stop_wanted = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND); // without SA_RESTART: a wait ends at once
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

Unexpected wrong_usage(std::string text, std::string hint) {
    return Unexpected(make_error(Errc::invalid_argument, std::move(text), std::move(hint)));
}

Result<void> check_as_root(const Arguments &a, Id as_root) {
    if (a.has(as_root) && a.workload().empty())
        return wrong_usage("--as-root is about COMMAND, and there is none", "put it behind --");
    return {};
}

Result<void> check_ready_fd(const Arguments &a, Id ready_fd) {
    if (a.has(ready_fd) && !is_open(static_cast<int>(a.count(ready_fd))))
        return wrong_usage(format("--ready-fd: descriptor {} isn't open", a.count(ready_fd)),
                           format("a shell opens it with {0}>FILE or {0}>&1", a.count(ready_fd)));
    return {};
}

} // namespace rawbpf::inline v0::cli
