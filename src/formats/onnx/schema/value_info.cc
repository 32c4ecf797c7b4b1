// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/schema/value_info.h"

#include <algorithm>

#include "formats/onnx/schema/fields.h"

namespace anymps::onnx {

namespace {

constexpr int kMaxTypeDepth = 16;  // of sequences of optionals of …

class TypeReader {
 public:
  explicit TypeReader(WirePath& path) : path_(path) {}

  void value_info(std::string_view bytes, ValueInfo& info);
  void type_at(std::string_view bytes, ValueInfo& info, int level);

 private:
  void element_type(std::string_view bytes, ValueInfo& info, int level);
  void map_type(std::string_view bytes, ValueInfo& info);
  void tensor_type(std::string_view bytes, ValueInfo& info);
  static void dim(std::string_view bytes, DimInfo& dim);

  WirePath& path_;
};

struct TypeField {
  uint32_t number;
  ValueInfo::Kind kind;
  const char* name;
};
constexpr TypeField kTypeFields[] = {
    {field::Type::kTensorType, ValueInfo::Kind::kTensor, "tensor_type"},
    {field::Type::kSequenceType, ValueInfo::Kind::kSequence, "sequence_type"},
    {field::Type::kMapType, ValueInfo::Kind::kMap, "map_type"},
    {field::Type::kOpaqueType, ValueInfo::Kind::kOpaque, "opaque_type"},
    {field::Type::kSparseTensorType, ValueInfo::Kind::kSparseTensor, "sparse_tensor_type"},
    {field::Type::kOptionalType, ValueInfo::Kind::kOptional, "optional_type"},
};

void TypeReader::value_info(std::string_view bytes, ValueInfo& info) {
  using F = field::ValueInfo;
  read_message(
      bytes, into(F::kName, info.name),
      inside(F::kType, path_, "type", [&](std::string_view type) { type_at(type, info, 0); }));
}

// Level 0 is the value, level 1 what a sequence or an optional holds, level 2 what that holds.
void TypeReader::type_at(std::string_view bytes, ValueInfo& info, int level) {
  using Kind = ValueInfo::Kind;
  if (level > kMaxTypeDepth) wire_fail(Code::kCorrupt, "types are nested too deep");
  for (WireReader r(bytes); r.next();) {
    const auto* found =
        std::find_if(std::begin(kTypeFields), std::end(kTypeFields),
                     [&](const TypeField& field) { return field.number == r.tag(); });
    if (found == std::end(kTypeFields)) {
      r.skip();
      continue;
    }
    const Kind kind = found->kind;
    if (level == 0) info.kind = kind;
    if (level == 1) info.inner = kind;
    if (level > 1 && kind != Kind::kTensor) info.deeper = true;
    if (kind == Kind::kTensor)
      path_.in(found->name, -1, [&] { tensor_type(r.bytes(), info); });
    else if (kind == Kind::kSequence || kind == Kind::kOptional)
      path_.in(found->name, -1, [&] { element_type(r.bytes(), info, level + 1); });
    else if (kind == Kind::kMap && level == 0)
      path_.in(found->name, -1, [&] { map_type(r.bytes(), info); });
    else
      r.skip();
  }
}

void TypeReader::map_type(std::string_view bytes, ValueInfo& info) {
  using F = field::MapType;
  read_message(bytes, into(F::kKeyType, info.key_type),
               inside(F::kValueType, path_, "value_type",
                      [&](std::string_view type) { type_at(type, info, 1); }));
}

void TypeReader::element_type(std::string_view bytes, ValueInfo& info, int level) {
  read_message(bytes, inside(field::HolderType::kElemType, path_, "elem_type",
                             [&](std::string_view type) { type_at(type, info, level); }));
}

void TypeReader::tensor_type(std::string_view bytes, ValueInfo& info) {
  using F = field::TensorType;
  auto one_more_dim = [&](WireReader& r) {
    path_.in("dim", std::ssize(info.dims), [&] { dim(r.bytes(), info.dims.emplace_back()); });
  };
  auto shape = [&](WireReader& r) {
    info.has_shape = true;
    read_message(r.bytes(), on(field::TensorShape::kDim, one_more_dim));
  };
  read_message(bytes, into(F::kElemType, info.elem_type), on(F::kShape, shape));
}

// Of a value and a symbol, which exclude each other, the last counts.
void TypeReader::dim(std::string_view bytes, DimInfo& dim) {
  using F = field::Dimension;
  auto value = [&](WireReader& r) { dim = {r.int64(), {}}; };
  auto param = [&](WireReader& r) { dim = {-1, r.string()}; };
  read_message(bytes, on(F::kDimValue, value), on(F::kDimParam, param));
  // Some exporters write -1 for a size that is not known.
  if (dim.value < -1) wire_fail(Code::kCorrupt, "negative size {}", dim.value);
}

}  // namespace

void read_value_info(std::string_view bytes, WirePath& path, ValueInfo& info) {
  TypeReader(path).value_info(bytes, info);
}

void read_type(std::string_view bytes, WirePath& path, ValueInfo& info) {
  TypeReader(path).type_at(bytes, info, 0);
}

}  // namespace anymps::onnx
