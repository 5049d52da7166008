// Sockets, with an end to every wait.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

/// A descriptor that is closed with its owner.
class Socket {
  public:
    explicit Socket(int fd = -1) : fd_(fd) {}
    Socket(Socket &&other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
    Socket &operator=(Socket &&other) noexcept;
    ~Socket();
    [[nodiscard]] int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_;
};

/// Listens on 127.0.0.1; `port` 0: any that is free, then it is that one. On failure none, and errno says why.
Socket listen_on(int &port);
/// Connects to 127.0.0.1. On failure none, and errno says why.
Socket connect_to(int port);

/// Sends everything; false: the other side is gone.
bool send_all(const Socket &to, const std::string &text);
/// Reads lines out of a connection: at most so many bytes, at most 5 seconds for each part that comes.
class Lines {
  public:
    explicit Lines(const Socket &from) : from_(from) {}
    /// The next one, without its end (\n or \r\n); false: there is none.
    bool next(std::string &line);

  private:
    const Socket &from_;
    std::string waiting_;
};

/// So many threads that take connections until the end.
class Pool {
  public:
    Pool(const Socket &listener, int threads, const std::function<void(Socket)> &serve);
    /// Takes no more connections and waits for those that there are.
    ~Pool();
    /// false: it has no threads, and errno said why.
    [[nodiscard]] bool ok() const { return !threads_.empty(); }

  private:
    Socket stop_; ///< its other end is closed when it is time
    Socket stopped_;
    std::vector<std::thread> threads_;
};
