// SPDX-License-Identifier: Apache-2.0
// The messages of onnx.proto, one function each. The numbers in the switches are its field numbers.
#include "formats/onnx/schema/model.h"

#include <filesystem>

#include "base/mapped_file.h"
#include "formats/onnx/schema/tensor.h"
#include "formats/onnx/schema/wire.h"

namespace anymps::onnx {

namespace {

constexpr int kMaxGraphDepth = 64;  // of graphs in attributes of nodes of graphs
constexpr int kMaxTypeDepth = 16;   // of sequences of optionals of …

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
    path_.in(field, static_cast<int64_t>(to.size()), [&] {
      std::string_view bytes = r.bytes();
      (this->*read)(bytes, to.emplace_back());
    });
  }
  void read_into(std::string_view bytes, Tensor& to) { to = tensor(bytes); }

  void graph(std::string_view bytes, Graph& graph);
  void node(std::string_view bytes, Node& node);
  void attribute(std::string_view bytes, Attribute& attribute);
  void sparse(std::string_view bytes, SparseTensor& sparse);
  void value_info(std::string_view bytes, ValueInfo& info);
  void type(std::string_view bytes, ValueInfo& info);
  void type_at(std::string_view bytes, ValueInfo& info, int level);
  void element_type(std::string_view bytes, ValueInfo& info, int level);
  void map_type(std::string_view bytes, ValueInfo& info);
  void tensor_type(std::string_view bytes, ValueInfo& info);
  void dim(std::string_view bytes, DimInfo& dim);
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
      case 1:
        model.ir_version = r.int64();
        break;
      case 2:
        model.producer_name = r.string();
        break;
      case 3:
        model.producer_version = r.string();
        break;
      case 4:
        model.domain = r.string();
        break;
      case 5:
        model.model_version = r.int64();
        break;
      case 7:
        has_graph = true;
        path_.in("graph", -1, [&] { graph(r.bytes(), model.graph); });
        break;
      case 8:
        add(r, "opset_import", model.opset_imports, &Parser::opset);
        break;
      case 14:
        add(r, "metadata_props", model.metadata, &Parser::entry);
        break;
      case 25:
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
      case 1:
        add(r, "node", graph.nodes, &Parser::node);
        break;
      case 2:
        graph.name = r.string();
        break;
      case 5:
        add(r, "initializer", graph.initializers, &Parser::read_into);
        break;
      case 11:
        add(r, "input", graph.inputs, &Parser::value_info);
        break;
      case 12:
        add(r, "output", graph.outputs, &Parser::value_info);
        break;
      case 13:
        add(r, "value_info", graph.value_infos, &Parser::value_info);
        break;
      case 15:
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
      case 1:
        node.inputs.push_back(r.string());
        break;
      case 2:
        node.outputs.push_back(r.string());
        break;
      case 3:
        node.name = r.string();
        break;
      case 4:
        node.op_type = r.string();
        break;
      case 5:
        add(r, "attribute", node.attributes, &Parser::attribute);
        break;
      case 7:
        node.domain = r.string();
        break;
      case 8:
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
      case 1:
        a.name = r.string();
        break;
      case 2:
        a.f = r.float32();
        found = Type::kFloat;
        break;
      case 3:
        a.i = r.int64();
        found = Type::kInt;
        break;
      case 4:
        a.s = r.bytes();
        found = Type::kString;
        break;
      case 5:
        add(r, "t", a.tensors, &Parser::read_into);
        found = Type::kTensor;
        break;
      case 6:
        add(r, "g", a.graphs, &Parser::graph);
        found = Type::kGraph;
        break;
      case 7:
        r.append_float(a.floats);
        found = Type::kFloats;
        break;
      case 8:
        r.append_int64(a.ints);
        found = Type::kInts;
        break;
      case 9:
        a.strings.push_back(r.bytes());
        found = Type::kStrings;
        break;
      case 10:
        add(r, "tensors", a.tensors, &Parser::read_into);
        found = Type::kTensors;
        break;
      case 11:
        add(r, "graphs", a.graphs, &Parser::graph);
        found = Type::kGraphs;
        break;
      case 20:
        a.type = static_cast<Type>(r.int32());
        break;
      case 21:
        a.ref_attr_name = r.string();
        break;
      case 14:
        add(r, "tp", a.types, &Parser::type);
        found = Type::kTypeProto;
        break;
      case 15:
        add(r, "type_protos", a.types, &Parser::type);
        found = Type::kTypeProtos;
        break;
      case 22:
        add(r, "sparse_tensor", a.sparse_tensors, &Parser::sparse);
        found = Type::kSparseTensor;
        break;
      case 23:
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
      case 1:
        path_.in("values", -1, [&] { sparse.values = tensor(r.bytes()); });
        break;
      case 2:
        path_.in("indices", -1, [&] { sparse.indices = tensor(r.bytes()); });
        break;
      case 3:
        r.append_int64(sparse.dims);
        break;
      default:
        r.skip();
    }
  }
}

