// SPDX-License-Identifier: Apache-2.0
// What a graph tells about its configuration, and where the two contradict each other. The rules
// are those of Triton's own backends: a model has a batch axis if the first axis of every input and
// output is dynamic.
#include <algorithm>
#include <set>

#include "serving/datatype.h"
#include "serving/json.h"
#include "serving/settings.h"

namespace anymps::serving {
namespace {

using nlohmann::json;

// Names that the configuration explains elsewhere than in `input` and `output`.
struct Elsewhere {
  std::set<std::string> inputs, outputs;  // the batcher's and the sequence batcher's
  std::set<std::string> flat;             // those that have no batch axis in the graph: ragged ones
};

Elsewhere elsewhere(const Fields& model) {
  Elsewhere names;
  for (const json& value : model.items("batch_input"))
    for (const std::string& name : Fields(value, model.where()).texts("target_name")) {
      names.inputs.insert(name);
      names.flat.insert(name);
    }
  for (const json& value : model.items("batch_output"))
    for (const std::string& name : Fields(value, model.where()).texts("target_name"))
      names.flat.insert(name);
  for (const json& value : model.items("input")) {
    const Fields input(value, model.where());
    if (input.flag("allow_ragged_batch")) names.flat.insert(input.text("name"));
  }
  const Fields sequence(model.object("sequence_batching"), model.where());
  for (const json& value : sequence.items("control_input"))
    names.inputs.insert(Fields(value, model.where()).text("name"));
  for (const json& value : sequence.items("state")) {
    names.inputs.insert(Fields(value, model.where()).text("input_name"));
    names.outputs.insert(Fields(value, model.where()).text("output_name"));
  }
  return names;
}

bool dynamic_first(const amps::Value& value) {
  return value.ranked() && !value.shape().empty() && value.shape()[0] == -1;
}

// Every tensor that could have a batch axis begins with an extent that is not known.
bool may_batch(const amps::Graph& graph, const Elsewhere& names) {
  const auto fits = [&](const amps::Value& value) {
    return names.flat.contains(value.name()) || dynamic_first(value);
  };
  const std::vector<amps::Value> inputs = graph.inputs(), outputs = graph.outputs();
  return std::all_of(inputs.begin(), inputs.end(), fits) &&
         std::all_of(outputs.begin(), outputs.end(), fits);
}

// And it is one and the same extent: rows of one request cannot reach another's.
bool shares_batch(const amps::Graph& graph, const Elsewhere& names) {
  std::set<std::string> named, firsts, others;
  for (const amps::Value& input : graph.inputs()) {
    const size_t rank = input.shape().size();
    for (size_t axis = names.flat.contains(input.name()) ? 0 : 1; axis < rank; ++axis)
      others.insert(input.dim_name(axis));
    if (names.flat.contains(input.name())) continue;
    firsts.insert(input.dim_name(0));
    if (input.dim_name(0) != input.name() + ".0") named.insert(input.dim_name(0));
  }
  if (named.size() > 1) return false;
  for (const amps::Value& output : graph.outputs()) {
    if (names.flat.contains(output.name())) continue;
    const std::string symbol = output.dim_name(0);
    if (firsts.contains(symbol)) continue;
    if (others.contains(symbol) || symbol.find_first_of("+-*/(") != std::string::npos) return false;
  }
  return true;
}

std::vector<int64_t> model_dims(const Fields& tensor) {
  return tensor.has("reshape") ? Fields(tensor.object("reshape"), tensor.where()).integers("shape")
                               : tensor.integers("dims");
}

// The configuration has a tensor with as many extents as the graph's: it counts the first one as
// its own, so there is no batch axis.
bool tells_whole_shape(const Fields& model, const char* field,
                       const std::vector<amps::Value>& values) {
  for (const json& entry : model.items(field)) {
    const Fields tensor(entry, model.where());
    for (const amps::Value& value : values)
      if (value.name() == tensor.text("name") && value.ranked() && tensor.has("dims") &&
          !tensor.items("dims").empty() && model_dims(tensor).size() == value.shape().size())
        return true;
  }
  return false;
}

json describe(const amps::Value& value, bool batched, const Fields& model) {
  const std::string where = model.where() + ", tensor '" + value.name() + "'";
  if (value.container() != AMPS_TENSOR)
    throw Error(Code::kUnsupported, where + ": it is no tensor but a list or an optional");
  const std::string type = config_datatype(amps_value_dtype(value.c()));
  if (type.empty())
    throw Error(Code::kUnsupported, where + ": Triton has no data type for '" +
                                        amps_dtype_name(amps_value_dtype(value.c())) + "'");
  if (!value.ranked())
    throw Error(Code::kInvalidArgument,
                where + ": the model does not tell its rank; the configuration must have its dims");
  std::vector<int64_t> dims = value.shape();
  if (batched) dims.erase(dims.begin());
  json entry = {{"name", value.name()}, {"data_type", type}, {"dims", dims}};
  if (dims.empty()) {  // Triton knows no tensor without axes
    entry["dims"] = {1};
    entry["reshape"] = {{"shape", json::array()}};
  }
  return entry;
}

void complete_tensors(json& config, const char* field, const std::vector<amps::Value>& values,
                      const std::set<std::string>& known, const Elsewhere& names, bool batched,
                      const Fields& model) {
  json& list = config[field];
  const bool all = !list.is_array() || list.empty();
  if (all) list = json::array();
  for (const amps::Value& value : values) {
    if (known.contains(value.name())) continue;
    const bool rows = batched && !names.flat.contains(value.name());
    if (all) list.push_back(describe(value, rows, model));
    for (json& entry : list) {
      if (all || !entry.is_object() || entry.value("name", "") != value.name()) continue;
      const bool no_type = entry.value("data_type", "TYPE_INVALID") == "TYPE_INVALID";
      const bool no_dims = !entry.contains("dims") || entry["dims"].empty();
      if (!no_type && !no_dims) continue;
      const json found = describe(value, rows, model);
      if (no_type) entry["data_type"] = found["data_type"];
      if (no_dims) entry["dims"] = found["dims"];
      if (no_dims && found.contains("reshape")) entry["reshape"] = found["reshape"];
    }
  }
}

[[noreturn]] void contradiction(const Settings& settings, const std::string& reason) {
  throw Error(Code::kInvalidArgument, "unable to load model '" + settings.name + "': " + reason);
}

void check_tensor(const Settings& settings, const TensorSettings& tensor, const amps::Value& value,
                  bool has_rows) {
  const std::string where = "model '" + settings.name + "', tensor '" + tensor.name + "': ";
  if (value.container() != AMPS_TENSOR)
    throw Error(Code::kUnsupported, where + "the model expects a list or an optional");
  const amps_dtype dtype = amps_value_dtype(value.c());
  if (dtype != tensor.dtype) {
    const std::string expected = config_datatype(dtype);
    throw Error(Code::kInvalidArgument, where + "the model has data-type " +
                                            (expected.empty() ? amps_dtype_name(dtype) : expected) +
                                            " but the model configuration specifies " +
                                            config_datatype(tensor.dtype));
  }
  if (!value.ranked()) return;
  std::vector<int64_t> dims = tensor.reshape.value_or(tensor.dims);
  const std::vector<int64_t> shape = value.shape();
  if (tensor.ragged) {
    if (shape.empty() || (shape.size() != 1 && shape.size() != dims.size()))
      throw Error(Code::kInvalidArgument,
                  where + "a ragged input must have one axis in the model, or those of the dims " +
                      shape_text(dims) + "; the model has " + shape_text(shape));
    return;
  }
  if (has_rows && (shape.empty() || shape[0] != -1))
    throw Error(Code::kInvalidArgument,
                where +
                    "for the model to support batching the shape should have at least 1 dimension "
                    "and the first dimension must be -1; but shape expected by the model is " +
                    shape_text(shape));
  if (has_rows) dims.insert(dims.begin(), -1);
  bool fits = dims.size() == shape.size();
  for (size_t i = 0; fits && i < dims.size(); ++i) fits = shape[i] == -1 || shape[i] == dims[i];
  if (!fits)
    throw Error(Code::kInvalidArgument,
                where + "the model expects " + std::to_string(shape.size()) +
                    " dimensions (shape " + shape_text(shape) +
                    ") but the model configuration specifies " + std::to_string(dims.size()) +
                    " dimensions (" +
                    (has_rows ? "an initial batch dimension because "
                                "max_batch_size > 0 followed by the explicit "
                                "tensor shape, making complete shape "
                              : "shape ") +
                    shape_text(dims) + ")");
}

const amps::Value* find(const std::vector<amps::Value>& values, const std::string& name) {
  for (const amps::Value& value : values)
    if (value.name() == name) return &value;
  return nullptr;
}

std::string names_of(const std::vector<amps::Value>& values) {
  std::string text;
  for (const amps::Value& value : values) text += (text.empty() ? "" : ", ") + value.name();
  return text;
}

}  // namespace

json complete_config(json config, const amps::Graph& graph, int64_t default_max_batch_size) {
  if (!config.is_object()) config = json::object();
  const json original = config;
  const Fields model(original, "model '" + Fields(original, "model").text("name") + "'");
  const Elsewhere names = elsewhere(model);
  int64_t max_batch_size = model.integer("max_batch_size");
  const bool may = may_batch(graph, names);
  if (max_batch_size > 0 && !may)
    model.fail(
        "autofill failed: model does not support batching while non-zero max_batch_size is "
        "specified");
  if (max_batch_size == 0 && may && shares_batch(graph, names) && default_max_batch_size > 0 &&
      !tells_whole_shape(model, "input", graph.inputs()) &&
      !tells_whole_shape(model, "output", graph.outputs()))
    config["max_batch_size"] = max_batch_size = default_max_batch_size;
  if (max_batch_size > 1 && !model.has("dynamic_batching") && !model.has("sequence_batching") &&
      !model.has("ensemble_scheduling"))
    config["dynamic_batching"] = json::object();
  complete_tensors(config, "input", graph.inputs(), names.inputs, names, max_batch_size > 0, model);
  complete_tensors(config, "output", graph.outputs(), names.outputs, names, max_batch_size > 0,
                   model);
  if (model.text("backend").empty() && model.text("platform").empty())
    config["backend"] = "metal_mps";
  check_config(read_settings(config), graph);
  return config;
}

void check_config(const Settings& settings, const amps::Graph& graph) {
  const std::vector<amps::Value> inputs = graph.inputs(), outputs = graph.outputs(),
                                 defaults = graph.defaults();
  std::set<std::string> seen;
  for (const TensorSettings& input : settings.inputs) {
    const amps::Value* value = find(inputs, input.name);
    if (!value) value = find(defaults, input.name);
    if (!value)
      contradiction(settings, "unexpected inference input '" + input.name +
                                  "', allowed inputs are: " + names_of(inputs));
    check_tensor(settings, input, *value, settings.max_batch_size > 0);
    seen.insert(input.name);
  }
  for (const BatchInputSettings& batch : settings.batch_inputs)
    for (const std::string& target : batch.targets) {
      const amps::Value* value = find(inputs, target);
      if (!value) contradiction(settings, "the model has no input '" + target + "' (batch_input)");
      if (amps_value_dtype(value->c()) != batch.dtype)
        contradiction(settings, "batch input '" + target + "' is " + config_datatype(batch.dtype) +
                                    " but the model has " +
                                    config_datatype(amps_value_dtype(value->c())));
      seen.insert(target);
    }
  for (const amps::Value& input : inputs)
    if (!seen.contains(input.name()))
      contradiction(settings, "configuration expects " + std::to_string(settings.inputs.size()) +
                                  " inputs, model provides " + std::to_string(inputs.size()) +
                                  ": input '" + input.name() + "' is not configured");
  if (settings.outputs.empty()) contradiction(settings, "the configuration has no outputs");
  for (const TensorSettings& output : settings.outputs) {
    const amps::Value* value = find(outputs, output.name);
    if (!value)
      contradiction(settings, "unexpected inference output '" + output.name +
                                  "', allowed outputs are: " + names_of(outputs));
    bool cut = false;
    for (const BatchOutputSettings& batch : settings.batch_outputs)
      cut = cut || std::find(batch.targets.begin(), batch.targets.end(), output.name) !=
                       batch.targets.end();
    TensorSettings as_output = output;
    as_output.ragged = cut;
    check_tensor(settings, as_output, *value, settings.max_batch_size > 0);
  }
}

}  // namespace anymps::serving
