// SPDX-License-Identifier: Apache-2.0
// A client's connection: reads requests one after the other (further ones wait in the input
// buffer), hands each to the service, and writes the reply from where its parts lie. A client that
// goes away cancels its request; one that dawdles is cut off (see Patience).
#pragma once

#include <event2/event.h>

#include <memory>
#include <string>
#include <vector>

#include "server/http/transport/exchange.h"
#include "server/http/transport/socket.h"

namespace anymps::server::http {

class Loop;

class Connection {
 public:
  Connection(Loop& loop, int fd, std::shared_ptr<const Service> service, TlsSession tls,
             Gate::Place place);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();
  void turn_away();  // instead of `start`: there is no room for it
  void answer();     // the exchange under way is ready
  void close();      // at once
  bool is_late(uint64_t now_ms) const;
  void expire();  // it is late
  // For a loop that drains since then: ends it if no request has come for a moment. Whether one may
  // still come, or is coming.
  bool still_reading(uint64_t now_ms, uint64_t since_ms);

 private:
  enum class State {
    kHead,      // waits for a head or reads it
    kBody,      // reads a body whose length is known
    kChunks,    // reads a chunked body
    kBusy,      // the service has the request, or its reply is being written
    kLingering  // the last reply is out; what the client still sends is thrown away
  };
  // What the client is waited for.
  enum class Phase {
    kNone,    // nothing: it is the server's turn
    kIdle,    // a request
    kHead,    // the rest of a head, or of the TLS handshake
    kBody,    // the rest of a body
    kAnswer,  // that it takes its answer
    kLinger   // that it closes
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
  size_t unsent() const;
  void flush();
  void written();
  void watch_writing(bool on);
  void pause_reading(bool on);
  void enter(Phase phase);
  void forget_body();

  Loop& loop_;
  Socket socket_;
  std::shared_ptr<const Service> service_;
  Gate::Place place_;
  event* read_event_ = nullptr;
  event* write_event_ = nullptr;
  State state_ = State::kHead;
  std::string in_;  // received, not yet understood: from in_at_
  size_t in_at_ = 0;
  Head head_;
  Buffer body_;
  HeldBytes::Charge* body_charge_ = nullptr;  // of body_, which owns it
  size_t body_filled_ = 0, body_charged_ = 0;
  ChunkReader chunks_;
  std::string chunked_body_;
  HeldBytes::Charge chunks_charge_;
  ExchangePtr exchange_;
  std::string out_head_;
  std::vector<Buffer> out_;
  size_t out_at_ = 0, out_offset_ = 0;  // piece and position in it that come next
  HeldBytes::Charge out_charge_;        // of what the client does not take at once
  Phase phase_ = Phase::kNone;
  uint64_t phase_began_ms_ = 0, phase_bytes_ = 0;  // since when, and what has gone through in it
  bool processing_ = false, sending_ = false, last_ = false, ended_ = false;
  bool linger_ = false, reading_paused_ = false, writing_watched_ = false;
};

}  // namespace anymps::server::http
