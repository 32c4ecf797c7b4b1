// SPDX-License-Identifier: Apache-2.0
// ModelInfer: one request, one response.
#include "server/grpc/calls.h"
#include "server/grpc/infer_message.h"
#include "server/memory/shared_memory.h"

namespace anymps::server {
namespace {

class InferCall {
 public:
  InferCall(Calls& calls, grpc::ServerCompletionQueue* queue) : calls_(calls), queue_(queue) {
    calls_.began();
    context_.AsyncNotifyWhenDone(&done_);
    calls_.service.RequestModelInfer(&context_, &bytes_, &writer_, queue_, queue_, &arrived_);
  }
  ~InferCall() { calls_.ended(); }
  InferCall(const InferCall&) = delete;
  InferCall& operator=(const InferCall&) = delete;

 private:
  void arrived(bool ok) {
    if (!ok) {  // the server ends; no other event comes
      delete this;
      return;
    }
    await_infer(calls_, queue_);
    if (calls_.compression != GRPC_COMPRESS_LEVEL_NONE)
      context_.set_compression_level(calls_.compression);
    if (const grpc::Status room = calls_.check_room(); !room.ok()) return refuse(room);
    const Options& options = calls_.server.options();
    message_ = std::make_shared<InferMessage>();
    const grpc::Status parsed =
        message_->parse(bytes_, options.max_request_bytes, &calls_.server.held_bytes());
    if (!parsed.ok()) return refuse(parsed);
    RequestPtr request;
    try {
      request = message_->decode(message_, calls_.server.shared_memory());
    } catch (const Error& error) {
      return refuse(to_status(error));
    }
    targets_ = targets_of(*request);
    request->respond = [this](Response&& response) { answer(std::move(response)); };
    calls_.server.infer(std::move(request));
  }

  // On any thread, once.
  void answer(Response&& response) {
    if (response.error) return refuse(to_status(*response.error));
    writer_.Finish(to_bytes(encode_infer(std::move(response), targets_, false)), grpc::Status::OK,
                   &finished_);
  }
  void refuse(const grpc::Status& status) { writer_.FinishWithError(status, &finished_); }

  void done() {
    if (message_ && context_.IsCancelled()) message_->cancelled = true;
    release();
  }
  // Both events come on the thread of the queue.
  void release() {
    if (--events_ == 0) delete this;
  }

  Calls& calls_;
  grpc::ServerCompletionQueue* queue_;
  grpc::ServerContext context_;
  grpc::ByteBuffer bytes_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&context_};
  std::shared_ptr<InferMessage> message_;
  InferTargets targets_;
  int events_ = 2;  // done and finished
  Event arrived_{[this](bool ok) { arrived(ok); }};
  Event done_{[this](bool) { done(); }};
  Event finished_{[this](bool) { release(); }};
};

}  // namespace

void await_infer(Calls& calls, grpc::ServerCompletionQueue* queue) { new InferCall(calls, queue); }

}  // namespace anymps::server
