// SPDX-License-Identifier: Apache-2.0
#include "types.h"

#include <array>

#include "device/written.h"

namespace anymps::aten {

namespace {

constexpr std::pair<at::ScalarType, amps_dtype> kPairs[] = {{at::kFloat, AMPS_F32},
                                                            {at::kHalf, AMPS_F16},
                                                            {at::kBFloat16, AMPS_BF16},
                                                            {at::kDouble, AMPS_F64},
                                                            {at::kChar, AMPS_I8},
                                                            {at::kShort, AMPS_I16},
                                                            {at::kInt, AMPS_I32},
                                                            {at::kLong, AMPS_I64},
                                                            {at::kByte, AMPS_U8},
                                                            {at::kUInt16, AMPS_U16},
                                                            {at::kUInt32, AMPS_U32},
                                                            {at::kUInt64, AMPS_U64},
                                                            {at::kBool, AMPS_BOOL},
                                                            {at::kComplexFloat, AMPS_C64},
                                                            {at::kComplexDouble, AMPS_C128},
                                                            {at::kFloat8_e4m3fn, AMPS_F8E4M3},
                                                            {at::kFloat8_e5m2, AMPS_F8E5M2}};

constexpr int kTypes = static_cast<int>(at::ScalarType::NumOptions);
constexpr int8_t kNone = -1;

// By ATen's number, as every call asks.
constexpr auto kToEngine = [] {
  std::array<int8_t, kTypes> table{};
  for (int8_t& entry : table) entry = kNone;
  for (const auto& [theirs, ours] : kPairs)
    table[static_cast<int>(theirs)] = static_cast<int8_t>(ours);
  return table;
}();

amps_view with_data(const at::Tensor& tensor, void* data) {
  const auto type = to_engine(tensor.scalar_type());
  TORCH_CHECK_NOT_IMPLEMENTED(type, "tensors of ", tensor.scalar_type(),
                              " are not supported on mps");
  return {data, tensor.sizes().data(), tensor.strides().data(), *type,
          static_cast<int32_t>(tensor.dim())};
}

}  // namespace

std::optional<amps_dtype> to_engine(at::ScalarType type) {
  const int8_t found = kToEngine[static_cast<int>(type)];
  if (found == kNone) return std::nullopt;
  return static_cast<amps_dtype>(found);
}

at::ScalarType to_torch(amps_dtype type) {
  for (const auto& [theirs, ours] : kPairs)
    if (ours == type) return theirs;
  return at::ScalarType::Undefined;
}

amps_view view_of(const at::Tensor& tensor) {
  return with_data(tensor, const_cast<void*>(tensor.const_data_ptr()));
}
amps_view view_to_write(const at::Tensor& tensor) {
  note_write(tensor);
  return with_data(tensor, tensor.mutable_data_ptr());
}

}  // namespace anymps::aten
