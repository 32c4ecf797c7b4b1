// SPDX-License-Identifier: Apache-2.0
// Ops that the interpreter runs itself: control flow, lists, optionals, variables. One function per
// op:  STRUCTURAL(sequence_length) { … call.input(0) … }
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/fork.h"
#include "graph/graph.h"
#include "runtime/interpreter.h"

namespace anymps {

// The variables of an executable. A value that is read stays as it is when another is assigned.
class Variables {
 public:
  std::optional<Tensor> get(const std::string& name) const;
  void set(const std::string& name, Tensor value);

 private:
  mutable ForkMutex mutex_;
  std::map<std::string, Tensor> values_;
};

class StructuralCall {
 public:
  using Bodies = std::map<std::string, std::shared_ptr<Executable>>;
  StructuralCall(const Node& node, Device& device, const RunState& state, const Bodies& bodies,
                 std::vector<Tensor> inputs)
      : node(node), device(device), state(state), inputs(std::move(inputs)), bodies_(bodies) {}

  const Node& node;
  Device& device;
  const RunState& state;
  std::vector<Tensor> inputs;

  bool has(size_t i) const { return i < node.inputs.size() && node.inputs[i] != nullptr; }
  size_t carried(const char* attr) const { return node.attrs.i(attr); }
  std::vector<Tensor> run(const char* body, std::vector<Tensor> feeds) const;
  int64_t number(const Tensor& tensor) const;  // the only element of an integer or a bool
  std::vector<int64_t> numbers(const Tensor& tensor) const;
  Tensor scalar(DType dtype, int64_t number) const;  // of i32, i64 or bool
  // The same in the memory of the one before, unless somebody else holds that.
  void set_scalar(Tensor& tensor, DType dtype, int64_t number) const;
  Tensor copy(const Tensor& tensor) const;  // contiguous memory of its own

 private:
  const Bodies& bodies_;
};

using StructuralFn = std::vector<Tensor> (*)(StructuralCall& call);
// Body input `body` and those after it get node input `node` and those after it, in every run.
struct Captures {
  size_t body = 0, node = 0;
};
using CapturesFn = Captures (*)(const Node& node, const std::string& attr);

struct StructuralOp {
  StructuralFn run = nullptr;
  CapturesFn captures = nullptr;
};
const StructuralOp& structural_op(const Op& op);  // fails if there is none

// Plans hold tensors of numbers; the rest is for the interpreter. Whether an op that can be
// measured has to be depends on the feeds (a range over an extent has not): making the plan tells.
bool fits_a_plan(const Graph& graph);
// Whether nothing but branches keeps a graph from a plan, and shapes alone choose these.
bool branches_follow_shapes(const Graph& graph);
struct StructuralRegistrar {
  StructuralRegistrar(const char* op, StructuralFn run, CapturesFn captures = nullptr);
};

#define STRUCTURAL(op_name, ...)                                                             \
  static std::vector<::anymps::Tensor> structural_##op_name(::anymps::StructuralCall& call); \
  static const ::anymps::StructuralRegistrar structural_registrar_##op_name(                 \
      #op_name, structural_##op_name __VA_OPT__(, ) __VA_ARGS__);                            \
  static std::vector<::anymps::Tensor> structural_##op_name(::anymps::StructuralCall& call)

// Views and lists.
Tensor piece(const Tensor& tensor, int64_t axis, int64_t first, int64_t count);
Tensor slice_at(const Tensor& tensor, int64_t axis, int64_t index);  // without the axis
Tensor list_of(DType dtype, std::vector<Tensor> items);
// Tensors joined along an axis, or stacked along a new one. `empty` describes an element where
// there is none.
Tensor join(const StructuralCall& call, const std::vector<Tensor>& items, int64_t axis, bool stack,
            const ValueType& empty);

}  // namespace anymps
