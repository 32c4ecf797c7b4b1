// SPDX-License-Identifier: Apache-2.0
// The inputs that tell a model about the sequences of its batch: which rows start, end or are there
// at all, and the sequence's id.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model_config.pb.h"
#include "server/core/request.h"

namespace anymps::server {

class SequenceControls {
 public:
  // Throws kInvalidArgument with Triton's wording if the configuration is wrong.
  explicit SequenceControls(const inference::ModelConfig& config);

  // Why the model cannot take the id of this request; "" if it can.
  std::string refusal(const Request& request) const;
  // Appends the control inputs. A `filler` request is not ready, and has neither flags nor an id.
  void add(Request& request) const;

 private:
  using Kind = inference::ModelSequenceBatching::Control::Kind;
  struct Control {
    std::string name;
    Kind kind;
    amps_dtype dtype;
    Buffer no, yes;  // of the flags
  };
  Buffer id_of(const Request& request, amps_dtype dtype) const;

  std::vector<Control> controls_;
  std::vector<int64_t> shape_;
};

// The id as messages show it.
std::string sequence_text(const SequenceId& id);

}  // namespace anymps::server
