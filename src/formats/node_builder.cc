// SPDX-License-Identifier: Apache-2.0
#include "formats/node_builder.h"

namespace anymps {

Value* NodeBuilder::add(std::string_view op, Values inputs, const NamedAttrs& attrs) {
  return add_all(op, std::move(inputs), attrs, 1)[0];
}

Values NodeBuilder::add_all(std::string_view op, Values inputs, const NamedAttrs& attrs,
                            size_t outputs) {
  return graph.add_node(get_op(op), std::move(inputs), attrs, name_, outputs)->outputs;
}

Value* NodeBuilder::cast(Value* x, DType to) {
  return x->dtype() == to ? x : add("cast", {x}, {{"dtype", to}});
}

int64_t NodeBuilder::rank(const Value* value) const {
  if (!value->type.ranked) unsupported("the rank of \"{}\" is not known", value->name);
  return std::ssize(value->shape());
}

int64_t NodeBuilder::normalize(int64_t axis, int64_t rank) const {
  check(axis >= -rank && axis < rank, "axis {} is out of range for rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

}  // namespace anymps
