// SPDX-License-Identifier: Apache-2.0
// Reads a model's configuration. What cannot be understood is refused here, with the name of the
// field, so that nothing later has to guess.
#include "serving/settings.h"

#include <algorithm>
#include <array>
#include <set>

#include "serving/datatype.h"
#include "serving/json.h"

namespace anymps::serving {
namespace {

using nlohmann::json;

amps_dtype datatype_of(const Fields& fields) {
  const std::string name = fields.text("data_type", "TYPE_INVALID");
  const std::optional<amps_dtype> dtype = parse_config_datatype(name);
  if (!dtype) fields.fail("field 'data_type': '" + name + "' is no data type");
  return *dtype;
}

std::vector<int64_t> dims_of(const Fields& fields, const char* field) {
  std::vector<int64_t> dims = fields.integers(field);
  for (const int64_t extent : dims)
    if (extent < 1 && extent != -1)
      fields.fail(std::string("field '") + field + "' must hold -1 or numbers of 1 and more, " +
                  std::to_string(extent) + " given");
  return dims;
}

TensorSettings read_tensor(const json& value, const std::string& model, const char* kind) {
  const std::string name = Fields(value, model + ", " + kind).text("name");
  const Fields fields(value, model + ", " + kind + " '" + name + "'");
  if (name.empty()) fields.fail("field 'name' is empty");
  TensorSettings tensor;
  tensor.name = name;
  tensor.dtype = datatype_of(fields);
  tensor.dims = dims_of(fields, "dims");
  if (fields.has("reshape")) {
    const Fields reshape(fields.object("reshape"), fields.where() + ", reshape");
    tensor.reshape = dims_of(reshape, "shape");
    const auto free = [](const std::vector<int64_t>& dims) {
      return std::count(dims.begin(), dims.end(), -1);
    };
    if (free(*tensor.reshape) != free(tensor.dims))
      fields.fail("field 'reshape': " + shape_text(*tensor.reshape) + " and the dims " +
                  shape_text(tensor.dims) + " must have the same number of variable extents");
    if (!free(tensor.dims) && element_count(*tensor.reshape) != element_count(tensor.dims))
      fields.fail("field 'reshape': " + shape_text(*tensor.reshape) +
                  " has not as many elements as the dims " + shape_text(tensor.dims));
  }
  if (fields.flag("is_shape_tensor")) fields.fail("field 'is_shape_tensor' is not supported");
  tensor.optional = fields.flag("optional");
  tensor.ragged = fields.flag("allow_ragged_batch");
  return tensor;
}

void read_tensors(const Fields& model, const char* field, const char* kind,
                  std::vector<TensorSettings>& to) {
  std::set<std::string> names;
  for (const json& value : model.items(field)) {
    to.push_back(read_tensor(value, model.where(), kind));
    if (!names.insert(to.back().name).second)
      model.fail(std::string(kind) + " '" + to.back().name + "' is there twice");
  }
}

constexpr std::array kBatchInputKinds = {"BATCH_ELEMENT_COUNT",
                                         "BATCH_ACCUMULATED_ELEMENT_COUNT",
                                         "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
                                         "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
                                         "BATCH_ITEM_SHAPE",
                                         "BATCH_ITEM_SHAPE_FLATTEN"};

void need_source(const Fields& fields, const Settings& settings,
                 const std::vector<std::string>& sources, const std::vector<std::string>& targets) {
  if (targets.empty()) fields.fail("field 'target_name' is empty");
  if (sources.size() != 1) fields.fail("field 'source_input' must name one input");
  for (const TensorSettings& input : settings.inputs)
    if (input.name == sources[0]) return;
  fields.fail("field 'source_input': there is no input '" + sources[0] + "'");
}

void read_batch(const Fields& model, Settings& settings) {
  for (const json& value : model.items("batch_input")) {
    const Fields fields(value, model.where() + ", batch_input");
    BatchInputSettings input;
    input.kind = fields.text("kind", kBatchInputKinds[0]);
    if (std::find(kBatchInputKinds.begin(), kBatchInputKinds.end(), input.kind) ==
        kBatchInputKinds.end())
      fields.fail("field 'kind': '" + input.kind + "' is not known");
    input.targets = fields.texts("target_name");
    input.sources = fields.texts("source_input");
    input.dtype = datatype_of(fields);
    if (input.dtype != AMPS_F32 && input.dtype != AMPS_I32)
      fields.fail("field 'data_type' must be TYPE_FP32 or TYPE_INT32");
    need_source(fields, settings, input.sources, input.targets);
    settings.batch_inputs.push_back(std::move(input));
  }
  for (const json& value : model.items("batch_output")) {
    const Fields fields(value, model.where() + ", batch_output");
    const std::string kind = fields.text("kind", "BATCH_SCATTER_WITH_INPUT_SHAPE");
    if (kind != "BATCH_SCATTER_WITH_INPUT_SHAPE")
      fields.fail("field 'kind': '" + kind + "' is not known");
    BatchOutputSettings output{fields.texts("target_name"), fields.texts("source_input")};
    need_source(fields, settings, output.sources, output.targets);
    settings.batch_outputs.push_back(std::move(output));
  }
}

// The inputs and outputs that the sequence batcher adds: controls of one element per row, and
// states.
void read_sequence(const Fields& model, Settings& settings) {
  const Fields sequence(model.object("sequence_batching"), model.where() + ", sequence_batching");
  for (const json& value : sequence.items("control_input")) {
    const Fields fields(value, sequence.where() + ", control_input");
    TensorSettings input;
    input.name = fields.text("name");
    input.dims = {1};
    input.internal = true;
    const json& controls = fields.items("control");
    if (input.name.empty() || controls.empty())
      fields.fail("fields 'name' and 'control' must be there");
    const Fields control(controls[0], fields.where() + " '" + input.name + "'");
    if (control.text("kind") == "CONTROL_SEQUENCE_CORRID")
      input.dtype = datatype_of(control);
    else if (!control.items("fp32_false_true").empty())
      input.dtype = AMPS_F32;
    else if (!control.items("bool_false_true").empty())
      input.dtype = AMPS_BOOL;
    else
      input.dtype = AMPS_I32;
    settings.inputs.push_back(std::move(input));
  }
  for (const json& value : sequence.items("state")) {
    const Fields fields(value, sequence.where() + ", state");
    TensorSettings tensor;
    tensor.name = fields.text("input_name");
    tensor.dtype = datatype_of(fields);
    tensor.dims = dims_of(fields, "dims");
    tensor.internal = true;
    settings.inputs.push_back(tensor);
    tensor.name = fields.text("output_name");
    settings.outputs.push_back(std::move(tensor));
  }
}

int64_t number(const Fields& parameter, const std::string& key, const std::string& text,
               int64_t low, int64_t high) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    parameter.fail("parameter '" + key + "' must be a number in " + std::to_string(low) + ".." +
                   std::to_string(high) + ", '" + text + "' given");
  return value;
}

bool truth(const Fields& parameter, const std::string& key, std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (text == "1" || text == "true" || text == "on" || text == "yes") return true;
  if (text == "0" || text == "false" || text == "off" || text == "no" || text.empty()) return false;
  parameter.fail("parameter '" + key + "' must be true or false, '" + text + "' given");
}

constexpr std::array kParameters = {"optimization_level", "threads", "profile",   "cache_dir",
                                    "graph_cache",        "device",  "precision", "micro_batch"};

void check_device(const Fields& where, const std::string& device) {
  const std::vector<std::string> devices = amps::Device::names();
  if (device.empty() || std::find(devices.begin(), devices.end(), device) != devices.end()) return;
  std::string known;
  for (const std::string& name : devices) known += (known.empty() ? "" : ", ") + name;
  where.fail("parameter 'device': there is no device '" + device + "', only " + known);
}

// Keys of others are left to them.
void read_parameter(const Fields& where, const std::string& key, const std::string& text,
                    Settings& settings) {
  if (key == "optimization_level") {
    settings.optimization_level = static_cast<int>(number(where, key, text, 0, 1));
  } else if (key == "threads") {
    settings.threads = static_cast<int>(number(where, key, text, 0, AMPS_MAX_THREADS));
  } else if (key == "profile") {
    settings.profile = truth(where, key, text);
  } else if (key == "cache_dir") {
    if (text.find('\0') != std::string::npos) where.fail("parameter 'cache_dir' has a zero byte");
    settings.cache_dir = text;
  } else if (key == "graph_cache") {
    settings.graph_cache = number(where, key, text, 0, 1 << 20);
  } else if (key == "micro_batch") {
    settings.micro_batch = text == "auto" ? -1 : number(where, key, text, 0, 1 << 20);
  } else if (key == "device") {
    check_device(where, text);
    settings.device = text;
  } else if (key == "precision") {
    if (!text.empty() && text != "fp32" && text != "fp16" && text != "bf16")
      where.fail("parameter 'precision' must be fp32, fp16 or bf16, '" + text + "' given");
    settings.precision = text;
  }
}

void read_parameters(const Fields& model, const OperatorOptions& options, Settings& settings) {
  const Fields graph(Fields(model.object("optimization"), model.where()).object("graph"),
                     model.where() + ", optimization.graph");
  if (graph.integer("level") < 0) settings.optimization_level = 0;
  const json& own = model.object("parameters");
  for (const auto& [key, text] : options.parameters)
    if (!own.contains(key)) read_parameter(model, key, text, settings);
  for (const auto& [key, value] : own.items())
    read_parameter(model, key,
                   Fields(value, model.where() + ", parameter '" + key + "'").text("string_value"),
                   settings);
}

}  // namespace