void Parser::value_info(std::string_view bytes, ValueInfo& info) {
  for (WireReader r(bytes); r.next();) {
    switch (r.tag()) {
      case 1:
        info.name = r.string();
        break;
      case 2:
        path_.in("type", -1, [&] { type(r.bytes(), info); });
        break;
      default:
        r.skip();
    }
  }
}

void Parser::type(std::string_view bytes, ValueInfo& info) { type_at(bytes, info, 0); }

// Level 0 is the value, level 1 what a sequence or an optional holds, level 2 what that holds.
void Parser::type_at(std::string_view bytes, ValueInfo& info, int level) {
  using Kind = ValueInfo::Kind;
  if (level > kMaxTypeDepth) wire_fail(Code::kCorrupt, "types are nested too deep");
  for (WireReader r(bytes); r.next();) {
    Kind found = Kind::kNone;
    const char* field = "";
    switch (r.tag()) {
      case 1:
        found = Kind::kTensor;
        break;
      case 4:
        found = Kind::kSequence;
        field = "sequence_type";
        break;
      case 5:
        found = Kind::kMap;
        break;
      case 7:
        found = Kind::kOpaque;
        break;
      case 8:
        found = Kind::kSparseTensor;
        break;
      case 9:
        found = Kind::kOptional;
        field = "optional_type";
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
      path_.in(field, -1, [&] { element_type(r.bytes(), info, level + 1); });
    else if (found == Kind::kMap && level == 0)
      path_.in("map_type", -1, [&] { map_type(r.bytes(), info); });
    else
      r.skip();
  }
}

void Parser::map_type(std::string_view bytes, ValueInfo& info) {
  for (WireReader r(bytes); r.next();) {
    if (r.tag() == 1)
      info.key_type = static_cast<DataType>(r.int32());
    else if (r.tag() == 2)
      path_.in("value_type", -1, [&] { type_at(r.bytes(), info, 1); });
    else
      r.skip();
  }
}

void Parser::element_type(std::string_view bytes, ValueInfo& info, int level) {
  for (WireReader r(bytes); r.next();) {
    if (r.tag() == 1)
      path_.in("elem_type", -1, [&] { type_at(r.bytes(), info, level); });
    else
      r.skip();
  }
}

void Parser::tensor_type(std::string_view bytes, ValueInfo& info) {
  for (WireReader r(bytes); r.next();) {
    switch (r.tag()) {
      case 1:
        info.elem_type = static_cast<DataType>(r.int32());
        break;
      case 2: {
        info.has_shape = true;
        std::string_view shape = r.bytes();
        for (WireReader s(shape); s.next();) {
          if (s.tag() == 1)
            add(s, "dim", info.dims, &Parser::dim);
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

void Parser::dim(std::string_view bytes, DimInfo& dim) {
  for (WireReader r(bytes); r.next();) {
    switch (r.tag()) {
      case 1:
        dim.value = r.int64();
        dim.param = {};
        break;
      case 2:
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

void Parser::function(std::string_view bytes, Function& function) {
  for (WireReader r(bytes); r.next();) {
    switch (r.tag()) {
      case 1:
        function.name = r.string();
        break;
      case 4:
        function.inputs.push_back(r.string());
        break;
      case 5:
        function.outputs.push_back(r.string());
        break;
      case 6:
        function.attributes.push_back(r.string());
        break;
      case 7:
        add(r, "node", function.nodes, &Parser::node);
        break;
      case 9:
        add(r, "opset_import", function.opset_imports, &Parser::opset);
        break;
      case 10:
        function.domain = r.string();
        break;
      case 11:
        add(r, "attribute_proto", function.attribute_defaults, &Parser::attribute);
        break;
      case 12:
        add(r, "value_info", function.value_infos, &Parser::value_info);
        break;
      case 13:
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
      case 1:
        opset.domain = r.string();
        break;
      case 2:
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

Model read_model(const std::string& path) {
  auto file = MappedFile::open(path, "onnx");
  std::string directory = std::filesystem::path(path).parent_path().string();
  return parse_model(file->bytes(), {path, directory.empty() ? "." : directory, file, true});
}

const Attribute* Node::find(std::string_view attribute) const {
  for (const Attribute& candidate : attributes)
    if (candidate.name == attribute) return &candidate;
  return nullptr;
}

}  // namespace anymps::onnx
