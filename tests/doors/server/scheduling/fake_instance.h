// SPDX-License-Identifier: Apache-2.0
// What the tests of schedulers share: requests, a place that collects their answers, and an
// instance that runs when the test says so.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "server/observation/statistics.h"
#include "server/scheduling/rate_limiter.h"
#include "server/scheduling/scheduler.h"

namespace anymps::server::test {

inline inference::ModelConfig config(const std::string& text) {
  inference::ModelConfig result;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &result)) << text;
  if (result.name().empty()) result.set_name("m");
  return result;
}

inline Buffer bytes_of(const void* data, size_t bytes) {
  std::shared_ptr<std::byte[]> block(new std::byte[bytes ? bytes : 1]);
  if (bytes) std::memcpy(block.get(), data, bytes);
  return {block, block.get(), bytes};
}

inline InputTensor floats(std::string name, std::vector<int64_t> shape, float value = 0) {
  size_t count = 1;
  for (int64_t extent : shape) count *= static_cast<size_t>(extent);
  const std::vector<float> data(count, value);
  return {std::move(name), AMPS_F32, std::move(shape), {bytes_of(data.data(), 4 * count)}};
}

// Collects answers by the id of their request; wait() blocks until so many are there.
class Answers {
 public:
  void add(Response&& response) {
    std::lock_guard lock(mutex_);
    order_.push_back(response.id);
    ++counts_[response.id];
    responses_[response.id] = std::move(response);
    changed_.notify_all();
  }
  void wait(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return order_.size() >= count; });
  }
  void wait_for(const std::string& id) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return counts_.contains(id); });
  }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return order_.size();
  }
  std::vector<std::string> order() const {
    std::lock_guard lock(mutex_);
    return order_;
  }
  bool each_once() const {
    std::lock_guard lock(mutex_);
    for (const auto& [id, count] : counts_)
      if (count != 1) return false;
    return true;
  }
  const Response& operator[](const std::string& id) {
    wait_for(id);
    std::lock_guard lock(mutex_);
    return responses_[id];
  }
  std::string error(const std::string& id) {
    const Response& response = (*this)[id];
    return response.error ? response.error->what() : "";
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> order_;
  std::map<std::string, int> counts_;
  std::map<std::string, Response> responses_;
};

inline RequestPtr request(Answers& answers, std::string id, std::vector<InputTensor> inputs) {
  auto result = std::make_unique<Request>();
  result->model = "m";
  result->id = std::move(id);
  result->inputs = std::move(inputs);
  result->respond = [&answers](Response&& response) { answers.add(std::move(response)); };
  return result;
}

inline RequestPtr request(Answers& answers, std::string id, int64_t rows = 1) {
  return request(answers, std::move(id), {floats("x", {rows, 2})});
}

// Opens for so many as the test lets through.
class Gate {
 public:
  void open(size_t count = 1) {
    std::lock_guard lock(mutex_);
    allowed_ += count;
    changed_.notify_all();
  }
  void open_for_good() {
    std::lock_guard lock(mutex_);
    always_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return always_ || allowed_ > 0; });
    if (allowed_ > 0) --allowed_;
  }
  void wait_arrived(size_t count) {  // in all, also those that went on
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ >= count; });
  }
  size_t arrived() const {
    std::lock_guard lock(mutex_);
    return arrived_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  size_t allowed_ = 0, arrived_ = 0;
  bool always_ = false;
};

using Batches = std::vector<std::vector<std::string>>;  // the ids of each batch

// What an instance ran.
class Log {
 public:
  void add(std::vector<std::string> batch) {
    std::lock_guard lock(mutex_);
    batches_.push_back(std::move(batch));
  }
  Batches batches() const {
    std::lock_guard lock(mutex_);
    return batches_;
  }

 private:
  mutable std::mutex mutex_;
  Batches batches_;
};

class FakeInstance : public Instance {
 public:
  using Run = std::function<Response(Request&)>;
  FakeInstance(Gate* gate, Log* log, Run run = {}, const std::string& group = "")
      : gate_(gate), log_(log), run_(std::move(run)) {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(group, &group_));
  }
  const inference::ModelInstanceGroup& group() const override { return group_; }
  void run(std::vector<RequestPtr> batch) override {
    std::vector<std::string> ids;
    for (const RequestPtr& request : batch) ids.push_back(request->filler ? "-" : request->id);
    if (log_) log_->add(ids);
    if (gate_) gate_->pass();
    for (RequestPtr& request : batch) {
      Response response = run_ ? run_(*request) : Response{};
      response.model = request->model;
      response.id = request->id;
      request->respond(std::move(response));
    }
  }

 private:
  Gate* gate_;
  Log* log_;
  Run run_;
  inference::ModelInstanceGroup group_;
};

inline std::vector<std::unique_ptr<Instance>> instances(size_t count, Gate* gate, Log* log,
                                                        FakeInstance::Run run = {}) {
  std::vector<std::unique_ptr<Instance>> result;
  for (size_t i = 0; i < count; ++i)
    result.push_back(std::make_unique<FakeInstance>(gate, log, run));
  return result;
}

}  // namespace anymps::server::test
