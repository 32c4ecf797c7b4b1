// SPDX-License-Identifier: Apache-2.0
// What a configuration can have wrong by itself, in Triton's words.
#include <algorithm>
#include <set>

#include "server/repository/config_text.h"
#include "server/repository/ensemble_check.h"
#include "serving/datatype.h"

namespace anymps::server {
namespace {

using inference::ModelConfig;
using inference::ModelInstanceGroup;

template <typename Dims>
std::vector<int64_t> vector_of(const Dims& dims) {
  return {dims.begin(), dims.end()};
}

void check_reshape(const std::string& tensor, const std::string& model,
                   const std::vector<int64_t>& dims, const std::vector<int64_t>& shape) {
  const auto free = [](const std::vector<int64_t>& list) {
    return std::count(list.begin(), list.end(), -1);
  };
  check(free(dims) == free(shape), tensor +
                                       " has different number of variable-size dimensions for "
                                       "dims and reshape for " +
                                       model);
  // Extents between two variable ones stay together, so their products must agree.
  const auto products = [](const std::vector<int64_t>& list) {
    std::vector<uint64_t> parts{1};
    for (const int64_t extent : list) {
      if (extent == -1)
        parts.push_back(1);
      else
        parts.back() *= static_cast<uint64_t>(extent);
    }
    return parts;
  };
  check(products(dims) == products(shape),
        tensor + " has different size for dims and reshape for " + model);
}

template <typename Tensors>
void check_all(const Tensors& tensors, const std::string& kind, const ModelConfig& config,
               bool complete) {
  std::set<std::string> names;
  for (const auto& tensor : tensors) {
    check(!tensor.name().empty(), "model " + kind + " must specify 'name' for " + config.name());
    const std::string what = "model " + kind + " '" + tensor.name() + "'";
    check(names.insert(tensor.name()).second,
          what + " is specified more than once for " + config.name());
    if (complete) {
      check(tensor.data_type() != inference::TYPE_INVALID,
            what + " must specify 'data_type' for " + config.name());
      check(config.max_batch_size() > 0 || tensor.dims_size() > 0 || tensor.has_reshape() ||
                !is_ensemble(config),
            what + " must specify 'dims' for " + config.name());
    }
    for (const int64_t extent : tensor.dims())
      check(extent >= 1 || extent == -1,
            what +
                " dimension must be integer >= 1, or -1 to indicate a variable-size dimension "
                "for " +
                config.name());
    if (!tensor.has_reshape()) continue;
    for (const int64_t extent : tensor.reshape().shape())
      check(extent >= 1 || extent == -1,
            what +
                " reshape dimensions must be integer >= 1, or -1 to indicate a variable-size "
                "dimension for " +
                config.name());
    check(config.max_batch_size() > 0 || tensor.reshape().shape_size() > 0,
          what + " cannot have empty reshape for non-batching model for " + config.name());
    check_reshape(what, config.name(), vector_of(tensor.dims()),
                  vector_of(tensor.reshape().shape()));
  }
}

void check_groups(const ModelConfig& config) {
  for (const ModelInstanceGroup& group : config.instance_group()) {
    const std::string what = "instance group " + group.name() + " of model " + config.name();
    const std::string kind = ModelInstanceGroup::Kind_Name(group.kind());
    check(group.gpus_size() == 0 || group.kind() == ModelInstanceGroup::KIND_GPU,
          what + " has kind " + kind + " but specifies one or more GPUs");
    for (const int32_t gpu : group.gpus())
      check(gpu >= 0, what + " specifies invalid or unsupported gpu id " + std::to_string(gpu));
  }
}

}  // namespace

void check_config(const ModelConfig& config) {
  check(config.max_batch_size() >= 0,
        "'max_batch_size' must be non-negative value for " + config.name());
  check(
      !config.version_policy().has_latest() || config.version_policy().latest().num_versions() > 0,
      "'num_versions' of the version policy must be positive for " + config.name());
  if (!is_ensemble(config)) return;
  check(config.platform() == "ensemble", "ensemble scheduling cannot be set for model '" +
                                             config.name() + "' whose platform is not ensemble");
  check(config.has_ensemble_scheduling(), "ensemble scheduling must be set for ensemble " +
                                              config.name() + " whose platform is ensemble");
  check(config.instance_group_size() == 0,
        "instance group should not be specified for ensemble '" + config.name() + "'");
  check_ensemble_config(config);
}

void check_tensors(const ModelConfig& config, bool complete) {
  check_all(config.input(), "input", config, complete);
  check_all(config.output(), "output", config, complete);
  check_groups(config);
  check_limits(config);
}

}  // namespace anymps::server
