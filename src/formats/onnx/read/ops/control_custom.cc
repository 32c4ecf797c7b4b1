// SPDX-License-Identifier: Apache-2.0
// The user's own ops: a node becomes `custom` with the node's attributes.
#include "ops/control/custom.h"

#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

NamedAttr to_attr(const Attribute& attribute) {
  const std::string name(attribute.name);
  switch (attribute.type) {
    case Attribute::Type::kInt:
      return {name, attribute.i};
    case Attribute::Type::kFloat:
      return {name, attribute.f};
    case Attribute::Type::kString:
      return {name, std::string(attribute.s)};
    case Attribute::Type::kInts:
      return {name, attribute.ints};
    case Attribute::Type::kFloats:
      return {name, std::vector<double>(attribute.floats.begin(), attribute.floats.end())};
    default:
      fail(Code::kUnsupported, "attribute '{}' of an op of your own cannot be of type {}", name,
           onnx::name(attribute.type));
  }
}

Values custom(Call& c) {
  Values inputs;
  for (size_t i = 0; i < c.input_count(); ++i) inputs.push_back(c.opt(i));
  NamedAttrs attrs;
  for (const Attribute& attribute : c.node.attributes) {
    attrs.push_back(to_attr(attribute));
    c.ignore({attrs.back().name.c_str()});
  }
  return c.add_all("custom", std::move(inputs),
                   {{"op", fmt::format("{}.{}", c.node.domain, c.node.op_type)},
                    {"attributes", encode_custom_attrs(attrs)}},
                   c.output_count());
}

}  // namespace

const Converter* custom_converter(std::string_view name) {
  static constexpr Converter kConverter{.convert = custom};
  return find_custom_op(name) ? &kConverter : nullptr;
}

}  // namespace anymps::onnx
