// SPDX-License-Identifier: Apache-2.0
#include "server/http/transport/loop.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <tuple>
#include <utility>

#include "server/core/clock.h"
#include "server/http/transport/connection.h"

namespace anymps::server::http {
namespace {

constexpr timeval kTick{1, 0}, kDrainTick{0, 20'000};

int open_spare() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

// Sends a few bytes and closes, so that the client has a chance to read them: not with its request
// unread, which would take them back.
void excuse_and_close(int fd, const std::string& excuse) {
  if (!excuse.empty() && send(fd, excuse.data(), excuse.size(), MSG_NOSIGNAL) > 0) {
    shutdown(fd, SHUT_WR);
    char nothing[4096];
    for (int i = 0; i < 16 && recv(fd, nothing, sizeof nothing, 0) > 0; ++i) {
    }
  }
  ::close(fd);
}

}  // namespace

struct Loop::Listener {
  Loop* loop = nullptr;
  int fd = -1;
  int spare = open_spare();  // given up to take a connection when there is no other descriptor
  event* ready = nullptr;
  bool paused = false;  // no file descriptors are left: tried again at the next tick
  std::function<void(int)> accepted;
  std::string excuse;

  ~Listener() {
    if (ready) event_free(ready);
    ::close(fd);
    if (spare >= 0) ::close(spare);
  }

  // Takes the next connection with the spare descriptor and ends it. Left alone it would wait in
  // the queue, and its client with it.
  bool turn_away() {
    if (spare < 0) return false;
    ::close(spare);
    const int connection = accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection >= 0) excuse_and_close(connection, excuse);
    spare = open_spare();
    return connection >= 0;
  }
};

Loop::Loop() {
  event_config* config = event_config_new();
  event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);  // used by its own thread alone
  event_config_require_features(config, EV_FEATURE_ET);
  base_ = event_base_new_with_config(config);
  event_config_free(config);
  if (!base_) throw Error(Code::kInternal, "cannot make an event loop");
  letters_event_ = event_new(
      base_, mailbox_->fd(), EV_READ | EV_PERSIST | EV_ET,
      [](evutil_socket_t, short, void* self) { static_cast<Loop*>(self)->receive(); }, this);
  tick_event_ = event_new(
      base_, -1, EV_PERSIST,
      [](evutil_socket_t, short, void* self) { static_cast<Loop*>(self)->tick(); }, this);
  drain_event_ = event_new(
      base_, -1, EV_PERSIST,
      [](evutil_socket_t, short, void* self) { static_cast<Loop*>(self)->drain_some(); }, this);
  event_add(letters_event_, nullptr);
  event_add(tick_event_, &kTick);
}

Loop::~Loop() {
  if (thread_.joinable()) finish(0);
  mailbox_->close();
  std::exchange(connections_, {}).clear();  // they look for themselves in the map when they close
  graveyard_.clear();
  listeners_.clear();
  event_free(letters_event_);
  event_free(tick_event_);
  event_free(drain_event_);
  event_base_free(base_);
}

void Loop::start() {
  thread_ = std::thread([this] { event_base_dispatch(base_); });
}

uint64_t Loop::now_ms() const { return now_ns() / 1'000'000; }

void Loop::adopt(int fd, std::shared_ptr<const Service> service, TlsContext tls) {
  struct Arrival {  // a task that is never run closes the socket
    int fd;
    std::shared_ptr<const Service> service;
    TlsContext tls;
    Gate::Verdict verdict = Gate::Verdict::kWelcome;
    Gate::Place place = {};
    ~Arrival() {
      if (fd >= 0) ::close(fd);
    }
  };
  const std::shared_ptr<Arrival> arrival(new Arrival{fd, std::move(service), std::move(tls)});
  if (Gate* gate = arrival->service->gate.get())
    std::tie(arrival->verdict, arrival->place) = gate->enter(fd);
  if (arrival->verdict == Gate::Verdict::kDrop) return;
  mailbox_->post([this, arrival] {
    TlsSession session;
    if (arrival->tls && !(session = accept_tls(arrival->tls, arrival->fd))) return;
    auto connection =
        std::make_unique<Connection>(*this, std::exchange(arrival->fd, -1), arrival->service,
                                     std::move(session), std::move(arrival->place));
    Connection* key = connection.get();
    connections_.emplace(key, std::move(connection));
    count_.store(connections_.size(), std::memory_order_relaxed);
    if (arrival->verdict == Gate::Verdict::kWelcome)
      key->start();
    else
      key->turn_away();
  });
}

void Loop::listen(int fd, std::function<void(int)> accepted, std::string excuse) {
  mailbox_->post([this, fd, accepted = std::move(accepted), excuse = std::move(excuse)] {
    auto listener = std::make_unique<Listener>();
    listener->loop = this;
    listener->fd = fd;
    listener->accepted = accepted;
    listener->excuse = excuse;
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

// Whether there may be more.
bool Loop::accept_some(Listener& listener) {
  for (int i = 0; i < 64; ++i) {
    const int fd = accept4(listener.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == ECONNABORTED || errno == EINTR) continue;
      if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return false;
      if (listener.turn_away()) continue;
      event_del(listener.ready);
      listener.paused = true;
      return false;
    }
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    listener.accepted(fd);
  }
  return true;
}

void Loop::drain() {
  mailbox_->post([this] {
    if (draining_) return;
    draining_ = true;
    drain_began_ms_ = now_ms();
    for (const std::unique_ptr<Listener>& listener : listeners_)
      while (accept_some(*listener)) {
      }
    listeners_.clear();
    event_add(drain_event_, &kDrainTick);
    leave_if_done();
  });
}

void Loop::drain_some() {
  const uint64_t now = now_ms();
  std::vector<Connection*> all;
  for (const auto& [key, connection] : connections_) all.push_back(key);
  bool reading = false;
  for (Connection* connection : all)
    reading = connection->still_reading(now, drain_began_ms_) || reading;
  reading_.store(reading, std::memory_order_relaxed);
  graveyard_.clear();
  leave_if_done();
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
  for (Connection* connection : late) connection->expire();
  for (const std::unique_ptr<Listener>& listener : listeners_) {
    if (!listener->paused) continue;
    listener->paused = false;
    if (listener->spare < 0) listener->spare = open_spare();
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

}  // namespace anymps::server::http
