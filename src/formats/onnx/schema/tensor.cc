// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/schema/tensor.h"

#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include "formats/onnx/schema/fields.h"

namespace anymps::onnx {

namespace {

using Buffer = std::vector<char>;

// float_data or double_data. One packed run, the usual case, already has the layout of raw_data and
// stays where it is; anything else is gathered into a buffer.
struct FixedField {
  std::string_view view;
  std::shared_ptr<Buffer> copy;

  // One element, or a packed run of them.
  template <typename T>
  void add(WireReader& r) {
    if (r.is_packed()) return add_run(r.bytes(), sizeof(T));
    T value;
    r.read(value);
    append({reinterpret_cast<const char*>(&value), sizeof(T)});
  }

 private:
  void add_run(std::string_view bytes, size_t element) {
    if (bytes.size() % element != 0)
      wire_fail(Code::kCorrupt, "typed data has {} bytes, not a multiple of {}", bytes.size(),
                element);
    if (view.empty())
      view = bytes;
    else
      append(bytes);
  }
  void append(std::string_view bytes) {
    if (!copy) copy = std::make_shared<Buffer>(view.begin(), view.end());
    copy->insert(copy->end(), bytes.begin(), bytes.end());
    view = {copy->data(), copy->size()};
  }
};

struct ExternalRange {
  std::string_view location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};

enum DataLocation : int32_t { kInside = 0, kExternal = 1 };  // TensorProto.DataLocation

// The fields as they stand in the file.
struct Fields {
  std::optional<std::string_view> raw;
  FixedField floats, doubles;
  std::vector<int64_t> int32s, int64s, uint64s;
  std::vector<std::pair<std::string_view, std::string_view>> external;
  int32_t location = kInside;
  bool has_segment = false;
};

Fields read_fields(std::string_view bytes, Tensor& tensor) {
  using F = field::Tensor;
  Fields fields;
  auto segment = [&](WireReader& r) {
    fields.has_segment = true;
    r.skip();
  };
  auto raw = [&](WireReader& r) { fields.raw = r.bytes(); };
  auto one_more_string = [&](WireReader& r) { tensor.strings.push_back(r.bytes()); };
  auto one_more_entry = [&](WireReader& r) { fields.external.push_back(read_entry(r.bytes())); };
  read_message(
      bytes, into(F::kDims, tensor.dims), into(F::kDataType, tensor.type), on(F::kSegment, segment),
      on(F::kFloatData, [&](WireReader& r) { fields.floats.add<float>(r); }),
      into(F::kInt32Data, fields.int32s), on(F::kStringData, one_more_string),
      into(F::kInt64Data, fields.int64s), into(F::kName, tensor.name), on(F::kRawData, raw),
      on(F::kDoubleData, [&](WireReader& r) { fields.doubles.add<double>(r); }),
      into(F::kUint64Data, fields.uint64s), on(F::kExternalData, one_more_entry),
      into(F::kDataLocation, fields.location));
  return fields;
}

// The number of elements and of bytes that dims ask for.
std::pair<int64_t, uint64_t> required_size(const Tensor& tensor) {
  int64_t count = 1;
  for (int64_t dim : tensor.dims)
    if (dim < 0) wire_fail(Code::kCorrupt, "dims has the negative size {}", dim);
  for (int64_t dim : tensor.dims) {
    if (dim == 0) return {0, 0};
    if (__builtin_mul_overflow(count, dim, &count))
      wire_fail(Code::kCorrupt, "dims [{}] overflow", fmt::join(tensor.dims, ", "));
  }
  int64_t bits = 0;
  if (__builtin_mul_overflow(count, bit_width(tensor.type), &bits) ||
      __builtin_add_overflow(bits, 7, &bits))
    wire_fail(Code::kCorrupt, "dims [{}] of {} overflow", fmt::join(tensor.dims, ", "),
              name(tensor.type));
  return {count, static_cast<uint64_t>(bits) / 8};
}

void check_size(const Tensor& tensor, uint64_t got, uint64_t expected, const char* unit) {
  if (got != expected)
    wire_fail(Code::kCorrupt, "{}[{}] needs {} {}, the file has {}", name(tensor.type),
              fmt::join(tensor.dims, ", "), expected, unit, got);
}

void own(Tensor& tensor, std::shared_ptr<Buffer> buffer) {
  tensor.data = {buffer->data(), buffer->size()};
  tensor.owner = std::move(buffer);
  tensor.mapped = false;
}

// Varints, one for each unit of `width` bytes. A value may be given signed or unsigned.
void own_varints(Tensor& tensor, const std::vector<int64_t>& values, size_t width, uint64_t bytes) {
  check_size(tensor, values.size(), bytes / width, "values");
  auto buffer = std::make_shared<Buffer>(values.size() * width);
  char* to = buffer->data();
  for (int64_t value : values) {
    if (width < 8) {
      int64_t limit = int64_t{1} << (8 * width);
      if (value < -limit / 2 || value >= limit)
        wire_fail(Code::kCorrupt, "{} cannot hold the value {}", name(tensor.type), value);
    }
    std::memcpy(to, &value, width);
    to += width;
  }
  own(tensor, std::move(buffer));
}

uint64_t parse_number(std::string_view key, std::string_view text) {
  uint64_t value = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size())
    wire_fail(Code::kCorrupt, "external data: {} \"{}\" is not a number", key, text);
  return value;
}

void take_external(Tensor& tensor, const Fields& fields, uint64_t bytes, ExternalFiles& files) {
  ExternalRange range;
  for (auto [key, value] : fields.external) {
    if (key == "location") range.location = value;
    if (key == "offset") range.offset = parse_number(key, value);
    if (key == "length") range.length = parse_number(key, value);
  }
  auto file = files.open(range.location);
  uint64_t size = file->bytes().size();
  if (range.offset > size)
    wire_fail(Code::kCorrupt,
              "external data \"{}\": offset {} is past the end of the file ({} bytes)",
              range.location, range.offset, size);
  uint64_t length = range.length.value_or(bytes);
  if (length > size - range.offset)
    wire_fail(Code::kCorrupt,
              "external data \"{}\": {} bytes at offset {} pass the end of the file ({} bytes)",
              range.location, length, range.offset, size);
  check_size(tensor, length, bytes, "bytes");
  tensor.data = file->bytes().substr(range.offset, length);
  tensor.owner = std::move(file);
  tensor.mapped = true;
}

void take_payload(Tensor& tensor, const Fields& fields, const TensorContext& context) {
  auto [count, bytes] = required_size(tensor);
  tensor.element_count = count;
  if (fields.location == kExternal) return take_external(tensor, fields, bytes, *context.files);
  if (fields.location != kInside)
    wire_fail(Code::kUnsupported, "data_location {} is not known", fields.location);

  tensor.owner = context.owner;
  if (fields.raw && (bytes > 0 || !fields.raw->empty())) {
    check_size(tensor, fields.raw->size(), bytes, "bytes");
    tensor.data = *fields.raw;
    tensor.mapped = context.mapped;
    return;
  }
  if (bytes == 0) return;

  size_t width = static_cast<size_t>(std::max(8, bit_width(tensor.type))) / 8;
  switch (tensor.type) {
    case DataType::kFloat:
    case DataType::kComplex64:
    case DataType::kDouble:
    case DataType::kComplex128: {
      bool single = tensor.type == DataType::kFloat || tensor.type == DataType::kComplex64;
      const FixedField& field = single ? fields.floats : fields.doubles;
      check_size(tensor, field.view.size(), bytes, "bytes");
      tensor.data = field.view;
      tensor.mapped = context.mapped && !field.copy;
      if (field.copy) tensor.owner = field.copy;
      return;
    }
    case DataType::kInt64:
      return own_varints(tensor, fields.int64s, width, bytes);
    case DataType::kUint32:
    case DataType::kUint64:
      return own_varints(tensor, fields.uint64s, width, bytes);
    case DataType::kFloat6E2M3:
    case DataType::kFloat6E3M2:
      wire_fail(Code::kUnsupported, "{} outside of raw_data", name(tensor.type));
    default:
      return own_varints(tensor, fields.int32s, width, bytes);
  }
}

// Kernels rely on 0 and 1; C++ leaves any other bool undefined.
void normalize_bools(Tensor& tensor) {
  bool clean = true;
  for (char c : tensor.data) clean = clean && (c == 0 || c == 1);
  if (clean) return;
  auto buffer = std::make_shared<Buffer>(tensor.data.begin(), tensor.data.end());
  for (char& c : *buffer) c = c != 0;
  own(tensor, std::move(buffer));
}

}  // namespace

