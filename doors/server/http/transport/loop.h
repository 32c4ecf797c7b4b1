// SPDX-License-Identifier: Apache-2.0
// An event loop with its thread and its connections.
//
// libevent tells when sockets are ready; reading, writing and the protocol are our own. evhttp and
// bufferevent read 4 KB per system call and leave a body in that many pieces; here a body is
// received straight into one block, aligned so that its tensors can be used in place.
#pragma once

#include <event2/event.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "server/http/transport/exchange.h"
#include "server/http/transport/tls.h"

namespace anymps::server::http {

class Loop {
 public:
  Loop();
  ~Loop();  // after `finish`
  void start();

  // From any thread.
  void adopt(int fd, std::shared_ptr<const Service> service, TlsContext tls);
  // Calls `accepted` on the loop's thread for each connection of a listening socket, which the loop
  // owns from now on. `excuse` is what a client is sent when there is no file descriptor to serve
  // it with.
  void listen(int fd, std::function<void(int)> accepted, std::string excuse = "");
  // Takes what has connected, then closes the listening sockets. Connections close after their next
  // reply, or when no request has come for a moment.
  void drain();
  // While it drains: whether a request may still come, or is coming.
  bool reading() const { return reading_.load(std::memory_order_relaxed); }
  // Ends the thread: when no connection is left, or at the latest after `patience_ms`.
  void finish(unsigned patience_ms);
  size_t connections() const { return count_.load(std::memory_order_relaxed); }

  // For connections, on the loop's thread.
  event_base* base() { return base_; }
  const std::shared_ptr<Mailbox>& mailbox() { return mailbox_; }
  bool draining() const { return draining_; }
  uint64_t now_ms() const;
  void bury(Connection* connection);

 private:
  struct Listener;
  void receive();
  void tick();
  void drain_some();
  bool accept_some(Listener& listener);
  void leave_if_done();

  event_base* base_ = nullptr;
  event* letters_event_ = nullptr;
  event* tick_event_ = nullptr;
  event* drain_event_ = nullptr;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::vector<Mailbox::Letter> letters_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Connection>> graveyard_;
  std::atomic<size_t> count_{0};
  std::atomic<bool> reading_{true};
  bool draining_ = false, finishing_ = false;
  uint64_t drain_began_ms_ = 0, finish_at_ms_ = 0;
  std::thread thread_;
};

}  // namespace anymps::server::http
