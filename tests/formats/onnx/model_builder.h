// SPDX-License-Identifier: Apache-2.0
// Writes small ONNX files for tests: ModelBuilder().input("x", {"N", 4}).node("Relu", {"x"},
// {"y"})….
#pragma once

#include <memory>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/onnx/read/import.h"

namespace anymps::onnx {

class ModelBuilder {
 public:
  using Dims = std::vector<std::variant<int, const char*>>;  // a number, or a symbol; "": unnamed
  using Names = std::vector<std::string>;
  struct Attr {
    std::string name;
    std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>> value;
    Attr(std::string n, int v) : name(std::move(n)), value(int64_t{v}) {}
    Attr(std::string n, float v) : name(std::move(n)), value(v) {}
    Attr(std::string n, const char* v) : name(std::move(n)), value(std::string(v)) {}
    Attr(std::string n, std::vector<int64_t> v) : name(std::move(n)), value(std::move(v)) {}
    Attr(std::string n, std::vector<float> v) : name(std::move(n)), value(std::move(v)) {}
    // Bytes of a whole AttributeProto.
    static Attr raw(std::string bytes) {
      Attr attr("", 0);
      attr.bytes = std::move(bytes);
      return attr;
    }
    std::string bytes;
  };

  explicit ModelBuilder(int64_t opset = 17) { import_opset("", opset); }

