// SPDX-License-Identifier: Apache-2.0
#include "server/scheduling/ensemble.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_set>

#include "server/core/classification.h"
#include "server/core/clock.h"
#include "server/core/validate.h"
#include "server/memory/buffer_pool.h"
#include "server/scheduling/refusal.h"

namespace anymps::server {
namespace {

struct Tensor {
  amps_dtype dtype = AMPS_F32;
  std::vector<int64_t> shape;
  std::vector<Buffer> buffers;
  bool present = false;
};

struct Connection {
  std::string name;   // in the model
  size_t tensor = 0;  // of the ensemble
  size_t rank = 0;    // that the model expects, with the batch axis
};

struct Step {
  std::shared_ptr<ModelVersion> model;
  std::vector<Connection> inputs, outputs;
};

struct Plan {
  std::map<std::string, size_t, std::less<>> tensors;  // place of each tensor
  std::vector<Step> steps;
  std::vector<std::vector<size_t>> readers;  // steps that need a tensor
  std::vector<const Labels*> labels;         // of the step that makes a tensor
  std::vector<std::string> outputs;          // in the order of Triton's answers: a hash table's
  bool mixed = false;                        // some steps have a batch axis, some have not
};

// Where only one side has a batch axis, a batch of one row fits both.
void fit(std::vector<int64_t>& shape, size_t rank) {
  if (shape.size() == rank + 1 && shape[0] == 1) shape.erase(shape.begin());
  if (shape.size() + 1 == rank) shape.insert(shape.begin(), 1);
}

template <typename Tensors>
size_t rank_of(const Tensors& tensors, const std::string& name, bool batched) {
  for (const auto& tensor : tensors)
    if (tensor.name() == name) return tensor.dims_size() + batched;
  return 0;
}

Plan make_plan(const inference::ModelConfig& config, StepModels models) {
  Plan plan;
  const auto place = [&](const std::string& name) {
    return plan.tensors.emplace(name, plan.tensors.size()).first->second;
  };
  for (const auto& input : config.input()) place(input.name());
  for (int i = 0; i < config.ensemble_scheduling().step_size(); ++i) {
    const auto& source = config.ensemble_scheduling().step(i);
    Step step{std::move(models[i]), {}, {}};
    const inference::ModelConfig& model = step.model->config();
    const bool batched = model.max_batch_size() > 0;
    plan.mixed = plan.mixed || batched != (config.max_batch_size() > 0);
    for (const auto& [name, tensor] : source.input_map())
      step.inputs.push_back({name, place(tensor), rank_of(model.input(), name, batched)});
    for (const auto& [name, tensor] : source.output_map())
      step.outputs.push_back({name, place(tensor), rank_of(model.output(), name, batched)});
    plan.steps.push_back(std::move(step));
  }
  std::unordered_set<std::string> outputs;
  for (const auto& output : config.output()) outputs.insert(output.name());
  plan.outputs.assign(outputs.begin(), outputs.end());
  plan.readers.resize(plan.tensors.size());
  plan.labels.resize(plan.tensors.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    for (const Connection& input : plan.steps[i].inputs) {
      std::vector<size_t>& readers = plan.readers[input.tensor];
      if (readers.empty() || readers.back() != i) readers.push_back(i);
    }
    for (const Connection& output : plan.steps[i].outputs)
      plan.labels[output.tensor] = &plan.steps[i].model->labels();
  }
  return plan;
}

struct Shared {
  const AnswerContext& context;
  const Plan plan;
};

// One request on its way through the steps. It lives in the answers that it waits for.
class Run : public std::enable_shared_from_this<Run> {
 public:
  Run(const Shared& shared, RequestPtr request) : shared_(shared), request_(std::move(request)) {}

