// SPDX-License-Identifier: Apache-2.0
#include "lowering.h"

namespace bench {

Operand Lowering::operand(const Arg& arg) { return arg.kind == 't' ? Operand{arg.i} : Operand{}; }

std::vector<int64_t> Lowering::ints(size_t i) const {
  std::vector<int64_t> values;
  for (const Arg& item : arg(i).list) values.push_back(item.i);
  return values;
}

bool Lowering::wants(size_t i) const {
  return i < call_.results.size() && call_.results[i].kind == 't';
}

const Tensor& Lowering::about(size_t i) const {
  const Arg& found = arg(i).kind == '[' ? arg(i).list.at(0) : arg(i);
  return recording_.tensors.at(static_cast<size_t>(found.i));
}

Operand Lowering::out(size_t i, size_t item) const {
  const Arg& result = call_.results.at(i);
  return operand(result.kind == '[' ? result.list.at(item) : call_.results.at(item));
}

Operand Lowering::scalar(double value, at::ScalarType dtype) const {
  static std::deque<at::Tensor> kept;
  kept.push_back(at::scalar_tensor(value, at::TensorOptions(dtype)));
  return {-1, kept.back().data_ptr(), dtype_of(dtype)};
}

void Lowering::op(const char* name, std::vector<Operand> in, std::vector<Operand> out,
                  std::vector<Attr> attrs) {
  while (!in.empty() && in.back().tensor < 0 && !in.back().number) in.pop_back();
  steps.push_back({Call(name, std::move(attrs)).get(), std::move(in), std::move(out)});
}

}  // namespace bench
