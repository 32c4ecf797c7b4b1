// SPDX-License-Identifier: Apache-2.0
// An ExecuTorch program (.pte, identifier "ET12") as plain data: methods, each with its values and
// the instructions that run over them. Weights and payloads of delegates stay in place in the file.
// Reading checks all that can be checked without knowing the operators: indices, sizes, segments.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.h"

namespace anymps::executorch {

using Ints = std::vector<int64_t>;

// A file, or a part of one, and what keeps it alive.
struct Source {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
  bool mapped = false;  // pages of a file, that may be given back
  std::string name;     // for messages
};

struct Tensor {
  enum class Dynamism { kStatic, kBound, kUnbound };
  DType dtype = DType::kF32;
  Ints sizes;                      // upper bounds when it is dynamic
  std::vector<uint8_t> dim_order;  // axes from the outermost to the innermost in memory
  Dynamism dynamism = Dynamism::kStatic;
  bool planned = false;  // has a place in planned memory:
  // A view of static shape has no instruction in a program: it is a tensor of its own at the place
  // of the one that it views, with other sizes.
  uint32_t memory = 0;
  uint64_t offset = 0;
  std::optional<std::string_view> data;  // its elements, in dim_order; size checked
  std::string name;                      // "mod.linear.weight", where the file says so

  bool is_constant() const { return data && !planned; }
  bool is_state() const { return data && planned; }  // a mutable buffer with initial content
};

// Lists of integers and of tensors hold indices of values. An Int may be written while the program
// runs; among tensors, -1 stands for None.
struct IntList {
  std::vector<int32_t> items;
};
struct TensorList {
  std::vector<int32_t> items;
};
struct None {};
using EValue = std::variant<None, int64_t, bool, double, Tensor, std::string, IntList,
                            std::vector<double>, std::vector<bool>, TensorList>;
const char* kind_of(const EValue& value);  // "Int", "Tensor", …: for messages

struct KernelCall {
  std::string op;  // "aten::add.out"
  std::vector<int32_t> args;
};
struct DelegateCall {
  int32_t delegate = 0;
  std::vector<int32_t> args;
};
struct MoveCall {
  int32_t from = 0, to = 0;
};
struct JumpFalse {
  int32_t condition = 0, destination = 0;
};
struct FreeCall {
  int32_t value = 0;
};
using Instruction = std::variant<KernelCall, DelegateCall, MoveCall, JumpFalse, FreeCall>;

struct Delegate {
  std::string backend;  // "MPSBackend"
  std::string_view payload;
  std::vector<std::pair<std::string, std::string>> options;  // compile specs
};

struct Method {
  std::string name;
  std::vector<EValue> values;
  std::vector<int32_t> inputs, outputs;
  std::vector<Instruction> instructions;
  std::vector<Delegate> delegates;
  std::vector<std::string> operators;
  std::vector<int64_t> planned_bytes;
};

struct Program {
  Source source;
  uint32_t version = 0;
  std::vector<Method> methods;
  std::vector<std::pair<std::string, std::string_view>> named_data;

  // "": the method "forward", or the only one. kNotFound: lists those that are there.
  const Method& method(std::string_view name) const;
};

bool is_program(std::string_view bytes);  // by its identifier
Program read_program(const Source& source);

DType to_dtype(int8_t scalar_type);  // of ExecuTorch; kUnsupported when the engine has none

}  // namespace anymps::executorch
