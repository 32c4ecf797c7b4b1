// SPDX-License-Identifier: Apache-2.0
// Calls of operators outside delegates that are put together by hand, converted and run.
#pragma once

#include <string>
#include <vector>

#include "formats/executorch/operators/kernel_call.h"
#include "formats/onnx/run.h"

namespace anymps::executorch {

// A call in the making: arguments in their order, tensors as inputs of a graph.
class Call {
 public:
  explicit Call(std::string op) { call_.op = std::move(op); }

  Call& value(EValue value) {
    call_.args.push_back(add(std::move(value)));
    return *this;
  }
  Call& none() { return value(None{}); }
  Call& i(int64_t number) { return value(number); }
  Call& f(double number) { return value(number); }
  Call& b(bool flag) { return value(flag); }
  Call& ints(const Ints& numbers) {
    IntList list;
    for (const int64_t number : numbers) list.items.push_back(add(number));
    return value(std::move(list));
  }
  Call& in(const HostTensor& tensor, Dims shape = {}) {
    feeds_.push_back(tensor);
    call_.args.push_back(input(tensor, std::move(shape)));
    return *this;
  }
  Call& list(const std::vector<HostTensor>& tensors) {
    TensorList items;
    for (const HostTensor& tensor : tensors) {
      feeds_.push_back(tensor);
      items.items.push_back(input(tensor, {}));
    }
    return value(std::move(items));
  }
  // A number that an instruction before this one computes: the extent of an input.
  Call& extent(int64_t size) {
    feeds_.push_back(HostTensor::of<float>({size}, std::vector<float>(static_cast<size_t>(size))));
    const std::string name = "N" + std::to_string(feeds_.size());
    const int32_t of = input(feeds_.back(), {Dim::symbol(name)}), size_id = add(int64_t{0});
    KernelCall sym{"aten::sym_size.int", {of, add(int64_t{0}), size_id}};
    convert_kernel(graph_, method_, sym, current_, "size");
    call_.args.push_back(size_id);
    return *this;
  }
  // The same, of the kind that the number has: an Int as an extent, a Double as its half.
  Call& computed(double number, bool is_double) {
    if (!is_double) return extent(static_cast<int64_t>(number));
    extent(static_cast<int64_t>(number * 2));
    const int32_t half = add(0.0);
    KernelCall divide{"executorch_prim::truediv.Scalar",
                      {call_.args.back(), add(int64_t{2}), half}};
    convert_kernel(graph_, method_, divide, current_, "half");
    call_.args.back() = half;
    return *this;
  }
  Call& number_out() {
    outs_.push_back(add(int64_t{0}));
    return *this;
  }
  // The size of an input along an axis, in a list with other numbers.
  Call& size_in_list(size_t of, int64_t axis, const Ints& others) {
    const int32_t size = add(int64_t{0});
    KernelCall sym{"aten::sym_size.int", {call_.args.at(of), add(axis), size}};
    convert_kernel(graph_, method_, sym, current_, "size");
    IntList list;
    list.items.push_back(size);
    for (const int64_t number : others) list.items.push_back(add(number));
    return value(std::move(list));
  }
  Call& out(DType dtype, Ints sizes, bool dynamic = false) {
    Tensor tensor;
    tensor.dtype = dtype;
    tensor.sizes = std::move(sizes);
    if (dynamic) tensor.dynamism = Tensor::Dynamism::kBound;
    outs_.push_back(add(tensor));
    call_.args.push_back(outs_.back());
    return *this;
  }

  std::vector<HostTensor> run() {
    if (outs_.size() == 1)
      call_.args.push_back(outs_[0]);
    else
      call_.args.push_back(add(TensorList{outs_}));
    convert_kernel(graph_, method_, call_, current_, "call");
    result_ = current_.at(static_cast<size_t>(outs_.at(0)));
    Values outputs;
    for (const int32_t out : outs_)
      outputs.push_back(graph_.add("identity", {current_.at(static_cast<size_t>(out))}));
    graph_.set_outputs(outputs);
    return run_graph(graph_, feeds_);
  }

  const Value* result() const { return result_; }

 private:
  int32_t add(EValue value) {
    method_.values.push_back(std::move(value));
    current_.push_back(nullptr);
    return static_cast<int32_t>(method_.values.size()) - 1;
  }
  int32_t input(const HostTensor& host, Dims shape) {
    Tensor tensor;
    tensor.dtype = host.dtype;
    tensor.sizes.assign(host.shape.begin(), host.shape.end());
    const int32_t id = add(tensor);
    if (shape.empty()) shape = to_dims(host.shape);
    current_.back() = graph_.input("x" + std::to_string(id), host.dtype, std::move(shape));
    return id;
  }

  Graph graph_;
  Method method_;
  KernelCall call_;
  Values current_;
  std::vector<HostTensor> feeds_;
  std::vector<int32_t> outs_;
  const Value* result_ = nullptr;
};

}  // namespace anymps::executorch
