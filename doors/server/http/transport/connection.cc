// SPDX-License-Identifier: Apache-2.0
#include "server/http/transport/connection.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "server/core/clock.h"
#include "server/http/transport/body_memory.h"
#include "server/http/transport/loop.h"
#include "server/memory/buffer_pool.h"

namespace anymps::server::http {
namespace {

constexpr size_t kReadBytes = 16 * 1024;
constexpr size_t kMaxAhead = 64 * 1024;            // of requests that wait for their turn
constexpr size_t kChargedAhead = size_t{1} << 20;  // of a body
constexpr int kRounds = 16;                        // of reading before others have their turn
constexpr uint64_t kLingerMs = 5000;
// How long a client between two requests has to send the next one when the server ends.
constexpr uint64_t kLastRequestMs = 500;

BadMessage no_room() { return {503, "the server holds as many requests as it may: try again"}; }

}  // namespace

Connection::Connection(Loop& loop, int fd, std::shared_ptr<const Service> service, TlsSession tls,
                       Gate::Place place)
    : loop_(loop),
      socket_(fd, std::move(tls)),
      service_(std::move(service)),
      place_(std::move(place)),
      out_charge_(service_->held) {
  const auto callback = [](evutil_socket_t, short what, void* self) {
    static_cast<Connection*>(self)->on_event(what);
  };
  read_event_ = event_new(loop.base(), fd, EV_READ | EV_PERSIST, callback, this);
  write_event_ = event_new(loop.base(), fd, EV_WRITE | EV_PERSIST, callback, this);
}

Connection::~Connection() { close(); }

void Connection::start() {
  if (!read_event_ || !write_event_) return close();
  event_add(read_event_, nullptr);
  enter(socket_.has_tls() ? Phase::kHead : Phase::kIdle);
}

void Connection::turn_away() try {
  if (!read_event_ || !write_event_ || socket_.has_tls()) return close();
  event_add(read_event_, nullptr);
  reject(503, kFull);
} catch (const std::exception&) {
  close();  // no memory is left
}

void Connection::close() {
  if (!socket_.is_open()) return;
  abandon();
  if (read_event_) event_free(read_event_);
  if (write_event_) event_free(write_event_);
  read_event_ = write_event_ = nullptr;
  socket_.close();
  out_.clear();
  out_charge_.release();
  forget_body();
  loop_.bury(this);
}

void Connection::abandon() {
  if (!exchange_) return;
  exchange_->connection = nullptr;
  exchange_->cancelled.store(true, std::memory_order_relaxed);
  exchange_.reset();
}

void Connection::forget_body() {
  body_ = {};
  body_charge_ = nullptr;
  body_filled_ = body_charged_ = 0;
  chunked_body_ = {};
  chunks_charge_.release();
}

void Connection::enter(Phase phase) {
  if (phase == phase_) return;
  phase_ = phase;
  phase_bytes_ = 0;
  if (phase != Phase::kNone) phase_began_ms_ = loop_.now_ms();
}

bool Connection::is_late(uint64_t now_ms) const {
  const Patience& patience = service_->patience;
  const uint64_t earned = phase_bytes_ * 1000 / std::max<uint64_t>(patience.bytes_per_second, 1);
  switch (phase_) {
    case Phase::kNone:
      return false;
    case Phase::kIdle:
      return now_ms >= phase_began_ms_ + patience.idle;
    case Phase::kHead:
      return now_ms >= phase_began_ms_ + patience.request;
    case Phase::kBody:
      return now_ms >= phase_began_ms_ + patience.request + earned;
    case Phase::kAnswer:
      return now_ms >= phase_began_ms_ + patience.answer + earned;
    case Phase::kLinger:
      return now_ms >= phase_began_ms_ + kLingerMs;
  }
  return false;
}

void Connection::expire() try {
  const bool reading = (phase_ == Phase::kHead && socket_.is_ready()) || phase_ == Phase::kBody;
  if (!reading || sending_) return close();
  reject(408, "the request did not come in time");
} catch (const std::exception&) {
  close();  // no memory is left
}

bool Connection::still_reading(uint64_t now_ms, uint64_t since_ms) {
  const bool waited = now_ms >= std::max(phase_began_ms_, since_ms) + kLastRequestMs;
  if (waited && (phase_ == Phase::kIdle || phase_ == Phase::kLinger) && !socket_.has_input())
    close();
  return socket_.is_open() &&
         (phase_ == Phase::kIdle || phase_ == Phase::kHead || phase_ == Phase::kBody);
}

void Connection::watch_writing(bool on) {
  if (on == writing_watched_) return;
  writing_watched_ = on;
  if (on)
    event_add(write_event_, nullptr);
  else
    event_del(write_event_);
}

void Connection::pause_reading(bool on) {
  if (on == reading_paused_) return;
  reading_paused_ = on;
  if (on)
    event_del(read_event_);
  else
    event_add(read_event_, nullptr);
}

void Connection::on_event(short what) try {
  // TLS may want to write in order to read and the other way round, so both are tried.
  if (sending_ && (socket_.has_tls() || what & EV_WRITE))
    flush();
  else if (what & EV_WRITE)
    watch_writing(false);
  for (int round = 0; socket_.is_open() && !reading_paused_ && !ended_; ++round) {
    if (round == kRounds) {
      // The socket makes another event of what is left in it; what TLS has taken out does not.
      if (socket_.has_tls()) event_active(read_event_, EV_READ, 0);
      return;
    }
    const Progress progress = read_some();
    if (!socket_.is_open()) return;
    if (progress == Progress::kEnd) {
      ended_ = true;
      // What is being computed may still be sent: a client may close only its own half.
      if (state_ != State::kBusy) return close();
      pause_reading(true);
      if (exchange_) exchange_->cancelled.store(true, std::memory_order_relaxed);
      return;
    }
    process();
    if (progress == Progress::kNone) return;
  }
} catch (const std::exception&) {
  close();  // no memory is left
}

Connection::Progress Connection::read_some() {
  ssize_t count = 0, asked = 0;
  if (state_ == State::kBody) {
    if (body_filled_ == body_charged_) {
      const size_t ahead = std::min(body_.bytes - body_filled_, kChargedAhead);
      if (!body_charge_->grow(ahead)) {
        const BadMessage bad = no_room();
        reject(bad.status, bad.what);
        return Progress::kNone;
      }
      body_charged_ += ahead;
    }
    asked = body_charged_ - body_filled_;
    count = socket_.receive(body_.data + body_filled_, asked);
    if (count > 0) {
      body_filled_ += count;
      phase_bytes_ += count;
    }
  } else if (state_ == State::kLingering) {
    std::array<char, kReadBytes> nothing;
    asked = nothing.size();
    count = socket_.receive(nothing.data(), asked);
  } else {
    if (in_at_ == in_.size() || in_at_ > kReadBytes) {
      in_.erase(0, in_at_);
      in_at_ = 0;
    }
    if (state_ == State::kBusy && in_.size() - in_at_ > kMaxAhead) {
      pause_reading(true);
      return Progress::kNone;
    }
    std::array<char, kReadBytes> piece;  // a string would clear what it is to grow by
    asked = piece.size();
    count = socket_.receive(piece.data(), asked);
    if (count > 0) in_.append(piece.data(), count);
  }
  if (socket_.wants_write()) watch_writing(true);
  if (count == Socket::kBroken) {
    close();
    return Progress::kEnd;
  }
  if (count == 0) return Progress::kEnd;
  // Less than was asked for, or all of a body: the socket is empty. TLS may hold more.
  if (count < 0 || (!socket_.has_tls() && (count < asked || state_ == State::kBody)))
    return Progress::kNone;
  return Progress::kSome;
}

void Connection::process() {
  if (processing_) return;
  processing_ = true;
  bool more = true;
  while (more && socket_.is_open()) {
    try {
      switch (state_) {
        case State::kHead:
          more = begin_request();
          break;
        case State::kBody:
        case State::kChunks:
          more = take_body();
          break;
        case State::kBusy:
        case State::kLingering:
          more = false;
          break;
      }
    } catch (const BadMessage& bad) {
      reject(bad.status, bad.what);
    } catch (const std::bad_alloc&) {
      reject(503, "no memory for the request");
    }
  }
  processing_ = false;
}

bool Connection::begin_request() {
  if (in_at_ == in_.size()) {
    if (ended_) {
      close();
      return false;
    }
    if (socket_.is_ready()) enter(Phase::kIdle);
    return false;
  }
  auto parsed = parse_head(std::string_view(in_).substr(in_at_));
  if (!parsed) {
    if (ended_)
      close();
    else
      enter(Phase::kHead);
    return false;
  }
  head_ = std::move(parsed->first);
  in_at_ += parsed->second;
  last_ = !head_.keep_alive;
  if (service_->check) {
    if (std::optional<Reply> refusal = service_->check(head_)) {
      const bool has_body = head_.chunked || head_.content_length > 0;
      last_ = last_ || has_body;
      linger_ = has_body;
      state_ = State::kBusy;
      send(std::move(*refusal));
      return true;
    }
  }
  if (head_.content_length > service_->max_body_bytes)
    throw BadMessage{
        413, "the request is larger than " + std::to_string(service_->max_body_bytes) + " bytes"};
  if (service_->held && !service_->held->has_room(head_.content_length)) throw no_room();
  forget_body();
  if (head_.chunked) {
    chunks_ = ChunkReader();
    chunks_charge_ = HeldBytes::Charge(service_->held);
    state_ = State::kChunks;
  } else {
    if (head_.content_length > 0)
      std::tie(body_, body_charge_) = allocate_body(head_, head_.content_length, service_->held);
    state_ = State::kBody;
  }
  if (head_.expects_continue && in_at_ == in_.size() &&
      (head_.chunked || head_.content_length > 0)) {
    out_head_ = "HTTP/1.1 100 Continue\r\n\r\n";
    sending_ = true;
    flush();
  }
  return true;
}

bool Connection::take_body() {
  const std::string_view waiting = std::string_view(in_).substr(in_at_);
  if (state_ == State::kChunks) {
    enter(Phase::kBody);
    const size_t before = chunked_body_.size();
    in_at_ += chunks_.feed(waiting, chunked_body_, service_->max_body_bytes);
    if (!chunks_charge_.grow(chunked_body_.size() - before)) throw no_room();
    phase_bytes_ = chunked_body_.size();
    if (!chunks_.done()) return false;
    // Copied once, to where its tensors are aligned.
    const size_t bytes = chunked_body_.size();
    std::tie(body_, body_charge_) = allocate_body(head_, bytes, service_->held);
    if (!body_charge_->grow(bytes)) throw no_room();
    if (bytes > 0) std::memcpy(body_.data, chunked_body_.data(), bytes);
    chunked_body_ = {};
    chunks_charge_.release();
  } else {
    const size_t part = std::min(waiting.size(), body_.bytes - body_filled_);
    if (part > 0) {
      const size_t uncharged = part - std::min(part, body_charged_ - body_filled_);
      if (!body_charge_->grow(uncharged)) throw no_room();
      body_charged_ += uncharged;
      std::memcpy(body_.data + body_filled_, waiting.data(), part);
    }
    in_at_ += part;
    body_filled_ += part;
    if (body_filled_ < body_.bytes) {
      enter(Phase::kBody);
      return false;
    }
  }
  dispatch();
  return true;
}

void Connection::dispatch() {
  state_ = State::kBusy;
  enter(Phase::kNone);
  exchange_ = std::make_shared<Exchange>();
  exchange_->mailbox = loop_.mailbox();
  exchange_->connection = this;
  exchange_->head = std::move(head_);
  exchange_->body = std::exchange(body_, {});
  body_charge_ = nullptr;
  exchange_->received_ns = now_ns();
  if (std::optional<Reply> reply = service_->handle(exchange_)) {
    exchange_->reply = std::move(*reply);
    answer();
  }
}

void Connection::answer() try {
  const ExchangePtr exchange = std::exchange(exchange_, nullptr);
  if (!exchange) return;
  exchange->connection = nullptr;
  const bool head_only = exchange->head.method == Method::kHead;
  Reply reply = exchange->finish(*exchange);
  if (service_->dress) service_->dress(exchange->head, reply);
  if (ended_ && exchange->response.error && exchange->response.error->code() == Code::kCancelled)
    return close();
  if (head_only) {
    reply.headers.emplace_back("Allow", "GET, POST");
    reply.body.clear();
  }
  send(std::move(reply));
} catch (const std::exception&) {
  close();  // no memory is left
}

void Connection::reject(int status, std::string_view what) {
  abandon();
  forget_body();
  last_ = linger_ = true;
  state_ = State::kBusy;
  in_at_ = in_.size();
  Reply reply = error_reply(status, what);
  if (status == 503) reply.headers.emplace_back("Retry-After", "1");
  send(std::move(reply));
}

void Connection::send(Reply reply) {
  if (loop_.draining() || ended_) last_ = true;
  out_head_ = head_of(reply, !last_);
  out_ = std::move(reply.body);
  if (reply.chunked) {
    char size[24];
    size_t bytes = 0;
    for (const Buffer& piece : out_) bytes += piece.bytes;
    if (bytes > 0) {
      out_head_.append(size, std::to_chars(size, size + sizeof size, bytes, 16).ptr).append("\r\n");
      out_.push_back(own("\r\n"));
    }
    out_.push_back(own("0\r\n\r\n"));
  }
  out_at_ = out_offset_ = 0;
  sending_ = true;
  flush();
}

ssize_t Connection::transmit() {
  std::array<iovec, 32> pieces;
  size_t count = 0;
  if (!out_head_.empty()) pieces[count++] = {out_head_.data(), out_head_.size()};
  for (size_t i = out_at_; i < out_.size() && count < pieces.size(); ++i) {
    const size_t from = i == out_at_ ? out_offset_ : 0;
    pieces[count++] = {out_[i].data + from, out_[i].bytes - from};
  }
  return socket_.transmit({pieces.data(), count});
}

size_t Connection::unsent() const {
  size_t bytes = out_head_.size();
  for (size_t i = out_at_; i < out_.size(); ++i) bytes += out_[i].bytes;
  return bytes - out_offset_;
}

void Connection::flush() {
  while (!out_head_.empty() || out_at_ < out_.size()) {
    const ssize_t sent = transmit();
    if (sent == Socket::kBroken) return close();
    if (sent == Socket::kAgain) {
      if (phase_ != Phase::kAnswer && !out_charge_.grow(unsent())) return close();
      enter(Phase::kAnswer);
      return watch_writing(true);
    }
    size_t left = sent;
    if (phase_ == Phase::kAnswer) phase_bytes_ += left;
    const size_t of_head = std::min(left, out_head_.size());
    out_head_.erase(0, of_head);
    left -= of_head;
    while (out_at_ < out_.size() && (left > 0 || out_[out_at_].bytes == out_offset_)) {
      const size_t part = std::min(left, out_[out_at_].bytes - out_offset_);
      left -= part;
      out_offset_ += part;
      if (out_offset_ < out_[out_at_].bytes) break;
      out_[out_at_++] = {};  // its memory is free again
      out_offset_ = 0;
    }
  }
  written();
}

void Connection::written() {
  sending_ = false;
  out_.clear();
  out_at_ = out_offset_ = 0;
  out_charge_.release();
  watch_writing(false);
  if (state_ != State::kBusy) return;  // it was "100 Continue"
  if (last_) {
    // Closing with unread input would make the reply vanish at the client. While the server ends,
    // clients that did not expect this to be the last reply may send on.
    const bool more = linger_ || in_at_ < in_.size() || loop_.draining();
    if (!more || ended_) return close();
    socket_.shutdown_writing();
    state_ = State::kLingering;
    pause_reading(false);
    enter(Phase::kLinger);
    return;
  }
  state_ = State::kHead;
  if (!ended_) pause_reading(false);
  process();
}

}  // namespace anymps::server::http
