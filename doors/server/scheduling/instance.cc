// SPDX-License-Identifier: Apache-2.0
#include "server/scheduling/instance.h"

#include <algorithm>

#include "server/core/clock.h"
#include "server/core/response_cache.h"
#include "server/core/validate.h"
#include "server/memory/buffer_pool.h"
#include "server/memory/cut_memory.h"
#include "server/observation/statistics.h"

namespace anymps::server {
namespace {

bool has_cut_memory(const Request& request) {
  const auto cut = [](const Buffer& buffer) { return was_cut(buffer.data); };
  return std::any_of(request.inputs.begin(), request.inputs.end(),
                     [&](const InputTensor& input) {
                       return std::any_of(input.buffers.begin(), input.buffers.end(), cut);
                     }) ||
         std::any_of(request.outputs.begin(), request.outputs.end(),
                     [&](const RequestedOutput& output) { return cut(output.target); });
}

}  // namespace

const std::vector<std::string>& AnswerContext::labels_of(std::string_view output) const {
  static const std::vector<std::string> kNone;
  const auto found = labels.find(output);
  return found == labels.end() ? kNone : found->second;
}

void AnswerContext::answer(Request& request, Response&& response) const {
  response.model = model;
  response.version = version;
  response.id = request.id;
  request.times.answered = now_ns();
  if (!response.error && has_cut_memory(request)) {
    response.outputs.clear();
    response.error = Error(Code::kInvalidArgument,
                           request_prefix(request) +
                               "a shared memory region became smaller while the request used it");
  }
  if (!request.filler) {
    if (response.error) {
      metrics->failure(request.times, response.error->code());
    } else {
      if (!request.cache_key.empty()) {
        cache->insert(request.cache_key, response);
        metrics->cache_miss(request.cache_lookup_ns + now_ns() - request.times.answered);
      }
      metrics->success(request.times, rows_of(config, request));
    }
  }
  response.times = request.times;
  if (request.respond) request.respond(std::move(response));
  if (request.trace && finish_trace) finish_trace(request, version);
}

// One request of a batch, as the model sees it.
class ModelInstance::Execution final : public serving::Request {
 public:
  explicit Execution(const AnswerContext& context) : context_(context) {}

  void begin(server::Request& request) {
    request_ = &request;
    error_.reset();
    inputs_.clear();
    slots_.clear();
    filled_.clear();
    for (const InputTensor& input : request.inputs) {
      inputs_.add(input.name, input.dtype, input.shape);
      for (const Buffer& buffer : input.buffers) inputs_.add_piece(buffer.data, buffer.bytes);
    }
    inputs_.finish();
    for (const inference::ModelOutput& output : context_.config.output()) {
      const RequestedOutput* wish = wish_of(request, output.name());
      if (wish || request.outputs.empty()) slots_.push_back({output.name(), wish, {}, false});
    }
    for (const RequestedOutput& output : request.outputs)  // states, which are not outputs outside
      if (!slot(output.name)) slots_.push_back({output.name, &output, {}, false});
  }

  std::span<const serving::Input> inputs() const override { return inputs_.list(); }
  bool wants(std::string_view output) const override {
    return const_cast<Execution*>(this)->slot(output) != nullptr;
  }
  bool cancelled() const override { return request_->is_cancelled(); }

  void* output(std::string_view name, amps_dtype dtype, std::span<const int64_t> shape,
               size_t bytes) override {
    Slot* found = slot(name);
    if (!found)
      throw Error(Code::kInternal, "output '" + std::string(name) + "' was not asked for");
    OutputTensor& tensor = found->tensor;
    tensor.name = name;
    tensor.dtype = dtype;
    tensor.shape.assign(shape.begin(), shape.end());
    if (!found->filled) filled_.push_back(found - slots_.data());
    found->filled = true;
    const Buffer* target =
        found->wish && found->wish->classes == 0 ? &found->wish->target : nullptr;
    if (target && target->data && target->bytes >= bytes) {
      tensor.data = {target->owner, target->data, bytes};
    } else {
      if (target && target->data && !error_) error_ = too_small(tensor.name, target->bytes, bytes);
      tensor.data = allocate_buffer(bytes);
    }
    return tensor.data.data;
  }

  void fail(const Error& error) override {
    if (!error_) error_ = error;
  }

  Response take() {
    Response response;
    const bool batched = context_.config.max_batch_size() > 0;
    try {
      response.outputs.reserve(slots_.size());
      for (const Slot& slot : slots_)
        if (!slot.filled && !error_)
          error_ = Error(Code::kInternal, "model '" + context_.model + "' gave no output '" +
                                              std::string(slot.name) + "'");
      for (const int64_t place : filled_) {
        if (error_) break;
        Slot& slot = slots_[place];
        if (slot.wish && slot.wish->classes > 0)
          response.outputs.push_back(classify(slot.tensor, slot.wish->classes, batched,
                                              context_.labels_of(slot.name), slot.wish->target));
        else
          response.outputs.push_back(std::move(slot.tensor));
      }
    } catch (const Error& error) {
      error_ = error;
    } catch (const std::exception& error) {
      error_ = Error(Code::kInternal, error.what());
    }
    if (error_) {
      response.outputs.clear();
      response.error = std::move(error_);
    }
    slots_.clear();
    return response;
  }

 private:
  struct Slot {
    std::string_view name;
    const RequestedOutput* wish = nullptr;
    OutputTensor tensor;
    bool filled = false;
  };
  static const RequestedOutput* wish_of(const server::Request& request, std::string_view name) {
    for (const RequestedOutput& output : request.outputs)
      if (output.name == name) return &output;
    return nullptr;
  }
  Slot* slot(std::string_view name) {
    for (Slot& slot : slots_)
      if (slot.name == name) return &slot;
    return nullptr;
  }

  const AnswerContext& context_;
  server::Request* request_ = nullptr;
  std::optional<Error> error_;
  serving::InputList inputs_;
  std::vector<Slot> slots_;
  std::vector<int64_t> filled_;  // in the order in which the model gave them
};

ModelInstance::ModelInstance(const AnswerContext& context, std::shared_ptr<serving::Model> model,
                             inference::ModelInstanceGroup group)
    : context_(context), model_(std::move(model)), group_(std::move(group)) {}

ModelInstance::~ModelInstance() = default;

void ModelInstance::run(std::vector<RequestPtr> batch) {
  while (executions_.size() < batch.size())
    executions_.push_back(std::make_unique<Execution>(context_));
  running_.clear();
  for (size_t i = 0; i < batch.size(); ++i) {
    executions_[i]->begin(*batch[i]);
    running_.push_back(executions_[i].get());
  }
  const serving::Times times = model_->execute(running_);
  if (times.batch_size > 0)
    context_.metrics->execution(times.batch_size, times.compute_start - times.start,
                                times.compute_end - times.compute_start,
                                times.end - times.compute_end);
  for (size_t i = 0; i < batch.size(); ++i) {
    Request& request = *batch[i];
    request.times.compute_start = times.start;
    request.times.compute_input_end = times.compute_start;
    request.times.compute_output_start = times.compute_end;
    request.times.compute_end = times.end;
    context_.answer(request, executions_[i]->take());
    batch[i].reset();
  }
}

}  // namespace anymps::server
