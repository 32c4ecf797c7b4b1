// SPDX-License-Identifier: Apache-2.0
// The messages of onnx.proto, one function each.
#include "formats/onnx/schema/model.h"

#include <filesystem>

#include "base/mapped_file.h"
#include "formats/onnx/schema/fields.h"
#include "formats/onnx/schema/tensor.h"
#include "formats/onnx/schema/value_info.h"
#include "formats/onnx/schema/wire.h"

namespace anymps::onnx {

namespace {

constexpr int kMaxGraphDepth = 64;  // of graphs in attributes of nodes of graphs

class Parser {
 public:
  explicit Parser(const ParseOptions& options)
      : files_(options.directory), context_{options.owner, options.mapped, &files_} {}

  const WirePath& path() const { return path_; }

  void model(std::string_view bytes, Model& model);
  Tensor tensor(std::string_view bytes) { return read_tensor(bytes, context_); }

 private:
  using Pair = std::pair<std::string_view, std::string_view>;

  // Reads one more element of a repeated message, with its index in the path.
  template <typename T>
  void add(WireReader& r, const char* field, std::vector<T>& to,
           void (Parser::*read)(std::string_view, T&)) {
    path_.in(field, std::ssize(to), [&] {
      std::string_view bytes = r.bytes();
      (this->*read)(bytes, to.emplace_back());
    });
  }
  void read_into(std::string_view bytes, Tensor& to) { to = tensor(bytes); }

  void graph(std::string_view bytes, Graph& graph);
  void node(std::string_view bytes, Node& node);
  void attribute(std::string_view bytes, Attribute& attribute);
  void sparse(std::string_view bytes, SparseTensor& sparse);
  void value_info(std::string_view bytes, ValueInfo& info) { read_value_info(bytes, path_, info); }
  void type(std::string_view bytes, ValueInfo& info) { read_type(bytes, path_, info); }
  void function(std::string_view bytes, Function& function);
  void opset(std::string_view bytes, OpsetImport& opset);
  void entry(std::string_view bytes, Pair& entry);