  void start() {
    const Plan& plan = shared_.plan;
    request_->times.queued = request_->times.dequeued = now_ns();
    tensors_.resize(plan.tensors.size());
    missing_.resize(plan.steps.size());
    for (size_t i = 0; i < plan.steps.size(); ++i)
      for (size_t tensor = 0; tensor < plan.readers.size(); ++tensor)
        missing_[i] += std::count(plan.readers[tensor].begin(), plan.readers[tensor].end(), i);
    std::vector<size_t> ready;
    for (InputTensor& input : request_->inputs) {
      const size_t place = plan.tensors.find(input.name)->second;
      tensors_[place] = {input.dtype, input.shape, input.buffers, true};
      arrived(place, ready);
    }
    // Optional inputs that were left out: the steps that read them do without.
    for (const auto& input : shared_.context.config.input()) {
      const size_t place = plan.tensors.find(input.name())->second;
      if (!tensors_[place].present) arrived(place, ready);
    }
    running_ = ready.size();
    launch(ready);
  }

 private:
  // With the mutex held, or before anything runs.
  void arrived(size_t tensor, std::vector<size_t>& ready) {
    for (const size_t reader : shared_.plan.readers[tensor])
      if (--missing_[reader] == 0) ready.push_back(reader);
  }

  void launch(const std::vector<size_t>& ready) {
    if (ready.empty()) return finish();
    for (const size_t step : ready) ModelVersion::infer(shared_.plan.steps[step].model, make(step));
  }

  // Tensors that a step reads do not change any more: no lock is needed to read them.
  RequestPtr make(size_t index) {
    const Step& step = shared_.plan.steps[index];
    auto request = std::make_unique<Request>();
    request->model = step.model->name();
    request->version = step.model->version();
    request->id = request_->id;
    request->sequence = request_->sequence;
    request->sequence_start = request_->sequence_start;
    request->sequence_end = request_->sequence_end;
    request->priority = request_->priority;
    request->timeout_us = request_->timeout_us;
    request->parameters = request_->parameters;
    request->cancelled = request_->cancelled;
    for (const Connection& input : step.inputs) {
      const Tensor& tensor = tensors_[input.tensor];
      if (!tensor.present) continue;
      InputTensor copy{input.name, tensor.dtype, tensor.shape, tensor.buffers};
      if (shared_.plan.mixed) fit(copy.shape, input.rank);
      request->inputs.push_back(std::move(copy));
    }
    for (const Connection& output : step.outputs)
      request->outputs.push_back({output.name, 0, target_of(output.tensor)});
    request->respond = [self = shared_from_this(), index](Response&& response) {
      self->done(index, std::move(response));
    };
    return request;
  }

  // The step that makes an output of the ensemble writes it where the client wants it.
  Buffer target_of(size_t tensor) const {
    for (const RequestedOutput& wish : request_->outputs) {
      const auto place = shared_.plan.tensors.find(wish.name);
      if (place != shared_.plan.tensors.end() && place->second == tensor && wish.classes == 0)
        return wish.target;
    }
    return {};
  }

  void done(size_t index, Response&& response) {
    const Step& step = shared_.plan.steps[index];
    std::vector<size_t> ready;
    bool last = false;
    {
      std::lock_guard lock(mutex_);
      --running_;
      add_times(response.times);
      if (response.error && !error_)
        error_ = Error(response.error->code(),
                       "in ensemble '" + shared_.context.model + "', " + response.error->what());
      if (!error_ && request_->is_cancelled()) error_ = Error(Code::kCancelled, kCancelled);
      if (!error_) {
        for (OutputTensor& output : response.outputs)
          for (const Connection& to : step.outputs)
            if (to.name == output.name) {
              tensors_[to.tensor] = {output.dtype, std::move(output.shape), {output.data}, true};
              arrived(to.tensor, ready);
              break;
            }
        running_ += ready.size();
      }
      last = running_ == 0;
    }
    if (last)
      finish();
    else if (!ready.empty())
      launch(ready);
  }

  void add_times(const Timestamps& times) {
    const auto between = [](uint64_t begin, uint64_t end) { return end > begin ? end - begin : 0; };
    queue_ns_ += times.queued ? between(times.queued, times.dequeued) : 0;
    if (!times.compute_start) return;
    input_ns_ += between(times.compute_start, times.compute_input_end);
    infer_ns_ += between(times.compute_input_end, times.compute_output_start);
    output_ns_ += between(times.compute_output_start, times.compute_end);
  }

