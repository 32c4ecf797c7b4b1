// SPDX-License-Identifier: Apache-2.0
// An instance of a model: hands the requests of a batch to the model's shared state, which writes
// the results where each request wants them, and answers them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model_config.pb.h"
#include "server/core/classification.h"
#include "server/scheduling/scheduler.h"
#include "serving/model.h"

namespace anymps::server {

class ModelMetrics;
class ResponseCache;

// What instances and ensembles of a version need to answer a request.
struct AnswerContext {
  std::string model, version;
  inference::ModelConfig config;
  Labels labels;
  ModelMetrics* metrics = nullptr;
  ResponseCache* cache = nullptr;
  std::function<void(const Request&, const std::string& version)> finish_trace;

  const std::vector<std::string>& labels_of(std::string_view output) const;
  // Counts the request, keeps the answer in the cache if it should be there, and sends it.
  // `times.answered` is set here.
  void answer(Request& request, Response&& response) const;
};

class ModelInstance final : public Instance {
 public:
  ModelInstance(const AnswerContext& context, std::shared_ptr<serving::Model> model,
                inference::ModelInstanceGroup group);
  ~ModelInstance() override;
  const inference::ModelInstanceGroup& group() const override { return group_; }
  void run(std::vector<RequestPtr> batch) override;

 private:
  class Execution;
  const AnswerContext& context_;
  std::shared_ptr<serving::Model> model_;
  inference::ModelInstanceGroup group_;
  // Kept from batch to batch for their memory.
  std::vector<std::unique_ptr<Execution>> executions_;
  std::vector<serving::Request*> running_;
};

}  // namespace anymps::server