  ExternalFiles files_;
  TensorContext context_;
  WirePath path_;
  int depth_ = 0;
};

void Parser::model(std::string_view bytes, Model& model) {
  bool has_graph = false;
  for (WireReader r(bytes); r.next();) {
    switch (r.tag()) {
      case field::Model::kIrVersion:
        model.ir_version = r.int64();
        break;
      case field::Model::kProducerName:
        model.producer_name = r.string();
        break;
      case field::Model::kProducerVersion:
        model.producer_version = r.string();
        break;
      case field::Model::kDomain:
        model.domain = r.string();
        break;
      case field::Model::kModelVersion:
        model.model_version = r.int64();
        break;
      case field::Model::kGraph:
        has_graph = true;
        path_.in("graph", -1, [&] { graph(r.bytes(), model.graph); });
        break;
      case field::Model::kOpsetImport:
        add(r, "opset_import", model.opset_imports, &Parser::opset);
        break;
      case field::Model::kMetadataProps:
        add(r, "metadata_props", model.metadata, &Parser::entry);
        break;
      case field::Model::kFunctions:
        add(r, "functions", model.functions, &Parser::function);
        break;
      default:
        r.skip();
    }
  }
  if (!has_graph) wire_fail(Code::kCorrupt, "no graph: not an ONNX model");
}

void Parser::graph(std::string_view bytes, Graph& graph) {
  if (++depth_ > kMaxGraphDepth)
    wire_fail(Code::kCorrupt, "graphs are nested more than {} deep", kMaxGraphDepth);
  for (WireReader r(bytes); r.next();) {
    switch (r.tag()) {
      case field::Graph::kNode:
        add(r, "node", graph.nodes, &Parser::node);
        break;
      case field::Graph::kName:
        graph.name = r.string();
        break;
      case field::Graph::kInitializer:
        add(r, "initializer", graph.initializers, &Parser::read_into);
        break;
      case field::Graph::kInput:
        add(r, "input", graph.inputs, &Parser::value_info);
        break;
      case field::Graph::kOutput:
        add(r, "output", graph.outputs, &Parser::value_info);
        break;
      case field::Graph::kValueInfo:
        add(r, "value_info", graph.value_infos, &Parser::value_info);
        break;
      case field::Graph::kSparseInitializer:
        add(r, "sparse_initializer", graph.sparse_initializers, &Parser::sparse);
        break;
      default:
        r.skip();
    }
  }
  --depth_;
}

void Parser::node(std::string_view bytes, Node& node) {
  for (WireReader r(bytes); r.next();) {
    switch (r.tag()) {
      case field::Node::kInput:
        node.inputs.push_back(r.string());
        break;
      case field::Node::kOutput:
        node.outputs.push_back(r.string());
        break;
      case field::Node::kName:
        node.name = r.string();
        break;
      case field::Node::kOpType:
        node.op_type = r.string();
        break;
      case field::Node::kAttribute:
        add(r, "attribute", node.attributes, &Parser::attribute);
        break;
      case field::Node::kDomain:
        node.domain = r.string();
        break;
      case field::Node::kOverload:
        node.overload = r.string();
        break;
      default:
        r.skip();
    }
  }
  if (node.op_type.empty()) wire_fail(Code::kCorrupt, "node \"{}\" has no op_type", node.name);
}

void Parser::attribute(std::string_view bytes, Attribute& a) {
  using Type = Attribute::Type;
  Type found = Type::kUndefined;
  for (WireReader r(bytes); r.next();) {
    switch (r.tag()) {
      case field::Attribute::kName:
        a.name = r.string();
        break;
      case field::Attribute::kF:
        a.f = r.float32();
        found = Type::kFloat;
        break;
      case field::Attribute::kI:
        a.i = r.int64();
        found = Type::kInt;
        break;
      case field::Attribute::kS:
        a.s = r.bytes();
        found = Type::kString;
        break;
      case field::Attribute::kT:
        add(r, "t", a.tensors, &Parser::read_into);
        found = Type::kTensor;
        break;
      case field::Attribute::kG:
        add(r, "g", a.graphs, &Parser::graph);
        found = Type::kGraph;
        break;
      case field::Attribute::kFloats:
        r.append_float(a.floats);
        found = Type::kFloats;
        break;
      case field::Attribute::kInts:
        r.append_int64(a.ints);
        found = Type::kInts;
        break;
      case field::Attribute::kStrings:
        a.strings.push_back(r.bytes());
        found = Type::kStrings;
        break;
      case field::Attribute::kTensors:
        add(r, "tensors", a.tensors, &Parser::read_into);
        found = Type::kTensors;
        break;
      case field::Attribute::kGraphs:
        add(r, "graphs", a.graphs, &Parser::graph);
        found = Type::kGraphs;
        break;
      case field::Attribute::kType:
        a.type = static_cast<Type>(r.int32());
        break;
      case field::Attribute::kRefAttrName:
        a.ref_attr_name = r.string();
        break;
      case field::Attribute::kTp:
        add(r, "tp", a.types, &Parser::type);
        found = Type::kTypeProto;
        break;
      case field::Attribute::kTypeProtos:
        add(r, "type_protos", a.types, &Parser::type);
        found = Type::kTypeProtos;
        break;
      case field::Attribute::kSparseTensor:
        add(r, "sparse_tensor", a.sparse_tensors, &Parser::sparse);
        found = Type::kSparseTensor;
        break;
      case field::Attribute::kSparseTensors:
        add(r, "sparse_tensors", a.sparse_tensors, &Parser::sparse);
        found = Type::kSparseTensors;
        break;
      default:
        r.skip();
    }
  }
  if (a.name.empty()) wire_fail(Code::kCorrupt, "the attribute has no name");
  // Files of IR version 1 leave the type out.
  if (a.type == Type::kUndefined) a.type = found;
  auto exactly_one = [&](Type type, size_t count) {
    if (a.type == type && a.ref_attr_name.empty() && count != 1)
      wire_fail(Code::kCorrupt, "attribute \"{}\" is a {} and holds {} of them", a.name,
                onnx::name(type), count);
  };
  exactly_one(Type::kTensor, a.tensors.size());
  exactly_one(Type::kGraph, a.graphs.size());
  exactly_one(Type::kSparseTensor, a.sparse_tensors.size());
  exactly_one(Type::kTypeProto, a.types.size());
}

void Parser::sparse(std::string_view bytes, SparseTensor& sparse) {
  for (WireReader r(bytes); r.next();) {
    switch (r.tag()) {
      case field::SparseTensor::kValues:
        path_.in("values", -1, [&] { sparse.values = tensor(r.bytes()); });
        break;
      case field::SparseTensor::kIndices:
        path_.in("indices", -1, [&] { sparse.indices = tensor(r.bytes()); });
        break;
      case field::SparseTensor::kDims:
        r.append_int64(sparse.dims);
        break;
      default:
        r.skip();
    }
  }
}

void Parser::function(std::string_view bytes, Function& function) {
  for (WireReader r(bytes); r.next();) {
    switch (r.tag()) {
      case field::Function::kName:
        function.name = r.string();
        break;
      case field::Function::kInput:
        function.inputs.push_back(r.string());
        break;
      case field::Function::kOutput:
        function.outputs.push_back(r.string());
        break;
      case field::Function::kAttribute:
        function.attributes.push_back(r.string());
        break;
      case field::Function::kNode:
        add(r, "node", function.nodes, &Parser::node);
        break;
      case field::Function::kOpsetImport:
        add(r, "opset_import", function.opset_imports, &Parser::opset);
        break;
      case field::Function::kDomain:
        function.domain = r.string();
        break;
      case field::Function::kAttributeProto:
        add(r, "attribute_proto", function.attribute_defaults, &Parser::attribute);
        break;
      case field::Function::kValueInfo:
        add(r, "value_info", function.value_infos, &Parser::value_info);
        break;
      case field::Function::kOverload:
        function.overload = r.string();
        break;
      default:
        r.skip();
    }
  }
  if (function.name.empty()) wire_fail(Code::kCorrupt, "the function has no name");
}

void Parser::opset(std::string_view bytes, OpsetImport& opset) {
  for (WireReader r(bytes); r.next();) {
    switch (r.tag()) {
      case field::OpsetId::kDomain:
        opset.domain = r.string();
        break;
      case field::OpsetId::kVersion:
        opset.version = r.int64();
        break;
      default:
        r.skip();
    }
  }
}

void Parser::entry(std::string_view bytes, Pair& entry) { entry = read_entry(bytes); }

template <typename F>
void guarded(const Parser& parser, const std::string& file, F&& body) {
  try {
    body();
  } catch (const WireError& error) {
    fail(error.code, "[onnx] {}: {}: {}", file, parser.path().text(), error.reason);
  } catch (const protozero::exception& error) {
    fail(Code::kCorrupt, "[onnx] {}: {}: not valid protobuf: {}", file, parser.path().text(),
         error.what());
  }
}

}  // namespace

Model parse_model(std::string_view bytes, const ParseOptions& options) {
  Model model;
  model.file = options.file;
  model.owner = options.owner;
  Parser parser(options);
  guarded(parser, options.file, [&] { parser.model(bytes, model); });
  return model;
}

Tensor parse_tensor(std::string_view bytes, const ParseOptions& options) {
  Tensor tensor;
  Parser parser(options);
  guarded(parser, options.file, [&] { tensor = parser.tensor(bytes); });
  return tensor;
}

Model read_model(const std::string& path) { return read_model(MappedFile::open(path, "onnx")); }

Model read_model(const std::shared_ptr<const MappedFile>& file) {
  std::string directory = std::filesystem::path(file->path()).parent_path().string();
  if (directory.empty()) directory = ".";
  return parse_model(file->bytes(), {file->path(), directory, file, true});
}

std::string name(Attribute::Type type) {
  static constexpr const char* kNames[] = {
      "UNDEFINED",      "FLOAT",      "INT",         "STRING",  "TENSOR", "GRAPH",
      "FLOATS",         "INTS",       "STRINGS",     "TENSORS", "GRAPHS", "SPARSE_TENSOR",
      "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS",
  };
  const auto index = static_cast<uint32_t>(type);
  return index < std::size(kNames) ? kNames[index]
                                   : fmt::format("type {}", static_cast<int32_t>(type));
}

const Attribute* Node::find(std::string_view attribute) const {
  for (const Attribute& candidate : attributes)
    if (candidate.name == attribute) return &candidate;
  return nullptr;
}

}  // namespace anymps::onnx
