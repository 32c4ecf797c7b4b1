// SPDX-License-Identifier: Apache-2.0
// One operator outside a delegate ("aten::add.out") while it is converted: its arguments by
// position, checked for their kind, and the graph to add to. The arguments of a call are those of
// the operator's schema, defaults and out-tensors included; after them come the results again: one
// value, or a list of tensors. A converter returns what goes into these, in their order, and after
// them what goes into arguments that the operator changes (KernelConverter::changes).
//
// A converter per operator, named after it, in the file of its family (elementwise.cc, …).
// Overloads that differ in arguments are separate converters.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/executorch/program/program.h"
#include "formats/node_builder.h"

namespace anymps::executorch {

class KernelArguments : public NodeBuilder {
 public:
  // `current[i]` is what value i of the method holds at this point of the program: set for tensors
  // that were fed, computed or are constants, and for numbers that an instruction computed (scalars
  // of i64, f64 or bool). Numbers that the file holds are not in it.
  KernelArguments(Graph& graph, const Method& method, const KernelCall& call, const Values& current,
                  std::string name, const char* engine_op = "");

  // The op of the table that a converter of several operators is to add.
  const char* const engine_op;

  size_t count() const { return call_.args.size(); }
  bool is_none(size_t i) const;
  bool is_tensor(size_t i) const;  // where an overload takes both tensors and numbers

  Value* tensor(size_t i) const;
  Value* maybe_tensor(size_t i) const;  // null: None
  Values tensors(size_t i) const;       // a list; null entries where it holds None

  // Numbers that must be known when the program is loaded: those of the file, and computed ones
  // that inference could follow.
  int64_t i(size_t i) const;
  double f(size_t i) const;  // an Int, a Bool or a Double
  bool b(size_t i) const;
  std::string s(size_t i) const;
  Ints ints(size_t i) const;
  std::optional<int64_t> maybe_i(size_t i) const;
  std::optional<double> maybe_f(size_t i) const;
  std::optional<Ints> maybe_ints(size_t i) const;
  std::optional<std::string> maybe_s(size_t i) const;
  std::vector<double> floats(size_t i) const;
  std::vector<bool> bools(size_t i) const;

  // Numbers that may be computed while the program runs.
  bool is_known(size_t i) const;               // of a number or a list of them
  Value* number(size_t i, DType dtype);        // a scalar
  Value* shape(size_t i);                      // a list of integers as a vector of i64
  DType number_dtype(size_t i) const;          // what it counts as: bool, i64 or f32
  Value* integer(int64_t value, DType dtype);  // exact, where a double would not be

  // The tensor that argument i, or result i, is declared to be: its dtype and sizes.
  const Tensor& declared(size_t i) const;
  const Tensor& result(size_t i = 0) const;
  DType out(size_t i = 0) const { return result(i).dtype; }
  // Where the results go, as indices of values.
  const std::vector<int32_t>& results() const { return results_; }

  // An axis argument in [-rank, rank) as one in [0, rank); a scalar counts as having one axis.
  int64_t axis(size_t i, const Value* of) const;
  Ints axes(size_t i, const Value* of) const;  // None: empty

 private:
  int32_t index(size_t i) const;
  const EValue& value(size_t i) const;
  const EValue& at(int32_t index) const;
  Value* current(int32_t index) const;  // null: none
  std::optional<double> known(int32_t index) const;
  std::optional<int64_t> known_int(int32_t index) const;
  Value* number_of(int32_t index, DType dtype);
  template <typename T>
  const T& as(size_t i, const char* kind) const;

  const Method& method_;
  const KernelCall& call_;
  const Values& current_;
  std::vector<int32_t> results_;
};

using ConvertKernel = Values (*)(KernelArguments&);

// One name, or several that have the same converter.
struct OperatorNames {
  OperatorNames(const char* name) : list{name} {}
  OperatorNames(std::initializer_list<std::string> names) : list(names) {}
  std::vector<std::string> list;
};

struct KernelConverter {
  OperatorNames ops;  // "aten::add.out"
  ConvertKernel convert = nullptr;
  const char* engine_op = "";  // for a converter that several operators share
  // Arguments that the operator's schema marks as changed, "Tensor(a!) self", without the
  // out-tensors. A name does not tell: __rshift__ changes none, _native_batch_norm_legit two.
  std::vector<size_t> changes = {};
};

// A list of converters, which registers itself: a family has one as a static of its file.
struct KernelConverters {
  KernelConverters(std::initializer_list<KernelConverter> list);
};

// An operator that is known and not converted, and why.
struct KernelRefusal {
  std::string_view op, reason;
};

const KernelConverter* find_kernel(std::string_view op);  // null: none
std::vector<std::string> supported_kernels();             // sorted
std::span<const KernelRefusal> refused_kernels();

// Adds a call to the graph. Its results, cast to what the program declares, go into `current`.
// kUnsupported with the reason when there is no converter.
void convert_kernel(Graph& graph, const Method& method, const KernelCall& call, Values& current,
                    const std::string& name);

}  // namespace anymps::executorch
