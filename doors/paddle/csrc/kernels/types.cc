// SPDX-License-Identifier: Apache-2.0
#include "kernels/types.h"

#include <array>
#include <utility>

namespace anymps::paddle {

namespace {

constexpr std::pair<phi::DataType, amps_dtype> kPairs[] = {
    {phi::DataType::FLOAT32, AMPS_F32},    {phi::DataType::FLOAT16, AMPS_F16},
    {phi::DataType::BFLOAT16, AMPS_BF16},  {phi::DataType::FLOAT64, AMPS_F64},
    {phi::DataType::INT8, AMPS_I8},        {phi::DataType::INT16, AMPS_I16},
    {phi::DataType::INT32, AMPS_I32},      {phi::DataType::INT64, AMPS_I64},
    {phi::DataType::UINT8, AMPS_U8},       {phi::DataType::UINT16, AMPS_U16},
    {phi::DataType::UINT32, AMPS_U32},     {phi::DataType::UINT64, AMPS_U64},
    {phi::DataType::BOOL, AMPS_BOOL},      {phi::DataType::COMPLEX64, AMPS_C64},
    {phi::DataType::COMPLEX128, AMPS_C128}};

constexpr size_t kTypes = 64;  // numbers of types are below on either side

// The types of one side by the numbers of the other's.
template <class To, class Number>
constexpr auto by_number(To none, Number number) {
  std::array<To, kTypes> found{};
  found.fill(none);
  for (const auto& pair : kPairs) {
    const auto [at, to] = number(pair);
    found[at] = to;
  }
  return found;
}
constexpr auto kEngines = by_number(std::optional<amps_dtype>(), [](const auto& pair) {
  return std::pair(static_cast<size_t>(pair.first), pair.second);
});
constexpr auto kPaddles = by_number(phi::DataType::UNDEFINED, [](const auto& pair) {
  return std::pair(static_cast<size_t>(pair.second), pair.first);
});

}  // namespace

std::optional<amps_dtype> to_engine(phi::DataType dtype) {
  const auto number = static_cast<size_t>(dtype);
  return number < kTypes ? kEngines[number] : std::nullopt;
}

phi::DataType to_paddle(amps_dtype dtype) {
  const auto number = static_cast<size_t>(dtype);
  return number < kTypes ? kPaddles[number] : phi::DataType::UNDEFINED;
}

}  // namespace anymps::paddle
