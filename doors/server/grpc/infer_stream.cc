// SPDX-License-Identifier: Apache-2.0
// ModelStreamInfer: requests of one stream, answered in the order in which they came.
#include <deque>

#include "server/grpc/calls.h"
#include "server/grpc/infer_message.h"
#include "server/memory/shared_memory.h"

namespace anymps::server {
namespace {

// A stream with this many requests unanswered is not read from until some are.
constexpr size_t kMostPending = 256;

class InferStream : public LongCall, public std::enable_shared_from_this<InferStream> {
 public:
  static void await(Calls& calls, grpc::ServerCompletionQueue* queue) {
    auto stream = std::make_shared<InferStream>(calls, queue);
    stream->self_ = stream;
    stream->context_.AsyncNotifyWhenDone(&stream->done_);
    calls.service.RequestModelStreamInfer(&stream->context_, &stream->stream_, queue, queue,
                                          &stream->arrived_);
  }
  InferStream(Calls& calls, grpc::ServerCompletionQueue* queue) : calls_(calls), queue_(queue) {
    calls_.began();
  }
  ~InferStream() override { calls_.ended(); }

  void drain() override {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    go_on();
  }

 private:
  // A request that waits for its turn to be answered.
  struct Slot {
    std::shared_ptr<InferMessage> message;
    InferTargets targets;
    bool ready = false;
    Wire wire;
  };

  void arrived(bool ok) {
    if (!ok) {  // the server ends; no other event comes
      self_.reset();
      return;
    }
    await_stream(calls_, queue_);
    calls_.add(shared_from_this());
    if (calls_.compression != GRPC_COMPRESS_LEVEL_NONE)
      context_.set_compression_level(calls_.compression);
    const std::lock_guard lock(mutex_);
    events_ = 1;  // done
    end_ = calls_.check_room();
    closed_ = !end_.ok();
    draining_ = draining_ || calls_.draining();
    go_on();
  }

  void read(bool ok) {
    std::shared_ptr<Slot> slot;
    grpc::Status parsed;
    if (ok) {
      slot = std::make_shared<Slot>();
      slot->message = std::make_shared<InferMessage>();
      parsed = slot->message->parse(bytes_, calls_.server.options().max_request_bytes,
                                    &calls_.server.held_bytes());
      if (!parsed.ok()) slot.reset();
    }
    {
      const std::lock_guard lock(mutex_);
      reading_ = false;
      if (slot) {
        pending_.push_back(slot);
        if (cancelled_) slot->message->cancelled = true;
      } else {
        closed_ = true;
        if (ok) end_ = parsed;
      }
    }
    if (slot) infer(slot);
    const std::lock_guard lock(mutex_);
    event_ended();
  }

  void infer(const std::shared_ptr<Slot>& slot) {
    RequestPtr request;
    try {
      request = InferMessage::decode(slot->message, calls_.server.shared_memory());
    } catch (const Error& error) {
      return answer(*slot, {slot->message->model(), {}, slot->message->id(), {}, {}, error, true});
    }
    slot->targets = targets_of(*request);
    request->respond = [self = shared_from_this(), slot](Response&& response) {
      self->answer(*slot, std::move(response));
    };
    calls_.server.infer(std::move(request));
  }

  // On any thread.
  void answer(Slot& slot, Response&& response) {
    Wire wire = encode_streamed(std::move(response), slot.targets);
    const std::lock_guard lock(mutex_);
    slot.wire = std::move(wire);
    slot.ready = true;
    go_on();
  }

  void written(bool ok) {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok) closed_ = broken_ = true;
    event_ended();
  }

  void done() {
    const std::lock_guard lock(mutex_);
    if (context_.IsCancelled()) {
      closed_ = broken_ = cancelled_ = true;
      for (const auto& slot : pending_) slot->message->cancelled = true;
    }
    event_ended();
  }

  void finished() {
    const std::lock_guard lock(mutex_);
    event_ended();
  }

  // Begins what can begin: the next read, the next write, the end. With the lock held.
  void go_on() {
    if (over_ || events_ == 0) return;
    if (!broken_ && !writing_ && !pending_.empty() && pending_.front()->ready) {
      writing_ = true;
      ++events_;
      grpc::ByteBuffer bytes = to_bytes(std::move(pending_.front()->wire));
      pending_.pop_front();
      stream_.Write(bytes, &written_);
    }
    if (!closed_ && !draining_ && !reading_ && pending_.size() < kMostPending) {
      reading_ = true;
      ++events_;
      stream_.Read(&bytes_, &read_);
    }
    if (broken_) {  // nobody listens: what is still computed is dropped when it comes
      over_ = true;
      if (!cancelled_) ++events_, stream_.Finish(grpc::Status::CANCELLED, &finished_);
    } else if ((closed_ || draining_) && !writing_ && pending_.empty()) {
      over_ = true;
      ++events_;
      stream_.Finish(
          closed_ ? end_
                  : grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is shutting down"),
          &finished_);
    }
  }

  // With the lock held, on the thread of the queue.
  void event_ended() {
    go_on();
    if (--events_ > 0) return;
    calls_.remove(this);
    self_.reset();  // event() holds it still
  }

 public:
  // Events go through this: the stream may go when the lock is free again.
  template <void (InferStream::*handle)(bool)>
  void event(bool ok) {
    const std::shared_ptr<InferStream> alive = shared_from_this();
    (this->*handle)(ok);
  }

 private:
  void on_done(bool) { done(); }
  void on_finished(bool) { finished(); }

  Calls& calls_;
  grpc::ServerCompletionQueue* queue_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_{&context_};
  grpc::ByteBuffer bytes_;
  std::shared_ptr<InferStream> self_;  // until the last event

  std::mutex mutex_;
  std::deque<std::shared_ptr<Slot>> pending_;
  int events_ = 0;  // that are still to come
  bool reading_ = false, writing_ = false;
  bool closed_ = false;     // no more requests
  bool broken_ = false;     // no more responses
  bool cancelled_ = false;  // by the client
  bool draining_ = false;   // by the server
  bool over_ = false;       // the status is sent
  grpc::Status end_;

  Event arrived_{[this](bool ok) { event<&InferStream::arrived>(ok); }};
  Event read_{[this](bool ok) { event<&InferStream::read>(ok); }};
  Event written_{[this](bool ok) { event<&InferStream::written>(ok); }};
  Event done_{[this](bool ok) { event<&InferStream::on_done>(ok); }};
  Event finished_{[this](bool ok) { event<&InferStream::on_finished>(ok); }};
};

}  // namespace

void await_stream(Calls& calls, grpc::ServerCompletionQueue* queue) {
  InferStream::await(calls, queue);
}

}  // namespace anymps::server
