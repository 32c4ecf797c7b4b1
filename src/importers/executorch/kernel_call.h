// SPDX-License-Identifier: Apache-2.0
// One operator outside a delegate ("aten::add.out") while it is converted: its arguments by
// position, checked for their kind, and the graph to add to. The last arguments are the tensors to
// write into; a converter returns what goes into them, in their order.
//
// A converter per operator, named after it, in the file of its family (aten_math.cc, …). Overloads
// that differ in arguments are converters of their own.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "importers/executorch/program.h"
#include "importers/writer.h"

namespace anymps::executorch {

class KernelArguments : public Writer {
 public:
  // `current[i]` is what value i of the method holds at this point of the program: set for tensors
  // that were fed, computed or are constants.
  KernelArguments(Graph& graph, const Method& method, const KernelCall& call, const Values& current,
                  std::string name)
      : Writer(graph, std::move(name)), method_(method), call_(call), current_(current) {}

  size_t count() const { return call_.args.size(); }
  bool is_none(size_t i) const;
  bool is_tensor(size_t i) const;  // where an overload takes both tensors and numbers

  Value* tensor(size_t i) const;
  Value* maybe_tensor(size_t i) const;  // null: None
  Values tensors(size_t i) const;       // a list; null entries where it holds None
  int64_t i(size_t i) const;
  double f(size_t i) const;  // an Int, a Bool or a Double
  bool b(size_t i) const;
  std::string s(size_t i) const;
  Ints ints(size_t i) const;
  std::optional<int64_t> maybe_i(size_t i) const;
  std::optional<double> maybe_f(size_t i) const;
  std::optional<Ints> maybe_ints(size_t i) const;
  std::optional<DType> maybe_dtype(size_t i) const;  // of ExecuTorch's ScalarType numbers
  bool is_integral(size_t i) const;                  // a number that is an Int or a Bool

  // The tensor that argument i is declared to be: of an out-argument, its dtype and sizes.
  const Tensor& declared(size_t i) const;
  // An axis argument in [-rank, rank) as one in [0, rank).
  int64_t axis(size_t i, const Value* of) const { return normalize(this->i(i), rank(of)); }

 private:
  const EValue& value(size_t i) const;
  template <typename T>
  const T& as(size_t i, const char* kind) const;

  const Method& method_;
  const KernelCall& call_;
  const Values& current_;
};

using ConvertKernel = Values (*)(KernelArguments&);

struct KernelConverter {
  std::string_view op;  // "aten::add.out"
  ConvertKernel convert = nullptr;
  // Set instead of `convert` where an op of the table does the same to its one or two tensors.
  const char* same_as = nullptr;

  KernelConverter(std::string_view op, ConvertKernel convert) : op(op), convert(convert) {}
  KernelConverter(std::string_view op, const char* same_as) : op(op), same_as(same_as) {}
};

const KernelConverter* find_kernel(std::string_view op);  // null: none
std::vector<std::string> supported_kernels();             // sorted

// The families.
std::span<const KernelConverter> aten_math_kernels();

}  // namespace anymps::executorch
