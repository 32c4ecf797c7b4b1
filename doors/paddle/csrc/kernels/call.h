// SPDX-License-Identifier: Apache-2.0
// One call of a kernel: Paddle's arguments, whatever their C++ types, as the arguments of a row,
// and its output tensors. Everything about it that does not depend on the signature is in call.cc.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <paddle/phi/backends/custom/custom_context.h>
#include <paddle/phi/common/int_array.h>
#include <paddle/phi/common/scalar.h>
#include <paddle/phi/core/dense_tensor.h>
#include <paddle/phi/core/selected_rows.h>
#include <paddle/utils/optional.h>
#include "kernels/types.h"
#include "lowering/few.h"
#include "lowering/kernel.h"

namespace anymps::paddle {

using phi::DenseTensor;

class KernelCall {
 public:
  explicit KernelCall(const lowering::Kernel& kernel) : kernel_(kernel) {}

  void add(const DenseTensor& tensor);
  void add(const ::paddle::optional<DenseTensor>& tensor);
  void add(const std::vector<const DenseTensor*>& tensors);
  void add(const std::vector<const phi::TensorBase*>& tensors);
  void add(const ::paddle::optional<std::vector<const DenseTensor*>>& tensors);
  // Two arguments: which rows, and their values.
  void add(const phi::SelectedRows& rows);
  void add(bool flag) { add_integer(lowering::Argument::Kind::kFlag, flag); }
  void add(int number) { add_integer(lowering::Argument::Kind::kInt, number); }
  void add(int64_t number) { add_integer(lowering::Argument::Kind::kInt, number); }
  void add(float number) { add(static_cast<double>(number)); }
  void add(double number);
  void add(const std::string& text);
  void add(const std::vector<int>& numbers) { add_copied_ints(numbers); }
  void add(const std::vector<bool>& flags) { add_copied_ints(flags); }
  void add(const std::vector<int64_t>& numbers);
  void add(const std::vector<float>& numbers) { add_copied_floats(numbers); }
  void add(const std::vector<double>& numbers);
  void add(const std::vector<std::string>& texts);
  void add(const std::vector<phi::Scalar>& numbers);
  void add(const phi::IntArray& numbers) { add(numbers.GetData()); }
  void add(const phi::Scalar& number);
  void add(phi::DataType dtype);
  void add(DenseTensor* output) { outputs_.push_back(output); }
  void add(const std::vector<DenseTensor*>& outputs);

  void run(const phi::CustomContext& context);

 private:
  void add_integer(lowering::Argument::Kind kind, int64_t number);
  void add_asked(const phi::CustomContext& context);
  void add_shape_of(const DenseTensor* output);
  void add_random_state(const phi::CustomContext& context);
  amps_view view_of(const DenseTensor& tensor);

  template <class Numbers>
  void add_copied_ints(const Numbers& numbers) {
    const std::span<int64_t> copies = ints_.take(numbers.size());
    std::copy(numbers.begin(), numbers.end(), copies.begin());
    arguments_.push_back({.kind = lowering::Argument::Kind::kInts, .ints = copies});
  }
  template <class Numbers>
  void add_copied_floats(const Numbers& numbers) {
    const std::span<double> copies = floats_.take(numbers.size());
    std::copy(numbers.begin(), numbers.end(), copies.begin());
    arguments_.push_back({.kind = lowering::Argument::Kind::kFloats, .floats = copies});
  }

  const lowering::Kernel& kernel_;
  lowering::Few<lowering::Argument, 24> arguments_;
  lowering::Few<DenseTensor*, 8> outputs_;
  lowering::Arena<amps_view, 16> views_;  // all that arguments point to
  lowering::Arena<int64_t, 32> ints_;
  lowering::Arena<double, 8> floats_;
  std::array<int32_t, 7> state_{};
};

}  // namespace anymps::paddle
