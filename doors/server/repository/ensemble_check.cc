// SPDX-License-Identifier: Apache-2.0
#include "server/repository/ensemble_check.h"

#include <algorithm>
#include <map>
#include <set>

#include "server/repository/limits.h"
#include "serving/datatype.h"

namespace anymps::server {
namespace {

using inference::ModelConfig;
using inference::ModelEnsembling;

struct Flow {
  std::set<std::string> all, read, ready;
};

Flow flow_of(const ModelConfig& config) {
  const std::string ensemble = "ensemble '" + config.name() + "'";
  const auto& steps = config.ensemble_scheduling().step();
  check(!steps.empty(), "must specify 'step' for " + ensemble);
  Flow flow;
  std::set<std::string> written;
  for (const auto& input : config.input()) written.insert(input.name());
  for (int i = 0; i < steps.size(); ++i) {
    const std::string where = "in step " + std::to_string(i) + " of " + ensemble;
    check(!steps[i].model_name().empty(), "must specify 'model_name' " + where);
    check(!steps[i].input_map().empty(), "must specify 'input_map' " + where);
    check(!steps[i].output_map().empty(), "must specify 'output_map' " + where);
    for (const auto& [name, tensor] : steps[i].input_map()) {
      flow.all.insert(tensor);
      flow.read.insert(tensor);
    }
    for (const auto& [name, tensor] : steps[i].output_map()) {
      flow.all.insert(tensor);
      check(written.insert(tensor).second, "ensemble tensor '" + tensor +
                                               "' can appear in an output map only once for " +
                                               ensemble + " step " + std::to_string(i));
    }
  }
  return flow;
}

// Tensors that come to be when the inputs are there.
void spread(const ModelConfig& config, Flow& flow) {
  for (const auto& input : config.input()) flow.ready.insert(input.name());
  std::set<int> done;
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 0; i < config.ensemble_scheduling().step_size(); ++i) {
      const ModelEnsembling::Step& step = config.ensemble_scheduling().step(i);
      if (done.contains(i) ||
          !std::all_of(step.input_map().begin(), step.input_map().end(),
                       [&](const auto& entry) { return flow.ready.contains(entry.second); }))
        continue;
      done.insert(i);
      changed = true;
      for (const auto& [name, tensor] : step.output_map()) flow.ready.insert(tensor);
    }
  }
}

struct Kind {
  inference::DataType type;
  std::vector<int64_t> dims, full;  // without and with the batch axis
  std::string model;
};

template <typename Tensor>
Kind kind_of(const Tensor& tensor, const ModelConfig& config) {
  Kind kind{tensor.data_type(), {tensor.dims().begin(), tensor.dims().end()}, {}, config.name()};
  if (config.max_batch_size() > 0) kind.full.push_back(-1);
  kind.full.insert(kind.full.end(), kind.dims.begin(), kind.dims.end());
  return kind;
}

bool same(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](int64_t x, int64_t y) { return x == y || x == -1 || y == -1; });
}

void agree(const Kind& a, const Kind& b, const std::string& tensor, const std::string& ensemble) {
  const std::string where = "in ensemble " + ensemble + ", ensemble tensor " + tensor + ": ";
  const auto inferred = [&](const std::string& what, const std::string& left,
                            const std::string& right) {
    return where + "inconsistent " + what + ": " + left + " is inferred from model " + a.model +
           " while " + right + " is inferred from model " + b.model;
  };
  check(a.type == b.type,
        inferred("data type", inference::DataType_Name(a.type), inference::DataType_Name(b.type)));
  check(same(a.dims, b.dims) || same(a.full, b.full),
        inferred("shape", serving::shape_text(a.full), serving::shape_text(b.full)));
}

template <typename Tensors>
auto find(const Tensors& tensors, const std::string& name) {
  return std::find_if(tensors.begin(), tensors.end(),
                      [&](const auto& tensor) { return tensor.name() == name; });
}

}  // namespace

