// SPDX-License-Identifier: Apache-2.0
// An ONNX file as plain structs, without libprotobuf: names and weights are views into the mapped
// file, so that a model of 400 MB costs no second 400 MB on the heap. Reading checks everything
// that can be checked without knowing the ops: wire format, UTF-8, nesting, tensor sizes, external
// data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "formats/onnx/schema/data_type.h"

namespace anymps::onnx {

// A constant. Whatever field the file used (raw_data, float_data, int32_data, external data …),
// `data` is its elements in the layout of raw_data: little-endian, row-major, of exactly the size
// that dims ask for. It need not be aligned. `owner` keeps it alive.
struct Tensor {
  std::string_view name;
  std::vector<int64_t> dims;
  DataType type = DataType::kUndefined;
  std::string_view data;
  std::vector<std::string_view> strings;  // of a STRING tensor, which has no `data`
  std::shared_ptr<const void> owner;
  bool mapped = false;  // data lies in a mapped file, whose pages may be given back
  int64_t element_count = 0;
};

struct SparseTensor {
  Tensor values, indices;
  std::vector<int64_t> dims;
};

struct DimInfo {
  int64_t value = -1;      // -1: not known
  std::string_view param;  // the symbol, if there is one
};

struct ValueInfo {
  enum class Kind { kNone, kTensor, kSequence, kMap, kOptional, kSparseTensor, kOpaque };

  std::string_view name;
  Kind kind = Kind::kNone;
  Kind inner = Kind::kNone;  // of a sequence or an optional: what it holds
  bool deeper = false;       // … and that holds something else again, other than tensors
  DataType key_type = DataType::kUndefined;  // of a map, whose values `inner` is
  // Of the tensor, or of the innermost tensors.
  DataType elem_type = DataType::kUndefined;
  bool has_shape = false;
  std::vector<DimInfo> dims;
};

struct Graph;

struct Attribute {
  // AttributeProto.AttributeType; the numbers are those of the file format.
  enum class Type : int32_t {
    kUndefined = 0,
    kFloat = 1,
    kInt = 2,
    kString = 3,
    kTensor = 4,
    kGraph = 5,
    kFloats = 6,
    kInts = 7,
    kStrings = 8,
    kTensors = 9,
    kGraphs = 10,
    kSparseTensor = 11,
    kSparseTensors = 12,
    kTypeProto = 13,
    kTypeProtos = 14,
  };

  std::string_view name;
  std::string_view
      ref_attr_name;  // inside a function: the attribute of the call that fills this one
  Type type = Type::kUndefined;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  std::vector<Tensor> tensors;  // of kTensor (one) and kTensors
  std::vector<Graph> graphs;    // of kGraph (one) and kGraphs
  std::vector<SparseTensor> sparse_tensors;
  std::vector<ValueInfo> types;  // of kTypeProto (one) and kTypeProtos
};

std::string name(Attribute::Type type);

struct Node {
  std::string_view op_type, domain, overload, name;
  std::vector<std::string_view> inputs, outputs;  // "": an optional one that is left out
  std::vector<Attribute> attributes;

  const Attribute* find(std::string_view attribute) const;  // null: the node does not have it
};

struct Graph {
  std::string_view name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<SparseTensor> sparse_initializers;
  std::vector<ValueInfo> inputs, outputs, value_infos;
};

struct OpsetImport {
  std::string_view domain;  // "" is ONNX itself
  int64_t version = 0;
};

struct Function {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<Attribute> attribute_defaults;
  std::vector<Node> nodes;
  std::vector<OpsetImport> opset_imports;
  std::vector<ValueInfo> value_infos;
};

struct Model {
  std::string file;  // as errors name it
  int64_t ir_version = 0;
  std::string_view producer_name, producer_version, domain;
  int64_t model_version = 0;
  std::vector<OpsetImport> opset_imports;
  Graph graph;
  std::vector<Function> functions;
  std::vector<std::pair<std::string_view, std::string_view>> metadata;
  std::shared_ptr<const void> owner;  // keeps the names alive
};

// Reads a model file, with the external data beside it. Errors: kNotFound and kIo for files,
// kCorrupt for content, in the form "[onnx] FILE: graph.node[3].attribute[0]: reason".
Model read_model(const std::string& path);
Model read_model(const std::shared_ptr<const MappedFile>& file);

struct ParseOptions {
  std::string file = "<memory>";      // the name in errors
  std::string directory;              // where external data may lie; "": external data is refused
  std::shared_ptr<const void> owner;  // of the bytes; null: the caller keeps them alive
  bool mapped = false;                // the bytes are a mapped file
};

Model parse_model(std::string_view bytes, const ParseOptions& options = {});

// One TensorProto on its own: the inputs and outputs of ONNX's test data are files of this kind.
Tensor parse_tensor(std::string_view bytes, const ParseOptions& options = {});

}  // namespace anymps::onnx