  ModelBuilder& import_opset(const std::string& domain, int64_t version) {
    opsets_.push_back(message([&](Writer& w) {
      w.add_string(1, domain);
      w.add_int64(2, version);
    }));
    return *this;
  }
  ModelBuilder& input(const std::string& name, const Dims& dims, DataType type = DataType::kFloat) {
    inputs_.push_back(value_info(name, &dims, type));
    return *this;
  }
  ModelBuilder& output(const std::string& name, DataType type = DataType::kUndefined) {
    outputs_.push_back(value_info(name, nullptr, type));
    return *this;
  }
  ModelBuilder& floats(const std::string& name, const std::vector<int64_t>& dims,
                       const std::vector<float>& values) {
    return tensor(name, dims, DataType::kFloat,
                  {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  ModelBuilder& zeros(const std::string& name, const std::vector<int64_t>& dims) {
    size_t count = 1;
    for (int64_t dim : dims) count *= static_cast<size_t>(dim);
    return floats(name, dims, std::vector<float>(count));
  }
  ModelBuilder& ints(const std::string& name, const std::vector<int64_t>& values) {
    return tensor(name, {static_cast<int64_t>(values.size())}, DataType::kInt64, bytes_of(values));
  }
  ModelBuilder& scalar_int(const std::string& name, int64_t value) {
    return tensor(name, {}, DataType::kInt64, bytes_of({value}));
  }
  ModelBuilder& tensor(const std::string& name, const std::vector<int64_t>& dims, DataType type,
                       const std::string& raw) {
    tensors_.push_back(message([&](Writer& w) {
      w.add_packed_int64(1, dims.begin(), dims.end());
      w.add_int32(2, static_cast<int32_t>(type));
      w.add_string(8, name);
      w.add_bytes(9, raw);
    }));
    return *this;
  }
  // A matrix or a vector with these elements at these places, flat or one row for each.
  ModelBuilder& sparse(const std::string& name, const std::vector<int64_t>& dims,
                       const std::vector<float>& values, const std::vector<int64_t>& indices,
                       const std::vector<int64_t>& indices_dims) {
    auto part = [](const std::string& called, const std::vector<int64_t>& shape, DataType type,
                   const std::string& raw) {
      return message([&](Writer& w) {
        w.add_packed_int64(1, shape.begin(), shape.end());
        w.add_int32(2, static_cast<int32_t>(type));
        w.add_string(8, called);
        w.add_bytes(9, raw);
      });
    };
    sparse_.push_back(message([&](Writer& w) {
      w.add_message(
          1, part(name, {static_cast<int64_t>(values.size())}, DataType::kFloat,
                  {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}));
      w.add_message(2, part("", indices_dims, DataType::kInt64, bytes_of(indices)));
      w.add_packed_int64(3, dims.begin(), dims.end());
    }));
    return *this;
  }
  ModelBuilder& node(const std::string& op, const Names& inputs, const Names& outputs,
                     const std::vector<Attr>& attrs = {}, const std::string& name = "",
                     const std::string& domain = "") {
    nodes_.push_back(node_bytes(op, inputs, outputs, attrs, name, domain));
    return *this;
  }
  ModelBuilder& function(const std::string& domain, const std::string& name, const Names& inputs,
                         const Names& outputs, const std::vector<std::string>& nodes) {
    functions_.push_back(message([&](Writer& w) {
      w.add_string(1, name);
      for (const auto& input : inputs) w.add_string(4, input);
      for (const auto& output : outputs) w.add_string(5, output);
      for (const auto& node : nodes) w.add_message(7, node);
      w.add_string(10, domain);
    }));
    return *this;
  }

  std::string graph_bytes() const {
    return message([&](Writer& w) {
      for (const auto& node : nodes_) w.add_message(1, node);
      w.add_string(2, "test");
      for (const auto& tensor : tensors_) w.add_message(5, tensor);
      for (const auto& input : inputs_) w.add_message(11, input);
      for (const auto& output : outputs_) w.add_message(12, output);
      for (const auto& tensor : sparse_) w.add_message(15, tensor);
    });
  }
  std::string bytes() const {
    return message([&](Writer& w) {
      w.add_int64(1, 8);
      w.add_message(7, graph_bytes());
      for (const auto& opset : opsets_) w.add_message(8, opset);
      for (const auto& function : functions_) w.add_message(25, function);
    });
  }
  std::unique_ptr<anymps::Graph> import(DefaultInputs* defaults = nullptr) const {
    auto kept = std::make_shared<std::string>(bytes());
    ParseOptions options;
    options.file = "m.onnx";
    options.owner = kept;
    return import_model(parse_model(*kept, options), defaults);
  }

  static std::string node_bytes(const std::string& op, const Names& inputs, const Names& outputs,
                                const std::vector<Attr>& attrs = {}, const std::string& name = "",
                                const std::string& domain = "") {
    return message([&](Writer& w) {
      for (const auto& input : inputs) w.add_string(1, input);
      for (const auto& output : outputs) w.add_string(2, output);
      w.add_string(3, name);
      w.add_string(4, op);
      for (const auto& attr : attrs) w.add_message(5, attribute_bytes(attr));
      w.add_string(7, domain);
    });
  }
  // An attribute that holds a graph.
  static Attr graph_attr(const std::string& name, const ModelBuilder& body) {
    return Attr::raw(message([&](Writer& w) {
      w.add_string(1, name);
      w.add_message(6, body.graph_bytes());
      w.add_enum(20, static_cast<int32_t>(Attribute::Type::kGraph));
    }));
  }
  // Inside a function: takes the value of an attribute of the call.
  static Attr ref_attr(const std::string& name, const std::string& of_call, Attribute::Type type) {
    return Attr::raw(message([&](Writer& w) {
      w.add_string(1, name);
      w.add_enum(20, static_cast<int32_t>(type));
      w.add_string(21, of_call);
    }));
  }

 private:
  using Writer = protozero::pbf_writer;

  template <typename F>
  static std::string message(F&& build) {
    std::string bytes;
    Writer writer(bytes);
    build(writer);
    return bytes;
  }
  static std::string bytes_of(const std::vector<int64_t>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)};
  }
  static std::string attribute_bytes(const Attr& attr) {
    if (!attr.bytes.empty()) return attr.bytes;
    return message([&](Writer& w) {
      w.add_string(1, attr.name);
      Attribute::Type type{};
      if (auto* i = std::get_if<int64_t>(&attr.value)) {
        w.add_int64(3, *i);
        type = Attribute::Type::kInt;
      } else if (auto* f = std::get_if<float>(&attr.value)) {
        w.add_float(2, *f);
        type = Attribute::Type::kFloat;
      } else if (auto* s = std::get_if<std::string>(&attr.value)) {
        w.add_bytes(4, *s);
        type = Attribute::Type::kString;
      } else if (auto* ints = std::get_if<std::vector<int64_t>>(&attr.value)) {
        for (int64_t v : *ints) w.add_int64(8, v);
        type = Attribute::Type::kInts;
      } else if (auto* floats = std::get_if<std::vector<float>>(&attr.value)) {
        for (float v : *floats) w.add_float(7, v);
        type = Attribute::Type::kFloats;
      }
      w.add_enum(20, static_cast<int32_t>(type));
    });
  }
  static std::string value_info(const std::string& name, const Dims* dims, DataType type) {
    const std::string shape = message([&](Writer& w) {
      for (size_t i = 0; dims && i < dims->size(); ++i)
        w.add_message(1, message([&](Writer& d) {
                        if (auto* number = std::get_if<int>(&(*dims)[i]))
                          d.add_int64(1, *number);
                        else
                          d.add_string(2, std::get<const char*>((*dims)[i]));
                      }));
    });
    const std::string tensor_type = message([&](Writer& w) {
      w.add_int32(1, static_cast<int32_t>(type));
      if (dims) w.add_message(2, shape);
    });
    const std::string type_bytes = message([&](Writer& w) { w.add_message(1, tensor_type); });
    return message([&](Writer& w) {
      w.add_string(1, name);
      w.add_message(2, type_bytes);
    });
  }

  std::vector<std::string> opsets_, inputs_, outputs_, tensors_, nodes_, functions_, sparse_;
};

}  // namespace anymps::onnx
