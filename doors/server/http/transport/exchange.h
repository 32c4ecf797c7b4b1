// SPDX-License-Identifier: Apache-2.0
// A request and its answer, and the way by which answers that were made on other threads reach the
// loop of their connection.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "server/http/infer_codec.h"
#include "server/http/transport/compression.h"
#include "server/http/transport/gate.h"
#include "server/http/transport/message.h"
#include "server/memory/held_bytes.h"

namespace anymps::server::http {

class Connection;
struct Exchange;
using ExchangePtr = std::shared_ptr<Exchange>;

// Letters from any thread to the thread of a loop. It outlives the loop as long as someone may
// still write; letters to a closed one are dropped.
class Mailbox {
 public:
  Mailbox();
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  struct Letter {
    ExchangePtr exchange;        // is ready to be sent
    std::function<void()> task;  // or: something to do on the loop's thread
  };
  // Written to when letters come, never read: to be watched for edges.
  int fd() const { return fd_; }
  void post(ExchangePtr exchange) { deliver({std::move(exchange), nullptr}); }
  void post(std::function<void()> task) { deliver({nullptr, std::move(task)}); }
  void take(std::vector<Letter>& letters);
  void close();

 private:
  void deliver(Letter letter);
  int fd_;
  std::mutex mutex_;
  std::vector<Letter> letters_;
  bool closed_ = false;
};

struct Exchange {
  std::shared_ptr<Mailbox> mailbox;
  Connection* connection = nullptr;  // only for the loop's thread; nullptr: the client has gone
  std::atomic<bool> cancelled{false};
  Head head;
  Buffer body;
  uint64_t received_ns = 0;

  // Makes the reply, on the loop's thread, of what was stored here before the exchange was posted.
  Reply (*finish)(Exchange&) = [](Exchange& self) { return std::move(self.reply); };
  Reply reply;
  Response response;
  bool refused = false;  // the response came at once: the request never began
  ReplyForm form;
  Encoding encoding = Encoding::kIdentity;
};

// How long a client may take before its connection is ended; milliseconds.
struct Patience {
  uint64_t idle = 300'000;    // between requests
  uint64_t request = 30'000;  // for a head, all of it; for a body, with more time as it comes
  uint64_t answer = 60'000;   // to take the answer, with more time as it goes
  // What bodies and answers must keep up on average to be given more time: a client that sends a
  // byte now and then is ended, one that is slow but goes on is not.
  uint64_t bytes_per_second = 4096;
};

// Who answers the requests of a port.
struct Service {
  // Before the body is read: a reply instead of the request, or nullopt.
  std::function<std::optional<Reply>(const Head&)> check;
  // On the loop's thread. The exchange is posted to its mailbox when it is ready, from any thread;
  // or a reply is returned at once.
  std::function<std::optional<Reply>(const ExchangePtr&)> handle;
  uint64_t max_body_bytes = 0;
  // If set: adds to the headers of a reply what its request asks for.
  std::function<void(const Head&, Reply&)> dress;
  HeldBytes* held = nullptr;   // what bodies are charged to; nullptr: they are not counted
  std::shared_ptr<Gate> gate;  // nullptr: everybody may connect
  Patience patience;
};

}  // namespace anymps::server::http
