// SPDX-License-Identifier: Apache-2.0
// One call of an op: the arguments on the dispatcher's stack as the arguments of a row, and its
// results.
#pragma once

#include <array>
#include <forward_list>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>
#include "device/generator.h"
#include "kernels/signature.h"
#include "lowering/few.h"
#include "lowering/kernel.h"

namespace anymps::aten {

class GivenResults;

class Call {
 public:
  Call(const Signature& signature, const lowering::Kernel& kernel,
       c10::ArrayRef<c10::IValue> arguments);

  // `given`: what is asked of results that the caller gave; nothing, if they are PyTorch's own.
  void run(const GivenResults* given = nullptr);
  // Whether such a call was remembered; then it is done.
  bool run_as_before();
  // `out`: the same call of the op's form with `out`, with these results.
  void remember(const Call& out, c10::ArrayRef<c10::IValue> results) const;
  // The one result that was made; undefined if there is none.
  at::Tensor take_made();
  // On the stack, by the results: those that were made, or the arguments that were written.
  void replace_arguments(torch::jit::Stack& stack);

 private:
  void add(const c10::IValue& value, const Slot& slot);
  void add_tensor(const at::Tensor& tensor, const Slot& slot);
  void add_tensors(const c10::IValue& list, const Slot& slot);
  const at::Tensor& as_stored(const at::Tensor& tensor);
  at::Tensor wide(const at::Tensor& tensor);
  at::Tensor to_write(const at::Tensor& given);
  void give_back(const lowering::Prepared& prepared);
  void add_indices(const c10::IValue& list);
  void add_number(const at::Scalar& number, const Slot& slot);
  at::ScalarType type_written() const;
  void check_elements(const at::Tensor& tensor, const Slot& slot) const;
  void add_ints(const c10::IValue& list);
  void add_floats(const c10::IValue& list);
  void add_state();
  void add_type(at::ScalarType type);
  lowering::Argument& add_kind(lowering::Argument::Kind kind);
  bool find_plain_common_type();
  void find_common_type();
  void find_written();
  bool is_number(const at::Tensor& tensor) const;
  const lowering::Prepared& prepare() const;
  bool overlaps_what_is_written() const;
  void run(const lowering::Prepared& prepared);
  void make_sized(const lowering::Prepared& prepared);
  at::MemoryFormat format_of(int64_t rank) const;
  at::Tensor make(const amps_type& type) const;

  class Memory;

  const Signature& signature_;
  const lowering::Kernel& kernel_;
  const c10::ArrayRef<c10::IValue> given_;
  at::ScalarType common_ = at::ScalarType::Undefined;
  bool device_in_common_ = false;      // a tensor of this device takes part in promotion
  bool narrow_ = false;                // complex halves take part, or are asked for
  const at::Tensor* first_ = nullptr;  // the first tensor of this device
  std::forward_list<at::Tensor> resolved_;
  std::optional<at::Generator> generator_;
  std::array<int32_t, Generator::kStateWords> state_;
  lowering::Few<lowering::Argument, 20> arguments_;
  lowering::Arena<amps_view, 24> views_;
  lowering::Arena<int64_t, 48> ints_;
  lowering::Arena<double, 8> floats_;
  std::vector<at::Tensor> indices_;  // that stand for masks, or were on the CPU
  c10::SmallVector<at::Tensor, 8>
      outputs_;  // made and written; undefined: to be made, or not wanted
  std::vector<std::pair<size_t, at::Tensor>> narrow_outputs_;  // given; the output is a wide one
};

}  // namespace anymps::aten
