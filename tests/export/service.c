// What tests/export/run and tests/bench/export.bench trace: requests with a query in each, by the probes that the Go fork's
// documents name. Every tenth request fails; after them a query begins that never ends. usage: service REQUESTS PAUSE_US, the
// pause after each request, or where there are none, at the end.
#include <rawbpf/usdt.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void query(const char *text) {
    RAWBPF_USDT(go, sql_query_start, text, (long)strlen(text), 0UL);
    RAWBPF_USDT(go, sql_query_end, text, (long)strlen(text), 0UL, 0L);
}

int main(int argc, char **argv) {
    const long requests = argc > 1 ? atol(argv[1]) : 1;
    const useconds_t pause_us = argc > 2 ? (useconds_t)atol(argv[2]) : 0;
    const char *method = "GET", *path = "/load?num=5", *lost = "SELECT 1";
    for (long i = 0; i < requests; ++i) {
        RAWBPF_USDT(go, http_server_request_start, method, 3L, path, (long)strlen(path), 0UL);
        query("SELECT * FROM users WHERE id = 42 AND name = 'bob'");
        RAWBPF_USDT(go, http_server_request_end, method, 3L, path, (long)strlen(path), i % 10 == 9 ? 500 : 200, 0UL);
        if (pause_us) usleep(pause_us);
    }
    RAWBPF_USDT(go, sql_query_start, lost, (long)strlen(lost), 0UL);
    if (requests == 0 && pause_us) usleep(pause_us);
    return 0;
}
