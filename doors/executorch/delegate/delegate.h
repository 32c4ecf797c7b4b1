// SPDX-License-Identifier: Apache-2.0
// One payload, compiled, and how it is called with ExecuTorch's tensors.
#pragma once

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/span.h>

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "anymps/anymps.hpp"

namespace anymps::delegate {

class Delegate {
 public:
  // `payload` must outlive this: weights are used in place.
  Delegate(std::span<const std::byte> payload, int threads, const std::string& name);

  // `args`: the inputs, then the outputs. Outputs of other sizes are resized where that is allowed.
  void run(executorch::runtime::Span<executorch::runtime::EValue*> args,
           executorch::runtime::EventTracer* tracer);

 private:
  using Shape = std::vector<int64_t>;
  using Shapes = std::vector<Shape>;

  // The payload compiled for certain shapes, or for all shapes if axes are dynamic.
  struct Compiled {
    amps::Executable executable;
    std::vector<amps::Value> inputs, outputs;
    std::map<Shapes, Shapes> outputs_of;  // shapes of the outputs for those of the inputs

    explicit Compiled(amps::Executable made);
    bool takes(const Shapes& shapes) const;
  };

  std::unique_ptr<Compiled> compile(const Shape* dims) const;
  Compiled& compiled_for(const Shapes& shapes);
  void run(Compiled& compiled, executorch::runtime::Span<executorch::runtime::EValue*> args,
           const Shapes& shapes, executorch::runtime::EventTracer* tracer);

  const std::span<const std::byte> payload_;
  const int threads_;
  const std::string name_;
  const amps::Device device_;
  // The file tells the largest shapes and not which extents are open: those that came otherwise are
  // made dynamic, and where that cannot be, each shape is compiled separately.
  const std::unique_ptr<Compiled> declared_;
  std::unique_ptr<Compiled> open_;
  bool can_open_ = true;
  std::map<Shapes, std::unique_ptr<Compiled>> fixed_;
};

}  // namespace anymps::delegate
