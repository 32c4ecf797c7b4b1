// SPDX-License-Identifier: Apache-2.0
#include "server/grpc/health.h"

#include <grpcpp/alarm.h>

#include <chrono>
#include <optional>

namespace anymps::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr std::chrono::seconds kPeriod{1};

HealthCheckResponse health(const Server& server) {
  HealthCheckResponse response;
  response.set_status(server.ready() ? HealthCheckResponse::SERVING
                                     : HealthCheckResponse::NOT_SERVING);
  return response;
}

// All events come on the thread of the queue: a write or an alarm, then the next, and once the end.
class Watch : public std::enable_shared_from_this<Watch> {
 public:
  Watch(Calls& calls, HealthService& service, grpc::ServerCompletionQueue* queue)
      : calls_(calls), service_(service), queue_(queue) {
    calls_.began();
  }
  ~Watch() { calls_.ended(); }

  void await() {
    self_ = shared_from_this();
    context_.AsyncNotifyWhenDone(&done_);
    service_.RequestWatch(&context_, &request_, &writer_, queue_, queue_, &arrived_);
  }

 private:
  void arrived(bool ok) {
    if (!ok) {
      self_.reset();
      return;
    }
    await_watch(calls_, service_, queue_);
    if (const grpc::Status room = calls_.check_room(); !room.ok())
      return writer_.Finish(room, &finished_);
    look();
  }
  // Writes if the answer is another one, else looks again later.
  void look() {
    if (gone_) return release();
    if (calls_.draining())
      return writer_.Finish({grpc::StatusCode::UNAVAILABLE, "the server is shutting down"},
                            &finished_);
    const HealthCheckResponse now = health(calls_.server);
    if (last_ != now.status()) {
      last_ = now.status();
      writer_.Write(now, &written_);
    } else {
      alarm_.Set(queue_, std::chrono::system_clock::now() + kPeriod, &rang_);
    }
  }
  void done() {
    gone_ = true;
    alarm_.Cancel();
    release();
  }
  // After the last of two: the client has gone, and no write or alarm is under way.
  void release() {
    if (--events_ == 0) self_.reset();
  }

  Calls& calls_;
  HealthService& service_;
  grpc::ServerCompletionQueue* queue_;
  grpc::ServerContext context_;
  HealthCheckRequest request_;
  grpc::ServerAsyncWriter<HealthCheckResponse> writer_{&context_};
  grpc::Alarm alarm_;
  std::shared_ptr<Watch> self_;  // until the last event
  std::optional<HealthCheckResponse::ServingStatus> last_;
  bool gone_ = false;
  int events_ = 2;

  Event on(void (Watch::*handle)(bool)) {
    return Event([this, handle](bool ok) {
      const std::shared_ptr<Watch> alive = shared_from_this();
      (this->*handle)(ok);
    });
  }
  void on_written(bool ok) { ok ? look() : release(); }
  void on_rang(bool) { look(); }
  void on_end(bool) { release(); }
  void on_done(bool) { done(); }
  Event arrived_ = on(&Watch::arrived), written_ = on(&Watch::on_written),
        rang_ = on(&Watch::on_rang), finished_ = on(&Watch::on_end), done_ = on(&Watch::on_done);
};

}  // namespace

grpc::Status HealthService::Check(grpc::ServerContext*, const HealthCheckRequest*,
                                  HealthCheckResponse* response) {
  *response = health(server_);
  return grpc::Status::OK;
}

void await_watch(Calls& calls, HealthService& service, grpc::ServerCompletionQueue* queue) {
  std::make_shared<Watch>(calls, service, queue)->await();
}

}  // namespace anymps::server
