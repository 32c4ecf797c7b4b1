// SPDX-License-Identifier: Apache-2.0
#include "formats/executorch/payload/payload_values.h"

#include <algorithm>
#include <cmath>

#include "formats/constant_bytes.h"
#include "formats/executorch/schema/payload_fields.h"

namespace anymps::executorch {

namespace {

using TensorField = field::MpsTensor;

constexpr size_t kMaxPayloadRank = 64;  // PyTorch's own

template <typename T>
ConstantPtr one(const Shape& shape, T element) {
  return Constant::copy(dtype_of<T>, shape, std::as_bytes(std::span(&element, 1)));
}

// The exporter writes a Python number with the bytes of an int64 or a float32, whatever dtype it
// declares. So the size tells what it is; null where there is nothing odd about it.
ConstantPtr python_number(DType dtype, const Shape& shape, std::string_view data) {
  if (data.size() == size_of(dtype)) return nullptr;
  if (data.size() == sizeof(float)) return one(shape, number_at<float>(data));
  if (data.size() != sizeof(int64_t)) return nullptr;
  // A float64 is declared float32, too. Read as one, integers are not normal numbers.
  const auto real = number_at<double>(data);
  if (dtype == DType::kF32 && (real == 0 || std::isnormal(real))) return one(shape, real);
  return one(shape, number_at<int64_t>(data));
}

}  // namespace

DType to_dtype_of_mps(const FlatTable& table, FlatField field) {
  const auto datatype = table.scalar<int16_t>(field);
  static constexpr DType kTypes[] = {
      DType::kF16, DType::kF32, DType::kF64, DType::kBF16, DType::kI4,
      DType::kI8,  DType::kI16, DType::kI32, DType::kI64,  DType::kU4,
      DType::kU8,  DType::kU16, DType::kU32, DType::kU64,  DType::kBool,
  };
  constexpr int16_t kComplexHalf = 16, kComplex = 17;
  if (datatype == kComplex) return DType::kC64;
  if (datatype == kComplexHalf) table.unsupported(field, "complex_float16 is not supported");
  if (datatype < 1 || static_cast<size_t>(datatype) > std::size(kTypes))
    table.fail(field, "there is no MPSDataType {}", datatype);
  return kTypes[datatype - 1];
}

PayloadValues::PayloadValues(Graph& graph, const FlatTable& root, const Source& payload,
                             std::string_view segment, std::string stem)
    : graph_(graph), payload_(payload), segment_(segment), stem_(std::move(stem)) {
  for (const FlatTable& table : root.tables(field::MpsGraph::kValues, "MPSTensor"))
    values_.push_back(read(table));
  for (const int32_t constant : root.numbers<int32_t>(field::MpsGraph::kConstants))
    values_[id(root, constant, field::MpsGraph::kConstants)].constant = true;
}

PayloadValues::Entry PayloadValues::read(const FlatTable& table) const {
  Entry entry{table, {}, false, false, nullptr, nullptr};
  for (const int32_t extent : table.numbers<int32_t>(TensorField::kDims)) {
    if (extent < 0) table.fail(TensorField::kDims, "an extent is {}", extent);
    entry.dims.push_back(extent);
  }
  if (entry.dims.size() > kMaxPayloadRank)
    table.fail(TensorField::kDims, "it has {} entries, more than {}", entry.dims.size(),
               kMaxPayloadRank);
  const auto count = table.scalar<int32_t>(TensorField::kNumDims);
  if (count != std::ssize(entry.dims))
    table.fail(TensorField::kNumDims, "it is {}, but dims has {} entries", count,
               entry.dims.size());
  try {
    byte_count(DType::kF64, Shape(entry.dims.begin(), entry.dims.end()));
  } catch (const Error&) {
    table.fail(TensorField::kDims, "[{}] are more elements than there can be",
               fmt::join(entry.dims, ", "));
  }
  return entry;
}

size_t PayloadValues::id(const FlatTable& table, int64_t id, FlatField field) const {
  if (id < 0 || id >= std::ssize(values_))
    table.fail(field, "there is no value {}, only {} values", id, values_.size());
  return id;
}

DType PayloadValues::dtype(size_t id) const {
  return to_dtype_of_mps(values_[id].table, TensorField::kDatatype);
}

std::string_view PayloadValues::data_of(const FlatTable& table) const {
  const auto size = table.scalar<uint64_t>(TensorField::kBufferSize);
  if (auto buffer = table.maybe(TensorField::kBuffer, "Buffer")) {
    const std::string_view inlined = buffer->bytes(field::MpsBuffer::kStorage);
    if (size != 0 && !inlined.empty() && size != inlined.size())
      table.fail(TensorField::kBufferSize, "it is {}, but constant_buffer has {} bytes", size,
                 inlined.size());
    if (!inlined.empty()) return inlined;
  }
  const auto offset = table.scalar<uint64_t>(TensorField::kSegmentOffset);
  if (offset > segment_.size() || size > segment_.size() - offset)
    table.fail(TensorField::kSegmentOffset,
               "{} bytes at byte {} do not fit into a segment of {} bytes", size, offset,
               segment_.size());
  return segment_.substr(offset, size);
}

Value* PayloadValues::constant(const Entry& entry, size_t id) const {
  const Shape shape(entry.dims.begin(), entry.dims.end());
  DType dtype = this->dtype(id);
  const std::string_view data = data_of(entry.table);
  const auto count = static_cast<uint64_t>(element_count(shape));
  const std::string name = fmt::format("{}/constant_{}", stem_, id);
  if (dtype == DType::kI4 || dtype == DType::kU4) {
    if (data.size() != (count + 1) / 2)
      entry.table.fail(TensorField::kBufferSize, "it is {}, but {} elements of {} take {} bytes",
                       data.size(), count, anymps::name(dtype), (count + 1) / 2);
    return graph_.constant(packed_constant_from(dtype, shape, 4, data, payload_.owner), name);
  }
  if (count == 1)
    if (auto number = python_number(dtype, shape, data)) return graph_.constant(number, name);
  if (dtype == DType::kF32 && data.size() == sizeof(double) * count) dtype = DType::kF64;
  if (data.size() != size_of(dtype) * count)
    entry.table.fail(TensorField::kBufferSize, "it is {}, but {} elements of {} take {} bytes",
                     data.size(), count, anymps::name(dtype), size_of(dtype) * count);
  if (dtype == DType::kBool) {
    std::vector<std::byte> bytes(data.size());
    std::transform(data.begin(), data.end(), bytes.begin(),
                   [](char byte) { return std::byte{byte != 0}; });
    return graph_.constant(Constant::copy(dtype, shape, bytes), name);
  }
  return graph_.constant(constant_from(dtype, shape, data, payload_.owner, payload_.mapped), name);
}

Value* PayloadValues::get(size_t id, const FlatTable& reader, FlatField field) {
  Entry& entry = values_[id];
  if (!entry.now && entry.later) entry.now = entry.later();
  if (!entry.now && entry.constant) entry.now = constant(entry, id);
  if (!entry.now) {
    try {
      reader.fail(field, "value {} is read, but no node before has written it", id);
    } catch (const Error& error) {
      throw NeverWritten{error};
    }
  }
  return entry.now;
}

void PayloadValues::set(size_t id, Value* value, bool converted) {
  values_[id].now = value;
  values_[id].converted = converted;
  values_[id].later = nullptr;
}

void PayloadValues::set_later(size_t id, std::function<Value*()> make) {
  set(id, nullptr);
  values_[id].constant = false;
  values_[id].later = std::move(make);
}

}  // namespace anymps::executorch
