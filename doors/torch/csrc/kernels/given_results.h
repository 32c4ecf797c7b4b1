// SPDX-License-Identifier: Apache-2.0
// What PyTorch asks of tensors that the caller gives for results (`out=`): their types, and which
// memory they may share. Of structured ops its meta function knows, of the others the type that the
// row gives the result.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/SmallVector.h>
#include "kernels/signature.h"
#include "lowering/kernel.h"

namespace anymps::aten {

class GivenResults {
 public:
  // `structured`: there is a meta function. What is given lives as long as this.
  GivenResults(const c10::OperatorHandle& op, const Signature& signature, bool structured,
               c10::ArrayRef<c10::IValue> arguments);

  // Fails with PyTorch's words. What was accepted once is not asked for again.
  void check(const lowering::Prepared& prepared) const;
  // The same where the engine has refused already: for PyTorch's words.
  void ask_pytorch() const;

 private:
  bool shares_a_part() const;
  bool bytes_for_bools(const lowering::Prepared& prepared) const;
  void check_types(const lowering::Prepared& prepared) const;
  void check_memory() const;
  void check_growth(const lowering::Prepared& prepared) const;

  const c10::OperatorHandle& op_;
  const Signature& signature_;
  const bool structured_;
  const c10::ArrayRef<c10::IValue> arguments_;
  c10::SmallVector<const at::Tensor*, 8> read_, written_;
};

}  // namespace anymps::aten
