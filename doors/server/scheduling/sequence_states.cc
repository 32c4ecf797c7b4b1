// SPDX-License-Identifier: Apache-2.0
// The state outputs are asked for like others; what wraps `respond` takes them out of the answer
// again.
#include "server/scheduling/sequence_states.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "serving/datatype.h"
#include "serving/strings.h"

namespace anymps::server {
SequenceStates::SequenceStates(const inference::ModelConfig& config,
                               const serving::ModelDir& model_dir) {
  std::set<std::string> inputs, outputs;
  for (const auto& state : config.sequence_batching().state()) {
    const std::string where = " of a state of model '" + config.name() + "'";
    if (state.input_name().empty()) refuse("no 'input_name'" + where);
    if (state.output_name().empty()) refuse("no 'output_name'" + where);
    if (!inputs.insert(state.input_name()).second)
      refuse("duplicate 'input_name' '" + state.input_name() + "'" + where);
    if (!outputs.insert(state.output_name()).second)
      refuse("duplicate 'output_name' '" + state.output_name() + "'" + where);
    const std::optional<amps_dtype> dtype = serving::numbered_datatype(state.data_type());
    if (!dtype) refuse("no 'data_type' for '" + state.input_name() + "'" + where);
    states_.push_back({state.input_name(), state.output_name(), *dtype});
    initial_.push_back(read_initial(config, state, *dtype, model_dir));
  }
  for (const inference::ModelOutput& output : config.output()) outputs_.push_back(output.name());
}

SequenceStates::Value SequenceStates::read_initial(
    const inference::ModelConfig& config, const inference::ModelSequenceBatching::State& state,
    amps_dtype dtype, const serving::ModelDir& model_dir) const {
  const std::string& name = state.input_name();
  if (state.initial_state_size() > 1)
    refuse("'initial_state' field for state input name '" + name +
           "' must contain exactly one or zero element. Found " +
           std::to_string(state.initial_state_size()) + " elements");
  Value value;
  if (config.max_batch_size() > 0) value.shape.push_back(1);
  const inference::ModelSequenceBatching::InitialState* given =
      state.initial_state_size() ? &state.initial_state(0) : nullptr;
  if (given) {
    if (given->name().empty())
      refuse("Field 'name' must be set when using initial_state for state input '" + name + "'.");
    if (given->data_type() != state.data_type())
      refuse("The data type used for 'initial_state' field of state '" + name +
             "' does not match the state data type.");
    if (given->dims_size() != state.dims_size())
      refuse(
          "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions "
          "for state input '" +
          name + "'. " + std::to_string(given->dims_size()) +
          " != " + std::to_string(state.dims_size()));
    for (int i = 0; i < state.dims_size(); ++i)
      if (given->dims(i) < 0 || (state.dims(i) != -1 && given->dims(i) != state.dims(i)))
        refuse("'initial_state' dim for input name '" + name +
               "' doesn't match 'state' dim description. " + std::to_string(given->dims(i)) +
               " != " + std::to_string(state.dims(i)));
    value.shape.insert(value.shape.end(), given->dims().begin(), given->dims().end());
  } else {
    for (int64_t extent : state.dims()) value.shape.push_back(extent == -1 ? 1 : extent);
  }

  const std::optional<int64_t> count = serving::element_count(value.shape);
  const std::optional<size_t> size = serving::least_bytes(dtype, value.shape);
  if (!count || !size)
    refuse("the shape " + serving::shape_text(value.shape) + " of state '" + name + "' of model '" +
           config.name() + "' is not possible");
  if (!given || given->state_data_case() == given->kZeroData) {
    value.data = own(std::string(*size, '\0'));
    return value;
  }
  if (given->state_data_case() != given->kDataFile)
    refuse("initial_state setting expects state '" + name + "' to have state_data set");
  const std::filesystem::path path =
      model_dir.file("initial_state", given->data_file(),
                     "model '" + config.name() + "', initial state of '" + name + "', data_file");
  std::ifstream file(path, std::ios::binary);
  if (!file)
    refuse("cannot read the initial state of '" + name + "' of model '" + config.name() +
           "': " + path.string());
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const serving::Piece piece{bytes.data(), bytes.size()};
  if (dtype == AMPS_STRING ? serving::count_strings({&piece, 1}) != *count : bytes.size() != *size)
    refuse("initial_state setting expects " +
           (dtype == AMPS_STRING ? std::to_string(*count) + " strings"
                                 : std::to_string(*size) + " bytes") +
           " for state '" + name + "' of model '" + config.name() + "', but " + path.string() +
           " has other content (" + std::to_string(bytes.size()) + " bytes)");
  value.data = own(std::move(bytes));
  return value;
}

std::shared_ptr<SequenceStates::Values> SequenceStates::zeros(const Values* like) const {
  auto result = std::make_shared<Values>(like ? *like : initial_);
  for (size_t i = 0; i < states_.size(); ++i) {
    Value& value = (*result)[i];
    value.data =
        own(std::string(serving::least_bytes(states_[i].dtype, value.shape).value_or(0), '\0'));
  }
  return result;
}

bool SequenceStates::together(const Values* a, const Values* b) const {
  if (!a) a = &initial_;
  if (!b) b = &initial_;
  return std::equal(a->begin(), a->end(), b->begin(), b->end(),
                    [](const Value& x, const Value& y) { return x.shape == y.shape; });
}

std::string SequenceStates::refusal(const Request& request) const {
  for (const RequestedOutput& output : request.outputs)
    for (const State& state : states_)
      if (output.classes > 0 && output.name == state.output)
        return "output '" + state.output + "' of model '" + request.model +
               "' is a state of the sequence and cannot be classified";
  return "";
}

void SequenceStates::attach(Request& request, std::shared_ptr<Values> values) const {
  if (empty()) return;
  struct Taking {
    std::vector<State> states;
    std::vector<bool> hidden;     // not asked for by the client
    std::vector<Buffer> targets;  // where the client wants it
    std::shared_ptr<Values> values;
  };
  auto taking = std::make_shared<Taking>();
  taking->states = states_;
  taking->hidden.resize(states_.size());
  taking->targets.resize(states_.size());
  if (request.outputs.empty())
    for (const std::string& name : outputs_) request.outputs.push_back({name, 0, {}});
  for (size_t i = 0; i < states_.size(); ++i) {
    const Value& value = (*values)[i];
    request.inputs.push_back({states_[i].input, states_[i].dtype, value.shape, {value.data}});
    const auto asked =
        std::find_if(request.outputs.begin(), request.outputs.end(),
                     [&](const RequestedOutput& one) { return one.name == states_[i].output; });
    taking->hidden[i] = asked == request.outputs.end();
    if (taking->hidden[i])
      request.outputs.push_back({states_[i].output, 0, {}});
    else
      taking->targets[i] = std::exchange(asked->target, {});
  }
  taking->values = std::move(values);

  request.respond = [taking, respond = std::move(request.respond)](Response&& response) {
    const auto fail = [&](Code code, const std::string& message) {
      response.error = Error(code, message);
    };
    Values next(taking->states.size());
    for (size_t i = 0; i < next.size() && !response.error; ++i) {
      const State& state = taking->states[i];
      const auto found =
          std::find_if(response.outputs.begin(), response.outputs.end(),
                       [&](const OutputTensor& one) { return one.name == state.output; });
      if (found == response.outputs.end() || found->dtype != state.dtype) {
        fail(Code::kInternal, "model '" + response.model + "' did not give the state '" +
                                  state.output + "' of type " +
                                  std::string(serving::datatype_name(state.dtype)));
        break;
      }
      next[i] = {found->shape, found->data};
      const Buffer& target = taking->targets[i];
      if (taking->hidden[i]) {
        response.outputs.erase(found);
      } else if (target.data) {
        // The client may write to its own memory at any time: it gets a copy.
        if (target.bytes < found->data.bytes) {
          fail(Code::kInvalidArgument,
               "shared memory size specified with the request for output '" + state.output + "' (" +
                   std::to_string(target.bytes) + " bytes) should be at least " +
                   std::to_string(found->data.bytes) + " bytes to hold the results");
          break;
        }
        if (found->data.bytes) std::memcpy(target.data, found->data.data, found->data.bytes);
        found->data = {target.owner, target.data, found->data.bytes};
      }
    }
    if (response.error)
      response.outputs.clear();
    else
      *taking->values = std::move(next);
    respond(std::move(response));
  };
}

}  // namespace anymps::server
