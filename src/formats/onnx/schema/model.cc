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

  // A repeated message: reads one element more, with its index in the path.
  template <typename T>
  auto each(uint32_t number, const char* name, std::vector<T>& to,
            void (Parser::*read)(std::string_view, T&)) {
    return on(number, [this, name, &to, read](WireReader& r) {
      path_.in(name, std::ssize(to), [&] {
        const std::string_view bytes = r.bytes();
        (this->*read)(bytes, to.emplace_back());
      });
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
  using F = field::Model;
  bool has_graph = false;
  auto read_graph = [&](std::string_view inner) {
    has_graph = true;
    graph(inner, model.graph);
  };
  read_message(
      bytes, into(F::kIrVersion, model.ir_version), into(F::kProducerName, model.producer_name),
      into(F::kProducerVersion, model.producer_version), into(F::kDomain, model.domain),
      into(F::kModelVersion, model.model_version), inside(F::kGraph, path_, "graph", read_graph),
      each(F::kOpsetImport, "opset_import", model.opset_imports, &Parser::opset),
      each(F::kMetadataProps, "metadata_props", model.metadata, &Parser::entry),
      each(F::kFunctions, "functions", model.functions, &Parser::function));
  if (!has_graph) wire_fail(Code::kCorrupt, "no graph: not an ONNX model");
}

void Parser::graph(std::string_view bytes, Graph& graph) {
  using F = field::Graph;
  if (++depth_ > kMaxGraphDepth)
    wire_fail(Code::kCorrupt, "graphs are nested more than {} deep", kMaxGraphDepth);
  read_message(bytes, each(F::kNode, "node", graph.nodes, &Parser::node),
               into(F::kName, graph.name),
               each(F::kInitializer, "initializer", graph.initializers, &Parser::read_into),
               each(F::kInput, "input", graph.inputs, &Parser::value_info),
               each(F::kOutput, "output", graph.outputs, &Parser::value_info),
               each(F::kValueInfo, "value_info", graph.value_infos, &Parser::value_info),
               each(F::kSparseInitializer, "sparse_initializer", graph.sparse_initializers,
                    &Parser::sparse));
  --depth_;
}

void Parser::node(std::string_view bytes, Node& node) {
  using F = field::Node;
  read_message(bytes, into(F::kInput, node.inputs), into(F::kOutput, node.outputs),
               into(F::kName, node.name), into(F::kOpType, node.op_type),
               each(F::kAttribute, "attribute", node.attributes, &Parser::attribute),
               into(F::kDomain, node.domain), into(F::kOverload, node.overload));
  if (node.op_type.empty()) wire_fail(Code::kCorrupt, "node \"{}\" has no op_type", node.name);
}

void Parser::attribute(std::string_view bytes, Attribute& a) {
  using F = field::Attribute;
  using Type = Attribute::Type;
  Type found = Type::kUndefined;
  auto of = [&found](Type type, auto field) {
    return on(field.number, [&found, type, field](WireReader& r) {
      field.read(r);
      found = type;
    });
  };
  // Strings of attributes may be any bytes.
  auto one_string = [&](WireReader& r) { a.s = r.bytes(); };
  auto one_more_string = [&](WireReader& r) { a.strings.push_back(r.bytes()); };
  read_message(bytes, into(F::kName, a.name), into(F::kType, a.type),
               into(F::kRefAttrName, a.ref_attr_name), of(Type::kFloat, into(F::kF, a.f)),
               of(Type::kInt, into(F::kI, a.i)), of(Type::kString, on(F::kS, one_string)),
               of(Type::kTensor, each(F::kT, "t", a.tensors, &Parser::read_into)),
               of(Type::kGraph, each(F::kG, "g", a.graphs, &Parser::graph)),
               of(Type::kFloats, into(F::kFloats, a.floats)),
               of(Type::kInts, into(F::kInts, a.ints)),
               of(Type::kStrings, on(F::kStrings, one_more_string)),
               of(Type::kTensors, each(F::kTensors, "tensors", a.tensors, &Parser::read_into)),
               of(Type::kGraphs, each(F::kGraphs, "graphs", a.graphs, &Parser::graph)),
               of(Type::kTypeProto, each(F::kTp, "tp", a.types, &Parser::type)),
               of(Type::kTypeProtos, each(F::kTypeProtos, "type_protos", a.types, &Parser::type)),
               of(Type::kSparseTensor,
                  each(F::kSparseTensor, "sparse_tensor", a.sparse_tensors, &Parser::sparse)),
               of(Type::kSparseTensors,
                  each(F::kSparseTensors, "sparse_tensors", a.sparse_tensors, &Parser::sparse)));
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
  using F = field::SparseTensor;
  auto tensor_into = [this](Tensor& to) {
    return [this, &to](std::string_view inner) { to = tensor(inner); };
  };
  read_message(bytes, inside(F::kValues, path_, "values", tensor_into(sparse.values)),
               inside(F::kIndices, path_, "indices", tensor_into(sparse.indices)),
               into(F::kDims, sparse.dims));
}

void Parser::function(std::string_view bytes, Function& function) {
  using F = field::Function;
  read_message(
      bytes, into(F::kName, function.name), into(F::kInput, function.inputs),
      into(F::kOutput, function.outputs), into(F::kAttribute, function.attributes),
      each(F::kNode, "node", function.nodes, &Parser::node),
      each(F::kOpsetImport, "opset_import", function.opset_imports, &Parser::opset),
      into(F::kDomain, function.domain),
      each(F::kAttributeProto, "attribute_proto", function.attribute_defaults, &Parser::attribute),
      each(F::kValueInfo, "value_info", function.value_infos, &Parser::value_info),
      into(F::kOverload, function.overload));
  if (function.name.empty()) wire_fail(Code::kCorrupt, "the function has no name");
}

void Parser::opset(std::string_view bytes, OpsetImport& opset) {
  using F = field::OpsetId;
  read_message(bytes, into(F::kDomain, opset.domain), into(F::kVersion, opset.version));
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
