// SPDX-License-Identifier: Apache-2.0
// Tensor -> Constant. Protobuf does not align its bytes, and most weights of a file start at an odd
// address. Kernels want aligned elements, so such a tensor becomes a recipe: copied when a driver
// asks for it (usually once, to pack it) and dropped again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/narrow.h"
#include "importers/onnx/import.h"
#include "memory/string_constant.h"

namespace anymps::onnx {

namespace {

constexpr size_t kAlignment = 16;
constexpr size_t kSmall = 16 << 10;  // copied at once: not worth a recipe

// Like Constant::release, for the bytes that a recipe has read.
void give_back_pages(std::string_view data) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(data.data()), last = first + data.size();
  const uintptr_t begin = (first + page - 1) / page * page, end = last / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

// Several elements in a byte, the first in its lowest bits: one byte for each.
void unpack(std::string_view data, int bits, DType dtype, int64_t count, std::byte* out) {
  const int in_byte = 8 / bits;
  for (int64_t i = 0; i < count; ++i) {
    const auto byte = static_cast<uint8_t>(data[static_cast<size_t>(i / in_byte)]);
    const int code = byte >> (i % in_byte * bits) & ((1 << bits) - 1);
    out[i] = static_cast<std::byte>(contains(kNarrowInt, dtype) ? wrap_narrow(dtype, code) : code);
  }
}

}  // namespace

DType to_dtype(DataType type) {
  static constexpr std::pair<DataType, DType> kTypes[] = {
      {DataType::kFloat, DType::kF32},
      {DataType::kFloat16, DType::kF16},
      {DataType::kBfloat16, DType::kBF16},
      {DataType::kDouble, DType::kF64},
      {DataType::kInt8, DType::kI8},
      {DataType::kInt16, DType::kI16},
      {DataType::kInt32, DType::kI32},
      {DataType::kInt64, DType::kI64},
      {DataType::kUint8, DType::kU8},
      {DataType::kUint16, DType::kU16},
      {DataType::kUint32, DType::kU32},
      {DataType::kUint64, DType::kU64},
      {DataType::kBool, DType::kBool},
      {DataType::kComplex64, DType::kC64},
      {DataType::kInt4, DType::kI4},
      {DataType::kUint4, DType::kU4},
      {DataType::kInt2, DType::kI2},
      {DataType::kUint2, DType::kU2},
      {DataType::kFloat8E4M3FN, DType::kF8E4M3},
      {DataType::kFloat8E5M2, DType::kF8E5M2},
      {DataType::kFloat8E4M3FNUZ, DType::kF8E4M3FNUZ},
      {DataType::kFloat8E5M2FNUZ, DType::kF8E5M2FNUZ},
      {DataType::kFloat8E8M0, DType::kF8E8M0},
      {DataType::kFloat4E2M1, DType::kF4E2M1},
      {DataType::kString, DType::kString},
  };
  for (const auto& [from, to] : kTypes)
    if (from == type) return to;
  fail(Code::kUnsupported, "element type {} is not supported", name(type));
}

ConstantPtr to_constant(const Tensor& tensor) {
  const DType dtype = to_dtype(tensor.type);
  Shape shape(tensor.dims.begin(), tensor.dims.end());
  const std::string_view data = tensor.data;
  if (dtype == DType::kString)
    return string_constant(std::move(shape), {tensor.strings.begin(), tensor.strings.end()});
  if (const int bits = bit_width(tensor.type); bits < 8) {
    auto recipe = [data, dtype, bits, owner = tensor.owner, count = tensor.element_count](
                      std::byte* out) { unpack(data, bits, dtype, count, out); };
    if (data.size() > kSmall && tensor.owner) return Constant::lazy(dtype, shape, recipe);
    std::vector<std::byte> bytes(static_cast<size_t>(tensor.element_count));
    recipe(bytes.data());
    return Constant::copy(dtype, shape, bytes);
  }
  if (data.size() <= kSmall)
    return Constant::copy(dtype, shape, std::as_bytes(std::span(data.data(), data.size())));
  if (tensor.owner && reinterpret_cast<uintptr_t>(data.data()) % kAlignment == 0)
    return Constant::view(dtype, shape, data.data(), tensor.owner, tensor.mapped);
  if (tensor.owner)
    return Constant::lazy(dtype, shape,
                          [data, owner = tensor.owner, mapped = tensor.mapped](std::byte* out) {
                            std::memcpy(out, data.data(), data.size());
                            if (mapped) give_back_pages(data);
                          });
  return Constant::copy(dtype, shape, std::as_bytes(std::span(data.data(), data.size())));
}

}  // namespace anymps::onnx
