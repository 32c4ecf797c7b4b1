// SPDX-License-Identifier: Apache-2.0
// A graph of ATen ops as one executable of the engine: the rows of the table, put together.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include "anymps/anymps.h"

namespace anymps::aten {

class CompiledGraph {
 public:
  // What Python has written of it (python/torch_anymps/compiler.py):
  //   {"inputs": [{"dtype", "dims"}], "nodes": [{"op", "args", "kwargs", "results": [{"dtype",
  //   "dims"} or null]}],
  //    "outputs": [{"value", "dims", "strides", "dtype"}]}
  // Values are numbered: inputs first, then the results of the nodes. An argument is a JSON value,
  // or {"value": n},
  // {"dtype": n}, {"complex": [re, im]}. Types are numbers of c10::ScalarType.
  explicit CompiledGraph(std::string_view json);
  ~CompiledGraph();
  CompiledGraph(const CompiledGraph&) = delete;
  CompiledGraph& operator=(const CompiledGraph&) = delete;

  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) const;

 private:
  friend class GraphLowering;
  struct Output {
    at::ScalarType dtype;
    std::vector<int64_t> dims, strides;
  };
  amps_executable* executable_ = nullptr;
  size_t inputs_ = 0, states_ = 0;  // random states are fed behind the inputs
  std::vector<Output> outputs_;
};

}  // namespace anymps::aten
