// SPDX-License-Identifier: Apache-2.0
#include "serving/compiled.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "serving/datatype.h"
#include "serving/error.h"
#include "serving/log.h"

namespace anymps::serving {

Code code_of(amps_status status) {
  switch (status) {
    case AMPS_INVALID_ARGUMENT:
      return Code::kInvalidArgument;
    case AMPS_NOT_FOUND:
      return Code::kNotFound;
    case AMPS_UNSUPPORTED:
      return Code::kUnsupported;
    case AMPS_OUT_OF_MEMORY:
      return Code::kUnavailable;
    case AMPS_CANCELLED:
      return Code::kCancelled;
    default:
      return Code::kInternal;
  }
}

// Batches come in all sizes: each one is a shape.
size_t plan_cache(const Settings& settings) {
  if (settings.graph_cache) return settings.graph_cache;
  return std::clamp<int64_t>(settings.max_batch_size + 8, 16, 64);
}

Compiled::Compiled(const Settings& settings, const amps::Graph& graph, amps::Executable executable)
    : executable_(std::move(executable)),
      shape_limit_(plan_cache(settings)),
      chunks_(settings.micro_batch),
      model_(settings.name) {
  for (const amps::Value& value : graph.inputs()) {
    Feed feed;
    feed.name = value.name();
    feed.rank = amps_value_rank(value.c());
    for (size_t i = 0; i < settings.inputs.size(); ++i)
      if (settings.inputs[i].name == feed.name) feed.input = static_cast<int>(i);
    for (size_t i = 0; i < settings.batch_inputs.size(); ++i)
      for (const std::string& target : settings.batch_inputs[i].targets)
        if (target == feed.name) feed.batch_input = static_cast<int>(i);
    if (feed.input < 0 && feed.batch_input < 0)
      throw Error(Code::kInternal,
                  "model '" + model_ + "': nothing feeds the input '" + feed.name + "'");
    feeds_.push_back(std::move(feed));
  }
  const std::vector<amps::Value> results = graph.outputs();
  result_count_ = results.size();
  for (const TensorSettings& output : settings.outputs)
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i].name() == output.name) {
        outputs_.push_back(i);
        break;
      }
  if (outputs_.size() != settings.outputs.size())
    throw Error(Code::kInternal, "model '" + model_ + "': an output is not made by the graph");
}

void Compiled::log_plan(const std::vector<int64_t>& dims) const {
  std::string line = "model '" + model_ + "': feeds of shapes " + shape_text(dims);
  try {
    const auto plan = nlohmann::json::parse(executable_.text("plan", dims));
    for (const auto& step : plan)
      line += "\n  " + step.value("op", "?") + " " + step.value("node", "") + " -> " +
              step.value("kernel", "?");
  } catch (const std::exception& error) {
    line += std::string(": ") + error.what();
  }
  log_line(line);
}

std::shared_ptr<const ResultShapes> Compiled::result_shapes(const std::vector<size_t>& ranks,
                                                            const std::vector<int64_t>& dims,
                                                            bool& fresh) {
  fresh = false;
  std::string key(reinterpret_cast<const char*>(dims.data()), dims.size() * sizeof(int64_t));
  for (size_t i = 0; i < feeds_.size(); ++i)
    if (feeds_[i].rank < 0) key.append(1, static_cast<char>(ranks[i]));
  {
    std::lock_guard lock(mutex_);
    const auto found = shapes_.find(key);
    if (found != shapes_.end()) return found->second;
  }
  std::vector<int64_t> result_ranks(result_count_ + 1), result_dims(64);
  for (size_t count = 0;; result_dims.resize(count)) {
    amps::check(amps_executable_result_dims_for(c(), ranks.data(), ranks.size(), dims.data(),
                                                dims.size(), result_ranks.data(), result_count_,
                                                result_dims.data(), result_dims.size(), &count));
    if (count <= result_dims.size()) break;
  }
  fresh = true;
  auto shapes = std::make_shared<ResultShapes>();
  size_t next = 0;
  for (size_t i = 0; i < result_count_; ++i) {
    ResultShapes::Result result;
    result.ranked = result.known = result_ranks[i] >= 0;
    for (int64_t axis = 0; axis < result_ranks[i]; ++axis) {
      result.dims.push_back(result_dims[next++]);
      result.known = result.known && result.dims.back() >= 0;
    }
    shapes->results.push_back(std::move(result));
  }
  if (verbose()) log_plan(dims);
  std::lock_guard lock(mutex_);
  if (shapes_.size() >= shape_limit_) shapes_.clear();
  shapes_.emplace(std::move(key), shapes);
  return shapes;
}

}  // namespace anymps::serving
