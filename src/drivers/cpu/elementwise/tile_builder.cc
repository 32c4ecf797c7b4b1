// SPDX-License-Identifier: Apache-2.0
// How a tile program is put together; tile_kernel.cc makes it a kernel.
#include "drivers/cpu/elementwise/tile_kernel.h"

namespace anymps::cpu {

TileKernelBuilder::Value TileKernelBuilder::input(size_t arg, const TensorDesc& desc, bool raw) {
  const Value value = static_cast<Value>(values_.size());
  const bool half = is_half(desc.dtype) && !raw;
  values_.push_back({Kind::kInput, half ? DType::kF32 : desc.dtype, inputs_.size()});
  inputs_.push_back({arg, desc, half ? find_tile_op("load", desc.dtype)->run : nullptr, value});
  return value;
}

TileKernelBuilder::Value TileKernelBuilder::constant(DType dtype, double number) {
  const Value value = static_cast<Value>(values_.size());
  values_.push_back({Kind::kConstant, dtype, constants_.size()});
  constants_.push_back({dtype, number, value});
  return value;
}

TileKernelBuilder::Value TileKernelBuilder::parameter(const TileParameter& parameter, DType dtype) {
  const Value value = static_cast<Value>(values_.size());
  const DType held = is_half(dtype) ? DType::kF32 : dtype;
  values_.push_back({Kind::kInput, held, inputs_.size()});
  inputs_.push_back({parameter.arg, TensorDesc(held, Shape{}), nullptr, value, parameter, dtype});
  return value;
}

std::optional<double> TileKernelBuilder::number(Value value) const {
  const ValueInfo& info = values_[value];
  if (info.kind != Kind::kConstant) return std::nullopt;
  return constants_[info.index].number;
}

TileKernelBuilder::Value TileKernelBuilder::call(const TileOp& op, std::vector<Value> args,
                                                 std::vector<double> params) {
  const Value value = static_cast<Value>(values_.size());
  values_.push_back({Kind::kResult, op.out, instructions_.size()});
  instructions_.push_back({&op, std::move(args), std::move(params), value});
  return value;
}

void TileKernelBuilder::set_param(Value result, size_t place, const TileParameter& parameter) {
  instructions_[values_[result].index].run_params.emplace_back(place, parameter);
}

size_t TileKernelBuilder::param_count(Value result) const {
  const ValueInfo& info = values_[result];
  return info.kind == Kind::kResult ? instructions_[info.index].params.size() : 0;
}

void TileKernelBuilder::output(size_t out, const TensorDesc& desc, Value value) {
  // An input or a constant is copied, so that every output has a step that writes it.
  if (values_[value].kind != Kind::kResult)
    value = call(*find_tile_op("identity", dtype(value)), {value});
  const bool half = is_half(desc.dtype) && dtype(value) == DType::kF32;
  outputs_.push_back({out, desc, half ? find_tile_op("store", desc.dtype)->run : nullptr, value});
}

}  // namespace anymps::cpu