  Response result() {
    Response response;
    const AnswerContext& context = shared_.context;
    const bool batched = context.config.max_batch_size() > 0;
    const auto add = [&](const std::string& name, const RequestedOutput* wish) {
      const size_t place = shared_.plan.tensors.find(name)->second;
      const Tensor& tensor = tensors_[place];
      if (!tensor.present)
        throw Error(Code::kInvalidArgument,
                    "in ensemble '" + context.model +
                        "', unexpected deadlock, at least one output is not set while no more "
                        "ensemble steps can be made");
      OutputTensor output{name, tensor.dtype, tensor.shape, whole(tensor)};
      if (shared_.plan.mixed) fit(output.shape, rank_of(context.config.output(), name, batched));
      if (wish && wish->classes > 0) {
        const Labels* made = shared_.plan.labels[place];
        const std::vector<std::string>* labels = &context.labels_of(name);
        if (labels->empty() && made)
          for (const Step& step : shared_.plan.steps)
            for (const Connection& from : step.outputs)
              if (from.tensor == place && made->contains(from.name))
                labels = &made->find(from.name)->second;
        output = classify(output, wish->classes, batched, *labels, wish->target);
      }
      response.outputs.push_back(std::move(output));
    };
    for (const std::string& name : shared_.plan.outputs) {
      const auto wish = std::find_if(request_->outputs.begin(), request_->outputs.end(),
                                     [&](const auto& w) { return w.name == name; });
      if (wish != request_->outputs.end())
        add(name, &*wish);
      else if (request_->outputs.empty())
        add(name, nullptr);
    }
    return response;
  }

  // An input that is an output as well may be in pieces.
  static Buffer whole(const Tensor& tensor) {
    if (tensor.buffers.size() == 1) return tensor.buffers[0];
    size_t bytes = 0;
    for (const Buffer& piece : tensor.buffers) bytes += piece.bytes;
    Buffer all = allocate_buffer(bytes);
    std::byte* to = all.data;
    for (const Buffer& piece : tensor.buffers)
      to = std::copy(piece.data, piece.data + piece.bytes, to);
    return all;
  }

  void finish() {
    Response response;
    if (!error_) {
      try {
        response = result();
      } catch (const Error& error) {
        error_ = error;
      } catch (const std::exception& error) {
        error_ = Error(Code::kInternal, error.what());
      }
    }
    Timestamps& times = request_->times;
    times.dequeued = times.queued + queue_ns_;
    times.compute_start = times.dequeued;
    times.compute_input_end = times.compute_start + input_ns_;
    times.compute_output_start = times.compute_input_end + infer_ns_;
    times.compute_end = times.compute_output_start + output_ns_;
    if (error_) {
      response = {};
      response.error = std::move(error_);
    } else {
      const uint64_t* number = std::get_if<uint64_t>(&request_->sequence);
      response.parameters["sequence_id"] =
          number ? Parameter(static_cast<int64_t>(*number))
                 : Parameter(std::get<std::string>(request_->sequence));
      response.parameters["sequence_start"] = request_->sequence_start;
      response.parameters["sequence_end"] = request_->sequence_end;
      shared_.context.metrics->execution(rows_of(shared_.context.config, *request_), input_ns_,
                                         infer_ns_, output_ns_);
    }
    shared_.context.answer(*request_, std::move(response));
    request_.reset();  // with it the hold on the ensemble: nothing of it may be used below
  }

  const Shared& shared_;
  RequestPtr request_;
  std::mutex mutex_;
  std::vector<Tensor> tensors_;
  std::vector<int64_t> missing_;
  size_t running_ = 0;
  std::optional<Error> error_;
  uint64_t queue_ns_ = 0, input_ns_ = 0, infer_ns_ = 0, output_ns_ = 0;
};

class Ensemble final : public Scheduler {
 public:
  Ensemble(const AnswerContext& context, StepModels models)
      : shared_{context, make_plan(context.config, std::move(models))} {}
  void enqueue(RequestPtr request) override {
    std::make_shared<Run>(shared_, std::move(request))->start();
  }

 private:
  const Shared shared_;
};

}  // namespace

std::unique_ptr<Scheduler> make_ensemble(const AnswerContext& context, StepModels models) {
  check_ensemble_steps(context.config, models);
  return std::make_unique<Ensemble>(context, std::move(models));
}

}  // namespace anymps::server
