// A database in its outlines, and its client.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "inputs.h"
#include "net.h"

/// Answers the queries of the inputs file, on a port of its own.
class Database {
  public:
    /// Listens. When it can't, port() is 0 and errno says why.
    explicit Database(const Inputs &inputs);
    [[nodiscard]] int port() const { return port_; }

  private:
    void serve(Socket connection) const;

    const Inputs &inputs_;
    std::map<std::string, const Query *> by_text_;
    int port_ = 0;
    Socket listener_;
    std::unique_ptr<Pool> pool_;
};

/// A connection to it.
class Connection {
  public:
    /// Connects, and greets the database by its name. Errors: ok() is false.
    Connection(int port, const std::string &name);
    [[nodiscard]] bool ok() const { return ok_; }
    /// The number of rows, or -1.
    long query(const std::string &text);

  private:
    Socket socket_;
    Lines lines_{socket_};
    bool ok_ = false;
};