std::pair<std::string_view, std::string_view> read_entry(std::string_view bytes) {
  std::pair<std::string_view, std::string_view> entry;
  read_message(bytes, into(field::StringStringEntry::kKey, entry.first),
               into(field::StringStringEntry::kValue, entry.second));
  return entry;
}

Tensor read_tensor(std::string_view bytes, const TensorContext& context) {
  Tensor tensor;
  Fields fields = read_fields(bytes, tensor);
  try {
    if (fields.has_segment) wire_fail(Code::kUnsupported, "tensors in segments are not supported");
    if (tensor.type == DataType::kString) {
      tensor.owner = context.owner;
      int64_t count = required_size(tensor).first;
      if (fields.location != kInside) wire_fail(Code::kCorrupt, "strings cannot be external data");
      check_size(tensor, tensor.strings.size(), static_cast<uint64_t>(count), "strings");
      tensor.element_count = count;
    } else {
      if (bit_width(tensor.type) == 0)
        wire_fail(Code::kCorrupt, "data_type is {}", name(tensor.type));
      take_payload(tensor, fields, context);
      if (tensor.type == DataType::kBool) normalize_bools(tensor);
    }
  } catch (WireError& error) {
    error.reason = fmt::format("tensor \"{}\": {}", tensor.name, error.reason);
    throw;
  }
  return tensor;
}

}  // namespace anymps::onnx
