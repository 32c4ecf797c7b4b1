// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/schema/value_info.h"

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

void TypeReader::value_info(std::string_view bytes, ValueInfo& info) {
  for (WireReader r(bytes); r.next();) {
    switch (r.tag()) {
      case field::ValueInfo::kName:
        info.name = r.string();
        break;
      case field::ValueInfo::kType:
        path_.in("type", -1, [&] { type_at(r.bytes(), info, 0); });
        break;
      default:
        r.skip();
    }
  }
}

// Level 0 is the value, level 1 what a sequence or an optional holds, level 2 what that holds.
void TypeReader::type_at(std::string_view bytes, ValueInfo& info, int level) {
  using Kind = ValueInfo::Kind;
  if (level > kMaxTypeDepth) wire_fail(Code::kCorrupt, "types are nested too deep");
  for (WireReader r(bytes); r.next();) {
    Kind found = Kind::kNone;
    const char* holder = "";
    switch (r.tag()) {
      case field::Type::kTensorType:
        found = Kind::kTensor;
        break;
      case field::Type::kSequenceType:
        found = Kind::kSequence;
        holder = "sequence_type";
        break;
      case field::Type::kMapType:
        found = Kind::kMap;
        break;
      case field::Type::kOpaqueType:
        found = Kind::kOpaque;
        break;
      case field::Type::kSparseTensorType:
        found = Kind::kSparseTensor;
        break;
      case field::Type::kOptionalType:
        found = Kind::kOptional;
        holder = "optional_type";
        break;
      default:
        break;
    }
    if (found == Kind::kNone) {
      r.skip();
      continue;
    }
    if (level == 0) info.kind = found;
    if (level == 1) info.inner = found;
    if (level > 1 && found != Kind::kTensor) info.deeper = true;
    if (found == Kind::kTensor)
      path_.in("tensor_type", -1, [&] { tensor_type(r.bytes(), info); });
    else if (found == Kind::kSequence || found == Kind::kOptional)
      path_.in(holder, -1, [&] { element_type(r.bytes(), info, level + 1); });
    else if (found == Kind::kMap && level == 0)
      path_.in("map_type", -1, [&] { map_type(r.bytes(), info); });
    else
      r.skip();
  }
}

void TypeReader::map_type(std::string_view bytes, ValueInfo& info) {
  for (WireReader r(bytes); r.next();) {
    if (r.tag() == field::MapType::kKeyType)
      info.key_type = static_cast<DataType>(r.int32());
    else if (r.tag() == field::MapType::kValueType)
      path_.in("value_type", -1, [&] { type_at(r.bytes(), info, 1); });
    else
      r.skip();
  }
}

void TypeReader::element_type(std::string_view bytes, ValueInfo& info, int level) {
  for (WireReader r(bytes); r.next();) {
    if (r.tag() == field::HolderType::kElemType)
      path_.in("elem_type", -1, [&] { type_at(r.bytes(), info, level); });
    else
      r.skip();
  }
}

void TypeReader::tensor_type(std::string_view bytes, ValueInfo& info) {
  for (WireReader r(bytes); r.next();) {
    switch (r.tag()) {
      case field::TensorType::kElemType:
        info.elem_type = static_cast<DataType>(r.int32());
        break;
      case field::TensorType::kShape: {
        info.has_shape = true;
        std::string_view shape = r.bytes();
        for (WireReader s(shape); s.next();) {
          if (s.tag() == field::TensorShape::kDim)
            path_.in("dim", std::ssize(info.dims),
                     [&] { dim(s.bytes(), info.dims.emplace_back()); });
          else
            s.skip();
        }
        break;
      }
      default:
        r.skip();
    }
  }
}

void TypeReader::dim(std::string_view bytes, DimInfo& dim) {
  for (WireReader r(bytes); r.next();) {
    switch (r.tag()) {
      case field::Dimension::kDimValue:
        dim.value = r.int64();
        dim.param = {};
        break;
      case field::Dimension::kDimParam:
        dim.param = r.string();
        dim.value = -1;
        break;
      default:
        r.skip();
    }
  }
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
