// A service: HTTP in front, SQL behind, probes in between.
//
//      curl http://127.0.0.1:8080/load
//
//      GET /load --> the next request of the inputs file --> a connection to the database --> its queries, one after the other
//
// Four threads serve. A request stays in the thread that took it, and so do its queries: that is how a tracer knows what belongs
// together without being told.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "database.h"
#include "inputs.h"
#include "net.h"
#include "probes.h"

namespace {

class Service {
  public:
    Service(const Inputs &inputs, int database) : inputs_(inputs), database_(database) {}

    void serve(const Socket &connection) {
        Lines lines(connection);
        std::string request, header;
        if (!lines.next(request)) return;
        for (int n = 0; lines.next(header) && !header.empty();)
            if (++n > 100) return;
        const size_t space = request.find(' '), end = request.find(' ', space + 1);
        if (space == std::string::npos || end == std::string::npos || request.compare(end, 6, " HTTP/") != 0) {
            answer(connection, 400, "not a request\n");
            return;
        }
        const std::string method = request.substr(0, space), target = request.substr(space + 1, end - space - 1);
        const std::string path = target.substr(0, target.find('?'));

        const uint64_t began = probes::now();
        probes::http_server_request_start(method, path);
        std::string body;
        int status = 404;
        if (path == "/load" && method == "GET")
            status = load(body);
        else if (path == "/load")
            status = 405, body = "GET, please\n";
        else
            body = "there is only /load\n";
        probes::http_server_request_end(method, path, status, began);
        answer(connection, status, body);
    }

  private:
    int load(std::string &body) {
        const Input &input = inputs_.requests[next_++ % inputs_.requests.size()];
        Connection database(database_, inputs_.database);
        if (!database.ok()) {
            body = "no database\n";
            return 503;
        }
        for (const Query &query : input.queries) {
            const long rows = database.query(query.text);
            if (rows < 0) {
                body += "failed: " + query.text + "\n";
                return 500;
            }
            body += std::to_string(rows) + " rows: " + query.text + "\n";
        }
        return 200;
    }

    static void answer(const Socket &connection, int status, const std::string &body) {
        const char *reason = status == 200   ? "OK"
                             : status == 400 ? "Bad Request"
                             : status == 404 ? "Not Found"
                             : status == 405 ? "Method Not Allowed"
                             : status == 503 ? "Service Unavailable"
                                             : "Internal Server Error";
        send_all(connection, "HTTP/1.1 " + std::to_string(status) + " " + reason +
                                 "\r\nContent-Type: text/plain\r\nContent-Length: " + std::to_string(body.size()) +
                                 "\r\nConnection: close\r\n\r\n" + body);
    }

    const Inputs &inputs_;
    int database_;
    std::atomic<size_t> next_ = 0;
};

int usage() {
    std::fputs("usage: usdt-service INPUTS.json [--port N]      (8080; 0: any that is free)\n", stderr);
    return 2;
}

} // namespace

int main(int argc, char **argv) {
    const char *file = nullptr;
    long port = 8080;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--port") == 0 && i + 1 < argc) {
            char *end = nullptr;
            port = std::strtol(argv[++i], &end, 10);
            if (!*argv[i] || *end || port < 0 || port > 65535) return usage();
        } else if (argv[i][0] == '-' || file) {
            return usage();
        } else {
            file = argv[i];
        }
    }
    if (!file) return usage();
    std::string problem;
    const std::optional<Inputs> inputs = read_inputs(file, problem);
    if (!inputs) {
        std::fprintf(stderr, "usdt-service: %s\n", problem.c_str());
        return 1;
    }

    // For every thread: they come with sigtimedwait(2), below.
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);

    int here = static_cast<int>(port);
    const Socket listener = listen_on(here);
    if (!listener) {
        std::fprintf(stderr, "usdt-service: 127.0.0.1:%ld: %s; --port N takes another one, --port 0 any that is free\n", port,
                     std::strerror(errno));
        return 1;
    }
    const Database database(*inputs);
    if (!database.port()) {
        std::fprintf(stderr, "usdt-service: the database has no port: %s\n", std::strerror(errno));
        return 1;
    }
    Service service(*inputs, database.port());
    const Pool pool(listener, 4, [&](const Socket &connection) { service.serve(connection); });
    if (!pool.ok()) {
        std::fprintf(stderr, "usdt-service: no pipe for ending its threads: %s\n", std::strerror(errno));
        return 1;
    }
    std::printf("listening on http://127.0.0.1:%d/load, %zu requests in %s\n", here, inputs->requests.size(), file);
    std::fflush(stdout);
    for (int before = 0;;) {
        const int now = probes::looked_at();
        if (now != before) std::printf("somebody looks at %d of %d probes\n", now, probes::kAll);
        std::fflush(stdout);
        before = now;
        const timespec soon{0, 20'000'000};
        if (sigtimedwait(&ends, nullptr, &soon) >= 0) break;
    }
    return 0;
}
