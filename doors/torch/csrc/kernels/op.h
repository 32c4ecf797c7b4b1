// SPDX-License-Identifier: Apache-2.0
// An ATen op on the device mps: a row of the table as PyTorch's dispatcher calls it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include "kernels/signature.h"
#include "lowering/kernel.h"
#include "strict.h"

namespace anymps::aten {

// Made at its first use. std::call_once writes to memory of the thread at every call.
template <class T>
class Once {
 public:
  template <class... Arguments>
  const T& get(const Arguments&... arguments) {
    if (const T* made = seen_.load(std::memory_order_acquire)) return *made;
    std::call_once(once_, [&] {
      made_ = std::make_unique<T>(arguments...);
      seen_.store(made_.get(), std::memory_order_release);
    });
    return *made_;
  }

 private:
  std::once_flag once_;
  std::unique_ptr<T> made_;
  std::atomic<const T*> seen_{nullptr};
};

// A row with the schema of one of its ops. Made at the first call: few of the ops of a program are
// ever called.
class RowOp {
 public:
  // `only_here`: PyTorch neither has a kernel for it on a Mac nor makes it of other ops.
  RowOp(const TableRow& row, std::string name, bool only_here)
      : row_(row), name_(std::move(name)), only_here_(only_here) {}

  struct Ready {
    Ready(const c10::FunctionSchema& schema, const TableRow& row, const std::string& name);
    bool defined;  // what rows share, first
    Signature signature;
    lowering::Row row;
    lowering::Kernel kernel;
  };
  const Ready& ready(const c10::FunctionSchema& schema) { return ready_.get(schema, row_, name_); }
  const TableRow& row() const { return row_; }
  const std::string& name() const { return name_; }
  bool refused() const { return only_here_ && strict(); }
  // PyTorch has a function for the types and shapes of its results, and makes its other forms of
  // it.
  bool structured() const { return structured_; }
  void set_structured() { structured_ = true; }

 private:
  const TableRow& row_;
  const std::string name_;
  const bool only_here_;
  bool structured_ = false;
  Once<Ready> ready_;
};

// An op as the dispatcher calls it.
class BoxedOp {
 public:
  virtual ~BoxedOp() = default;
  // Replaces the arguments on the stack by the results.
  virtual void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet keys,
                          torch::jit::Stack* stack) = 0;
  // For an op with one result, which is made or the first argument: false, and nothing is done, if
  // it must be called with a stack.
  virtual bool run_at_once(const c10::OperatorHandle& handle, c10::ArrayRef<c10::IValue> arguments,
                           at::Tensor& made) = 0;
};

class Op final : public BoxedOp {
 public:
  explicit Op(std::shared_ptr<RowOp> row) : row_(std::move(row)) {}
  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) override;
  bool run_at_once(const c10::OperatorHandle& handle, c10::ArrayRef<c10::IValue> arguments,
                   at::Tensor& made) override;

 private:
  std::shared_ptr<RowOp> row_;
};

// The functional or in-place form of an op whose form with `out` has a row. PyTorch's own code
// makes the result, by rules of its own for type, shape and strides, and calls that; what came out
// is remembered, and later calls with such arguments go straight to the kernel.
class DerivedOp final : public BoxedOp {
 public:
  DerivedOp(std::shared_ptr<RowOp> out, c10::OperatorHandle out_handle)
      : out_(std::move(out)), out_handle_(std::move(out_handle)) {}
  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) override;
  bool run_at_once(const c10::OperatorHandle& handle, c10::ArrayRef<c10::IValue> arguments,
                   at::Tensor& made) override;

 private:
  const Signature& signature(const c10::OperatorHandle& handle);
  void call_and_remember(const c10::OperatorHandle& handle, torch::jit::Stack* stack);

  std::shared_ptr<RowOp> out_;
  const c10::OperatorHandle out_handle_;
  Once<Signature> signature_;
};

}  // namespace anymps::aten
