// SPDX-License-Identifier: Apache-2.0
// What converters of every format do with the graph that they make: add nodes under the name of the
// node at hand, and say what is wrong with that node. The importer around it puts the file and the
// node in front of the message.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace anymps {

using Values = std::vector<Value*>;

class NodeBuilder {
 public:
  NodeBuilder(Graph& graph, std::string name) : graph(graph), name_(std::move(name)) {}

  Graph& graph;

  // Adds an op, of which the first output is used, or the first `outputs`.
  Value* add(std::string_view op, Values inputs, const NamedAttrs& attrs = {});
  Values add_all(std::string_view op, Values inputs, const NamedAttrs& attrs, size_t outputs);
  Value* cast(Value* x, DType to);
  Value* scalar_like(const Value* value, double number) {
    return graph.scalar(value->dtype(), number);
  }

  int64_t rank(const Value* value) const;  // fails while it is not known
  // An axis in [-rank, rank) as one in [0, rank).
  int64_t normalize(int64_t axis, int64_t rank) const;

  template <typename... Args>
  void check(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (!condition) [[unlikely]]
      anymps::fail(Code::kInvalidArgument, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  [[noreturn]] void unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    anymps::fail(Code::kUnsupported, format, std::forward<Args>(args)...);
  }

 private:
  std::string name_;
};

}  // namespace anymps
