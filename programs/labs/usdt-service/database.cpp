// What goes over the wire:
//
//      HELLO orders.db.example        client; where TLS would have its handshake
//      HELLO                          server
//      SELECT ...                     a query is a line
//      ROWS 7    or   ERROR 1146
//
// It is a real connection, so dialling, greeting and querying take the time that they take; only what the database finds, and how
// long it looks for it, stands in the inputs file. The probes stand where a driver would have them.
#include "database.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "probes.h"

Database::Database(const Inputs &inputs) : inputs_(inputs) {
    for (const Input &input : inputs.requests)
        for (const Query &query : input.queries) by_text_.emplace(query.text, &query);
    listener_ = listen_on(port_);
    if (!listener_) {
        port_ = 0;
        return;
    }
    pool_ = std::make_unique<Pool>(listener_, 4, [this](Socket connection) { serve(std::move(connection)); });
    if (!pool_->ok()) port_ = 0;
}

void Database::serve(Socket connection) const {
    Lines lines(connection);
    std::string line;
    if (!lines.next(line) || line != "HELLO " + inputs_.database || !send_all(connection, "HELLO\n")) return;
    while (lines.next(line)) {
        const auto found = by_text_.find(line);
        long error = found == by_text_.end() ? 1064 : found->second->error;
        if (found != by_text_.end()) std::this_thread::sleep_for(std::chrono::milliseconds(found->second->milliseconds));
        const std::string answer = error ? "ERROR " + std::to_string(error) : "ROWS " + std::to_string(found->second->rows);
        if (!send_all(connection, answer + "\n")) return;
    }
}

Connection::Connection(int port, const std::string &name) {
    const std::string address = "127.0.0.1:" + std::to_string(port);
    uint64_t began = probes::now();
    probes::net_dial_start("tcp", address);
    socket_ = connect_to(port);
    probes::net_dial_end("tcp", address, began, socket_ ? 0 : errno);
    if (!socket_) return;

    began = probes::now();
    probes::tls_handshake_start(name);
    std::string line;
    ok_ = send_all(socket_, "HELLO " + name + "\n") && lines_.next(line) && line == "HELLO";
    probes::tls_handshake_end(name, began, ok_ ? 0 : EPROTO);
}

long Connection::query(const std::string &text) {
    const uint64_t began = probes::now();
    probes::sql_query_start(text);
    std::string answer;
    long rows = -1, error = EIO;
    if (send_all(socket_, text + "\n") && lines_.next(answer)) {
        if (answer.rfind("ROWS ", 0) == 0) rows = std::strtol(answer.c_str() + 5, nullptr, 10), error = 0;
        if (answer.rfind("ERROR ", 0) == 0) error = std::strtol(answer.c_str() + 6, nullptr, 10);
    }
    probes::sql_query_end(text, began, error);
    return rows;
}