std::string OperatorOptions::names() {
  std::string names = "default-max-batch-size, op_library_directory";
  for (const char* name : kParameters) names += std::string(", ") + name;
  return names;
}

bool OperatorOptions::set(const std::string& key, const std::string& value) {
  const json nothing = json::object();
  const Fields where(nothing, "backend option");
  if (key == "default-max-batch-size") {
    default_max_batch_size = number(where, key, value, 0, kMostRows);
  } else if (key == "op_library_directory") {
    if (value.empty()) where.fail("'" + key + "' names no folder");
    op_libraries.push_back(std::filesystem::absolute(value));
  } else if (std::find(kParameters.begin(), kParameters.end(), key) != kParameters.end()) {
    Settings checked;
    read_parameter(where, key, value, checked);
    parameters[key] =
        key == "cache_dir" && !value.empty() ? std::filesystem::absolute(value).string() : value;
  } else {
    return false;
  }
  return true;
}

Settings read_settings(const json& config, const OperatorOptions& options) {
  Settings settings;
  settings.name = Fields(config, "model configuration").text("name");
  const Fields model(config, "model '" + settings.name + "'");
  settings.max_batch_size = model.integer("max_batch_size");
  if (settings.max_batch_size < 0) model.fail("field 'max_batch_size' must not be negative");
  if (settings.max_batch_size > kMostRows)
    model.fail("field 'max_batch_size' is at most " + std::to_string(kMostRows) + ", " +
               std::to_string(settings.max_batch_size) + " given");
  read_tensors(model, "input", "input", settings.inputs);
  read_tensors(model, "output", "output", settings.outputs);
  for (const TensorSettings& input : settings.inputs)
    if (input.ragged && settings.max_batch_size == 0)
      model.fail("input '" + input.name +
                 "': field 'allow_ragged_batch' needs a max_batch_size of 1 or more");
  read_batch(model, settings);
  read_sequence(model, settings);
  settings.model_filename = model.text("default_model_filename");
  settings.op_libraries =
      Fields(model.object("model_operations"), model.where()).texts("op_library_filename");
  read_parameters(model, options, settings);
  return settings;
}

}  // namespace anymps::serving
