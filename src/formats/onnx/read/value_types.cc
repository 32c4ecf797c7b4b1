// SPDX-License-Identifier: Apache-2.0
// Types of graph inputs, and sparse tensors, which become dense constants.
#include <cstring>

#include "formats/onnx/read/importer.h"

namespace anymps::onnx {

namespace {

constexpr size_t kMaxSparseBytes = size_t{1} << 32;  // a few numbers may claim any shape

Dim to_dim(const ValueInfo& info, size_t axis) {
  const DimInfo& dim = info.dims[axis];
  if (dim.value >= 0) return dim.value;
  // An unnamed size is a symbol of its own; "?" is how some exporters write that there is no name.
  if (dim.param.empty() || dim.param == "?")
    return Dim::symbol(fmt::format("{}.{}", info.name, axis));
  return Dim::parse(std::string(dim.param));
}

Container to_container(const ValueInfo& info) {
  using Kind = ValueInfo::Kind;
  if (info.kind == Kind::kTensor) return Container::kTensor;
  if (info.kind == Kind::kSequence && info.inner == Kind::kTensor) return Container::kSequence;
  if (info.kind == Kind::kOptional && info.inner == Kind::kTensor) return Container::kOptional;
  if (info.kind == Kind::kOptional && info.inner == Kind::kSequence && !info.deeper)
    return Container::kOptionalSequence;
  if (info.kind == Kind::kMap && info.inner == Kind::kTensor &&
      (info.key_type == DataType::kInt64 || info.key_type == DataType::kString))
    return Container::kMaps;
  fail(Code::kUnsupported,
       "its type is not a tensor, a sequence of tensors, an optional one of these, or a map from "
       "integers or strings to tensors");
}

std::vector<int64_t> ints_in(const Tensor& tensor) {
  require(tensor.type == DataType::kInt64, "the indices of a sparse tensor are {}, not INT64",
          name(tensor.type));
  std::vector<int64_t> values(tensor.data.size() / sizeof(int64_t));
  if (!values.empty()) std::memcpy(values.data(), tensor.data.data(), values.size() * 8);
  return values;
}

}  // namespace

ValueType to_type(const ValueInfo& info) {
  ValueType type;
  type.container = to_container(info);
  type.dtype = to_dtype(info.elem_type);
  if (type.container == Container::kMaps) return type;  // how many keys and maps is not known
  type.ranked = info.has_shape;
  for (size_t axis = 0; axis < info.dims.size(); ++axis) type.shape.push_back(to_dim(info, axis));
  return type;
}

ConstantPtr to_constant(const SparseTensor& sparse) {
  const ConstantPtr values = to_constant(sparse.values);
  const Shape shape(sparse.dims.begin(), sparse.dims.end());
  for (const int64_t extent : shape) require(extent >= 0, "a size is {}", extent);
  const DType dtype = values->dtype();
  require(dtype != DType::kString, "sparse tensors of strings are not supported");
  const size_t bytes = byte_count(dtype, shape), size = size_of(dtype);
  if (bytes > kMaxSparseBytes)
    fail(Code::kUnsupported, "a sparse tensor of {} bytes is not supported", bytes);
  const std::vector<int64_t> indices = ints_in(sparse.indices);
  const int64_t count = values->desc().count(), total = element_count(shape);
  const size_t rank = shape.size();
  const bool flat = sparse.indices.dims.size() == 1;
  require(indices.size() == static_cast<size_t>(count) * (flat ? 1 : rank),
          "{} indices for {} values of a sparse tensor of rank {}", indices.size(), count, rank);
  std::vector<std::byte> dense(bytes);
  const auto data = values->data();
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    int64_t at = flat ? indices[i] : 0;
    for (size_t axis = 0; !flat && axis < rank; ++axis) {
      const int64_t index = indices[i * rank + axis];
      require(index >= 0 && index < shape[axis], "index {} is out of range for size {}", index,
              shape[axis]);
      at = at * shape[axis] + index;
    }
    require(at >= 0 && at < total, "index {} is out of range for {} elements", at, total);
    std::memcpy(dense.data() + static_cast<size_t>(at) * size, data.get() + i * size, size);
  }
  return Constant::copy(dtype, shape, dense);
}

}  // namespace anymps::onnx
