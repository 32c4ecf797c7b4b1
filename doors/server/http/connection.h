// SPDX-License-Identifier: Apache-2.0
// A client's connection: reads requests one after the other (further ones wait in the input
// buffer), hands each to the service, and writes the reply from where its parts lie. A client that
// goes away cancels its request.
#pragma once

#include <event2/event.h>

#include <memory>
#include <string>
#include <vector>

#include "server/http/exchange.h"
#include "server/http/socket.h"

namespace server::http {

class Loop;

class Connection {
 public:
  Connection(Loop& loop, int fd, std::shared_ptr<const Service> service, TlsSession tls);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();
  void answer();  // the exchange under way is ready
  void close();   // at once
  void close_if_idle();
  bool is_late(uint64_t now_ms) const { return deadline_ms_ != 0 && now_ms >= deadline_ms_; }

 private:
  enum class State {
    kHead,      // waits for a head or reads it
    kBody,      // reads a body whose length is known
    kChunks,    // reads a chunked body
    kBusy,      // the service has the request, or its reply is being written
    kLingering  // the last reply is out; what the client still sends is thrown away
  };
  enum class Progress {
    kSome,
    kNone,
    kEnd
  };  // of reading or writing; kEnd: the other side is gone

  void on_event(short what);
  Progress read_some();
  ssize_t transmit();
  void process();
  bool begin_request();
  bool take_body();
  void dispatch();
  void abandon();
  void reject(int status, std::string_view what);
  void send(Reply reply);
  void flush();
  void written();
  void watch_writing(bool on);
  void pause_reading(bool on);
  void expect_within(unsigned seconds);

  Loop& loop_;
  Socket socket_;
  std::shared_ptr<const Service> service_;
  event* read_event_ = nullptr;
  event* write_event_ = nullptr;
  State state_ = State::kHead;
  std::string in_;  // received, not yet understood: from in_at_
  size_t in_at_ = 0;
  Head head_;
  Buffer body_;
  size_t body_filled_ = 0;
  ChunkReader chunks_;
  std::string chunked_body_;
  ExchangePtr exchange_;
  std::string out_head_;
  std::vector<Buffer> out_;
  size_t out_at_ = 0, out_offset_ = 0;  // piece and position in it that come next
  uint64_t deadline_ms_ = 0;            // 0: none
  bool processing_ = false, sending_ = false, last_ = false, ended_ = false;
  bool linger_ = false, reading_paused_ = false, writing_watched_ = false;
};

}  // namespace server::http
