// SPDX-License-Identifier: Apache-2.0
// A blocking HTTP client for tests that need to say what goes over the wire, byte by byte.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace anymps::server::test {

struct Answer {
  int status = 0;
  std::string head, body;
  bool has(std::string_view text) const { return head.find(text) != std::string::npos; }
};

class Client {
 public:
  explicit Client(uint16_t port, SSL_CTX* tls = nullptr) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit{20, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("no connection");
    if (!tls) return;
    tls_.reset(SSL_new(tls));
    SSL_set_fd(tls_.get(), fd_);
    if (SSL_connect(tls_.get()) != 1) throw std::runtime_error("no TLS");
  }
  ~Client() { close(); }
  void close() {
    tls_.reset();
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  void half_close() { shutdown(fd_, SHUT_WR); }

  // How much went out before the connection ended or the time was over.
  size_t send(std::string_view text) {
    const size_t all = text.size();
    while (!text.empty()) {
      const ssize_t count = tls_ ? SSL_write(tls_.get(), text.data(), static_cast<int>(text.size()))
                                 : ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) break;
      text.remove_prefix(static_cast<size_t>(count));
    }
    return all - text.size();
  }
  int fd() const { return fd_; }

  // The next answer; status 0: the connection ended.
  Answer receive() {
    Answer answer;
    size_t end = 0;
    while ((end = in_.find("\r\n\r\n")) == std::string::npos)
      if (!more()) return answer;
    answer.head = in_.substr(0, end + 4);
    in_.erase(0, end + 4);
    answer.status = std::atoi(answer.head.c_str() + sizeof "HTTP/1.1");
    if (answer.has("Transfer-Encoding: chunked")) {
      while (true) {
        while (in_.find("\r\n") == std::string::npos)
          if (!more()) return {};
        const size_t size = std::strtoul(in_.c_str(), nullptr, 16);
        in_.erase(0, in_.find("\r\n") + 2);
        while (in_.size() < size + 2)
          if (!more()) return {};
        answer.body += in_.substr(0, size);
        in_.erase(0, size + 2);
        if (size == 0) return answer;
      }
    }
    const size_t at = answer.head.find("\r\nContent-Length: ");
    const size_t length =
        at == std::string::npos ? 0 : std::strtoul(&answer.head[at + 18], nullptr, 10);
    while (in_.size() < length)
      if (!more()) return {};
    answer.body = in_.substr(0, length);
    in_.erase(0, length);
    return answer;
  }

  Answer ask(std::string_view text) {
    send(text);
    return receive();
  }
  Answer get(const std::string& path, const std::string& headers = "") {
    return ask("GET " + path + " HTTP/1.1\r\nHost: h\r\n" + headers + "\r\n");
  }
  Answer post(const std::string& path, const std::string& body, const std::string& headers = "") {
    return ask("POST " + path + " HTTP/1.1\r\nHost: h\r\n" + headers +
               "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  bool at_end() { return in_.empty() && !more(); }

 private:
  bool more() {
    char buffer[65536];
    const ssize_t count =
        tls_ ? SSL_read(tls_.get(), buffer, sizeof buffer) : recv(fd_, buffer, sizeof buffer, 0);
    if (count <= 0) return false;
    in_.append(buffer, static_cast<size_t>(count));
    return true;
  }
  struct FreeTls {
    void operator()(SSL* session) const { SSL_free(session); }
  };
  int fd_;
  std::unique_ptr<SSL, FreeTls> tls_;
  std::string in_;
};

}  // namespace anymps::server::test
