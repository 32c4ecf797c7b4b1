// SPDX-License-Identifier: Apache-2.0
// A graph of ATen ops as one executable of the engine: the rows of the table, put together.
//
// In a graph for inference PyTorch tells which inputs are weights. As constants they are packed
// once, and batch norms are folded into them; so that is what they are as long as they stay the
// same. Their memory is watched: when one was written to, or is another tensor, the graph is
// compiled anew.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include "anymps/anymps.h"
#include "compiled/weights.h"

namespace anymps::aten {

// What a graph was compiled to.
struct Lowered {
  struct Output {
    at::ScalarType dtype;
    std::vector<int64_t> dims, strides;
  };
  Lowered() = default;
  ~Lowered();
  Lowered(const Lowered&) = delete;
  Lowered& operator=(const Lowered&) = delete;

  amps_executable* executable = nullptr;
  std::vector<size_t> feeds;  // which inputs of the graph
  size_t states = 0;          // random states are fed behind them
  std::vector<Output> outputs;
};

class CompiledGraph {
 public:
  // What Python has written of it (python/torch_anymps/compiler.py):
  //   {"inputs": [{"dtype", "dims"}], "weights": [n], "nodes": [{"op", "args", "kwargs",
  //    "results": [{"dtype", "dims"} or null]}],
  //    "outputs": [{"value", "dims", "strides", "dtype"}]}
  // Values are numbered: inputs first, then the results of the nodes. An argument is a JSON value,
  // or {"value": n},
  // {"dtype": n}, {"complex": [re, im]}. Types are numbers of c10::ScalarType. Weights are numbers
  // of inputs.
  explicit CompiledGraph(std::string json);
  CompiledGraph(const CompiledGraph&) = delete;
  CompiledGraph& operator=(const CompiledGraph&) = delete;

  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs);

 private:
  std::shared_ptr<const Lowered> lowered_for(const std::vector<at::Tensor>& inputs);

  std::string json_;
  size_t inputs_;
  std::mutex mutex_;  // of all below
  Weights weights_;
  std::shared_ptr<const Lowered> plain_, with_constants_;
};

// With the inputs of these numbers as constants, which must not change while it is used.
std::shared_ptr<const Lowered> lower(const std::string& json, const std::vector<at::Tensor>& inputs,
                                     const std::vector<size_t>& constants);

}  // namespace anymps::aten
