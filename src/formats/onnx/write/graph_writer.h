// SPDX-License-Identifier: Apache-2.0
// A GraphProto while it is written: nodes, constants, and the types of what they make. Graphs
// inside of attributes see the names around them, so that one list of names serves a whole model.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "formats/onnx/schema/data_type.h"
#include "graph/graph.h"

namespace anymps::onnx {

using Names = std::vector<std::string>;
using Ints = std::vector<int64_t>;

// A message that is the value of an attribute.
struct OutGraph {
  std::string bytes;
};
struct OutType {
  std::string bytes;
};

struct OutAttr {
  std::string name;
  std::variant<int64_t, double, std::string, Ints, std::vector<double>, Names, OutGraph, OutType>
      value;
  OutAttr(std::string n, int64_t v) : name(std::move(n)), value(v) {}
  OutAttr(std::string n, int v) : name(std::move(n)), value(int64_t{v}) {}
  OutAttr(std::string n, bool v) : name(std::move(n)), value(int64_t{v}) {}
  OutAttr(std::string n, DType v)
      : name(std::move(n)), value(static_cast<int64_t>(to_data_type(v))) {}
  OutAttr(std::string n, double v) : name(std::move(n)), value(v) {}
  OutAttr(std::string n, const char* v) : name(std::move(n)), value(std::string(v)) {}
  OutAttr(std::string n, std::string v) : name(std::move(n)), value(std::move(v)) {}
  OutAttr(std::string n, Ints v) : name(std::move(n)), value(std::move(v)) {}
  OutAttr(std::string n, std::vector<double> v) : name(std::move(n)), value(std::move(v)) {}
  OutAttr(std::string n, Names v) : name(std::move(n)), value(std::move(v)) {}
  OutAttr(std::string n, OutGraph v) : name(std::move(n)), value(std::move(v)) {}
  OutAttr(std::string n, OutType v) : name(std::move(n)), value(std::move(v)) {}
};
using OutAttrs = std::vector<OutAttr>;

// A TypeProto. `symbols`: whether extents that are not known keep their names.
std::string type_bytes(const ValueType& type, bool symbols);

// What the graphs of a model share.
struct ModelNames {
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, DType> dtypes;  // as far as they are known
};

struct OutInfo {
  std::string name;
  ValueType type;
};

class GraphWriter {
 public:
  explicit GraphWriter(ModelNames& model) : model_(model) {}

  ModelNames& model() { return model_; }
  std::string unique(const std::string& stem);
  std::optional<DType> dtype_of(const std::string& name) const;
  // Says of what type a value is; refuses (kUnsupported) if it was made as another.
  void set_dtype(const std::string& name, DType dtype);
  // Refuses (kUnsupported) inputs of types that the op does not take.
  Names node(std::string_view op, const Names& inputs, const OutAttrs& attrs, size_t outputs,
             const std::string& stem);
  std::string constant(const anymps::Constant& constant, const std::string& name);
  void alias(const std::string& from, const std::string& to);  // an Identity
  // The GraphProto of all that was written.
  std::string bytes(const std::string& name, const std::vector<OutInfo>& inputs,
                    const std::vector<OutInfo>& outputs, bool symbols) const;

 private:
  void write_node(std::string_view op, const Names& inputs, const Names& outputs,
                  const OutAttrs& attrs);
  ModelNames& model_;
  std::string nodes_, initializers_;  // repeated fields, one after the other
};

}  // namespace anymps::onnx
