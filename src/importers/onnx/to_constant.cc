// SPDX-License-Identifier: Apache-2.0
// Tensor -> Constant. Protobuf does not align its bytes, and most weights of a file start at an odd
// address. Kernels want aligned elements, so such a tensor becomes a recipe: copied when a driver
// asks for it (usually once, to pack it) and dropped again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "importers/onnx/import.h"

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

}  // namespace

DType to_dtype(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return DType::kF32;
    case DataType::kFloat16:
      return DType::kF16;
    case DataType::kBfloat16:
      return DType::kBF16;
    case DataType::kDouble:
      return DType::kF64;
    case DataType::kInt8:
      return DType::kI8;
    case DataType::kInt16:
      return DType::kI16;
    case DataType::kInt32:
      return DType::kI32;
    case DataType::kInt64:
      return DType::kI64;
    case DataType::kUint8:
      return DType::kU8;
    case DataType::kUint16:
      return DType::kU16;
    case DataType::kUint32:
      return DType::kU32;
    case DataType::kUint64:
      return DType::kU64;
    case DataType::kBool:
      return DType::kBool;
    case DataType::kComplex64:
      return DType::kC64;
    default:
      fail(Code::kUnsupported, "element type {} is not supported", name(type));
  }
}

ConstantPtr to_constant(const Tensor& tensor) {
  const DType dtype = to_dtype(tensor.type);
  Shape shape(tensor.dims.begin(), tensor.dims.end());
  const std::string_view data = tensor.data;
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