bool depends_on(const ModelConfig& config, const std::set<std::string>& models) {
  const auto& steps = config.ensemble_scheduling().step();
  return std::any_of(steps.begin(), steps.end(),
                     [&](const auto& step) { return models.contains(step.model_name()); });
}

void check_ensemble_config(const ModelConfig& config) {
  Flow flow = flow_of(config);
  for (const auto& input : config.input())
    check(flow.all.contains(input.name()),
          "ensemble input '" + input.name() + "' for ensemble " + config.name() + "' is not used");
  spread(config, flow);
  std::set<std::string> outputs;
  for (const auto& output : config.output()) {
    check(
        flow.all.contains(output.name()) || flow.ready.contains(output.name()),
        "ensemble output '" + output.name() + "' for ensemble " + config.name() + "' is not used");
    check(flow.ready.contains(output.name()), "ensemble output '" + output.name() +
                                                  "' is never produced in ensemble '" +
                                                  config.name() + "'");
    outputs.insert(output.name());
  }
  for (const std::string& tensor : flow.all)
    check(outputs.contains(tensor) || (flow.ready.contains(tensor) && flow.read.contains(tensor)),
          "ensemble tensor '" + tensor + "' is unused in ensemble '" + config.name() + "'");
}

ModelVersion::Extent extent_of(const ModelConfig& config, const StepModels& models) {
  ModelVersion::Extent extent{0, 0};
  const std::string where = "ensemble '" + config.name() + "', ensemble_scheduling.step: ";
  for (const std::shared_ptr<ModelVersion>& model : models) {
    extent.runs += model->extent().runs;  // each is within the bound: no overflow
    extent.depth = std::max(extent.depth, model->extent().depth + 1);
    check(extent.runs <= kMaxEnsembleRuns,
          where + "a request would run more than " + std::to_string(kMaxEnsembleRuns) + " models");
    check(
        extent.depth <= kMaxEnsembleDepth,
        where + "more than " + std::to_string(kMaxEnsembleDepth) + " ensembles lie in each other");
  }
  return extent;
}

void check_ensemble_steps(const ModelConfig& config, const StepModels& models) {
  const std::string where = "in ensemble " + config.name() + ", ";
  std::map<std::string, Kind> kinds;
  for (const auto& input : config.input()) kinds.emplace(input.name(), kind_of(input, config));
  for (const auto& output : config.output()) kinds.emplace(output.name(), kind_of(output, config));
  const auto add = [&](const std::string& tensor, const Kind& kind) {
    const auto [known, fresh] = kinds.emplace(tensor, kind);
    if (!fresh) agree(known->second, kind, tensor, config.name());
  };
  for (int i = 0; i < config.ensemble_scheduling().step_size(); ++i) {
    const ModelEnsembling::Step& step = config.ensemble_scheduling().step(i);
    const ModelConfig& model = models[i]->config();
    check(model.max_batch_size() == 0 || config.max_batch_size() <= model.max_batch_size(),
          "ensemble " + config.name() + " allows maximum batch size " +
              std::to_string(config.max_batch_size()) + ", but it contains model " + model.name() +
              " which only allows maximum batch size to be " +
              std::to_string(model.max_batch_size()));
    // By name, so that errors come in a fixed order.
    const auto take = [&](const auto& map, const auto& tensors, const char* missing) {
      const std::map<std::string, std::string> sorted(map.begin(), map.end());
      for (const auto& [name, tensor] : sorted) {
        const auto found = find(tensors, name);
        check(found != tensors.end(),
              where + "ensemble tensor " + tensor + missing + name + " in model " + model.name());
        add(tensor, kind_of(*found, model));
      }
    };
    take(step.input_map(), model.input(), " is mapping to non-existing input ");
    for (const auto& input : model.input())
      check(input.optional() || step.input_map().contains(input.name()),
            where + "input " + input.name() + " in model " + model.name() +
                " is not mapped to any ensemble tensors");
    take(step.output_map(), model.output(), " is mapped from non-existing output ");
  }
}

}  // namespace anymps::server
