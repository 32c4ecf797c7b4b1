// SPDX-License-Identifier: Apache-2.0
#include "server/http/loop.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "server/core/clock.h"
#include "server/http/connection.h"

namespace server::http {

struct Loop::Listener {
  Loop* loop = nullptr;
  int fd = -1;
  event* ready = nullptr;
  bool paused = false;  // no file descriptors are left: tried again at the next tick
  std::function<void(int)> accepted;

  ~Listener() {
    if (ready) event_free(ready);
    ::close(fd);
  }
};

Loop::Loop() {
  event_config* config = event_config_new();
  event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);  // used by its own thread alone
  base_ = event_base_new_with_config(config);
  event_config_free(config);
  if (!base_) throw Error(Code::kInternal, "cannot make an event loop");
  letters_event_ = event_new(
      base_, mailbox_->fd(), EV_READ | EV_PERSIST,
      [](evutil_socket_t, short, void* self) { static_cast<Loop*>(self)->receive(); }, this);
  tick_event_ = event_new(
      base_, -1, EV_PERSIST,
      [](evutil_socket_t, short, void* self) { static_cast<Loop*>(self)->tick(); }, this);
  const timeval second{1, 0};
  event_add(letters_event_, nullptr);
  event_add(tick_event_, &second);
}

Loop::~Loop() {
  if (thread_.joinable()) finish(0);
  mailbox_->close();
  std::exchange(connections_, {}).clear();  // they look for themselves in the map when they close
  graveyard_.clear();
  listeners_.clear();
  event_free(letters_event_);
  event_free(tick_event_);
  event_base_free(base_);
}

void Loop::start() {
  thread_ = std::thread([this] { event_base_dispatch(base_); });
}

uint64_t Loop::now_ms() const { return now_ns() / 1'000'000; }

void Loop::adopt(int fd, std::shared_ptr<const Service> service, TlsContext tls) {
  // A task that is never run closes the socket.
  auto socket = std::shared_ptr<int>(new int(fd), [](int* owned) {
    if (*owned >= 0) ::close(*owned);
    delete owned;
  });
  mailbox_->post([this, socket, service = std::move(service), tls = std::move(tls)] {
    if (draining_) return;
    TlsSession session;
    if (tls && !(session = accept_tls(tls, *socket))) return;
    auto connection = std::make_unique<Connection>(*this, std::exchange(*socket, -1), service,
                                                   std::move(session));
    Connection* key = connection.get();
    connections_.emplace(key, std::move(connection));
    count_.store(connections_.size(), std::memory_order_relaxed);
    key->start();
  });
}

void Loop::listen(int fd, std::function<void(int)> accepted) {
  mailbox_->post([this, fd, accepted = std::move(accepted)] {
    auto listener = std::make_unique<Listener>();
    listener->loop = this;
    listener->fd = fd;
    listener->accepted = accepted;
    listener->ready = event_new(
        base_, fd, EV_READ | EV_PERSIST,
        [](evutil_socket_t, short, void* self) {
          Listener& listener = *static_cast<Listener*>(self);
          listener.loop->accept_some(listener);
        },
        listener.get());
    event_add(listener->ready, nullptr);
    listeners_.push_back(std::move(listener));
  });
}

void Loop::accept_some(Listener& listener) {
  for (int i = 0; i < 64; ++i) {
    const int fd = accept4(listener.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        event_del(listener.ready);
        listener.paused = true;
      }
      return;
    }
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    listener.accepted(fd);
  }
}

void Loop::drain() {
  mailbox_->post([this] {
    draining_ = true;
    listeners_.clear();
    std::vector<Connection*> all;
    for (const auto& [key, connection] : connections_) all.push_back(key);
    for (Connection* connection : all) connection->close_if_idle();
    leave_if_done();
  });
}

void Loop::finish(unsigned patience_ms) {
  if (!thread_.joinable()) return;
  drain();
  mailbox_->post([this, patience_ms] {
    finishing_ = true;
    finish_at_ms_ = now_ms() + patience_ms;
    if (patience_ms == 0) event_base_loopbreak(base_);
    leave_if_done();
  });
  thread_.join();
}

void Loop::leave_if_done() {
  if (finishing_ && (connections_.empty() || now_ms() >= finish_at_ms_))
    event_base_loopbreak(base_);
}

void Loop::receive() {
  mailbox_->take(letters_);
  for (Mailbox::Letter& letter : letters_) {
    if (letter.task) {
      letter.task();
    } else if (Exchange& exchange = *letter.exchange; exchange.connection) {
      exchange.connection->answer();
    }
  }
  letters_.clear();
  graveyard_.clear();
  leave_if_done();
}

void Loop::tick() {
  const uint64_t now = now_ms();
  std::vector<Connection*> late;
  for (const auto& [key, connection] : connections_)
    if (connection->is_late(now)) late.push_back(key);
  for (Connection* connection : late) connection->close();
  for (const std::unique_ptr<Listener>& listener : listeners_) {
    if (!listener->paused) continue;
    listener->paused = false;
    event_add(listener->ready, nullptr);
  }
  graveyard_.clear();
  leave_if_done();
}

void Loop::bury(Connection* connection) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  graveyard_.push_back(std::move(found->second));
  connections_.erase(found);
  count_.store(connections_.size(), std::memory_order_relaxed);
  leave_if_done();
}

}  // namespace server::http
