// SPDX-License-Identifier: Apache-2.0
// Implicit state: outputs of one request of a sequence that are inputs of the next one. They are
// handed on as they are, without a copy; the client neither sends nor, unless it asks, sees them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model_config.pb.h"
#include "server/core/request.h"
#include "serving/reach.h"

namespace anymps::server {

class SequenceStates {
 public:
  // Reads the initial states from model_dir/initial_state. Throws kInvalidArgument.
  SequenceStates(const inference::ModelConfig& config, const serving::ModelDir& model_dir);

  struct Value {
    std::vector<int64_t> shape;
    Buffer data;
  };
  using Values = std::vector<Value>;  // one for each state

  bool empty() const { return states_.empty(); }
  std::shared_ptr<Values> initial() const { return std::make_shared<Values>(initial_); }
  // Zeros of the shapes of `like`; null: of the initial states.
  std::shared_ptr<Values> zeros(const Values* like) const;
  // Whether two rows can be in one batch; null: one with the initial states.
  bool together(const Values* a, const Values* b) const;

  // Why the request's outputs cannot be given; "" if they can.
  std::string refusal(const Request& request) const;
  // The states become inputs of the request. Its answer replaces them, if it is not an error.
  void attach(Request& request, std::shared_ptr<Values> values) const;

 private:
  struct State {
    std::string input, output;
    amps_dtype dtype;
  };
  Value read_initial(const inference::ModelConfig& config,
                     const inference::ModelSequenceBatching::State& state, amps_dtype dtype,
                     const serving::ModelDir& model_dir) const;

  std::vector<State> states_;
  Values initial_;
  std::vector<std::string> outputs_;  // of the configuration
};

}  // namespace anymps::server
