// SPDX-License-Identifier: Apache-2.0
// A kernel that runs a short program of tile functions over whole tensors: broadcast and strided
// inputs, halves, threads. Every elementwise op is a program of length one. What lies between the
// instructions of longer ones stays in registers where they make a chain (chain.h), else in the L1
// cache.
#pragma once

#include <optional>
#include <utility>

#include "drivers/cpu/common/loops.h"
#include "drivers/cpu/elementwise/tile_ops.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

// A number that is read when the kernel runs: an element of argument `arg`, which is f64 or i64, or
// one of the parameters that come with the run.
struct TileParameter {
  static constexpr size_t kOfTheRun = ~size_t{0};
  size_t arg = 0;
  DType from = DType::kF64;
  int64_t offset = 0;  // from the first element
};

class TileKernelBuilder {
 public:
  using Value = int;                        // what the calls below return
  static constexpr size_t kMaxValues = 60;  // of a program that can be built

  explicit TileKernelBuilder(Shape shape) : shape_(std::move(shape)) {}

  // Argument `arg` of the kernel, broadcast to the shape. Halves are read as f32 unless `raw`.
  Value input(size_t arg, const TensorDesc& desc, bool raw = false);
  Value constant(DType dtype, double value);
  // The parameter as one element of dtype; a half is rounded to it and held as f32.
  Value parameter(const TileParameter& parameter, DType dtype);
  Value call(const TileOp& op, std::vector<Value> args, std::vector<double> params = {});
  // Parameter `place` of the function that made `result` is read at run time.
  void set_param(Value result, size_t place, const TileParameter& parameter);
  // How many numbers the function that made `result` takes.
  size_t param_count(Value result) const;
  // All of the request's parameters are read at run time.
  void take_parameters() { takes_parameters_ = true; }
  // Output number `out`: a value of dtype f32 is stored as the half that desc asks for.
  void output(size_t out, const TensorDesc& desc, Value value);

  DType dtype(Value value) const { return values_[value].dtype; }
  // The number, if the value is a constant.
  std::optional<double> number(Value value) const;
  size_t size() const { return values_.size(); }
  // Instructions between bytes and their numbers become one each (tile_steps.cc).
  void join_steps();
  KernelPtr build();

 private:
  friend class TileKernel;
  bool takes_parameters_ = false;
  enum class Kind { kInput, kConstant, kResult };
  struct ValueInfo {
    Kind kind = Kind::kInput;
    DType dtype = DType::kF32;
    size_t index = 0;  // of the input, the constant or the instruction
  };
  struct Input {
    size_t arg = 0;
    TensorDesc desc;
    TileFn convert = nullptr;
    Value value = 0;
    std::optional<TileParameter> parameter = std::nullopt;  // then there is no tensor
    DType rounding = DType::kF32;                           // the parameter is converted to
  };
  struct Constant {
    DType dtype = DType::kF32;
    double number = 0;
    Value value = 0;
  };
  struct Instruction {
    const TileOp* op = nullptr;
    std::vector<Value> args;
    std::vector<double> params;
    Value value = 0;
    std::vector<std::pair<size_t, TileParameter>> run_params = {};  // by place
  };
  struct Output {
    size_t out = 0;
    TensorDesc desc;
    TileFn convert = nullptr;
    Value value = 0;
  };

  Shape shape_;
  std::vector<ValueInfo> values_;
  std::vector<Input> inputs_;
  std::vector<Constant> constants_;
  std::vector<Instruction> instructions_;
  std::vector<Output> outputs_;
};

}  // namespace anymps::cpu
