// SPDX-License-Identifier: Apache-2.0
// Gradient, of ai.onnx.preview.training: the derivatives of a value of the graph, named by an
// attribute, become nodes of the graph.
#include "graph/gradient.h"

#include "formats/onnx/read/importer.h"

namespace anymps::onnx {

ONNX_READ_INSIDE(kTraining, Gradient, convert_gradient);

Values Importer::convert_gradient(const Node& node, const Values& inputs, Scope& scope) {
  const Attribute *xs = node.find("xs"), *zs = node.find("zs"), *y = node.find("y");
  require(xs && xs->type == Attribute::Type::kStrings, "attribute 'xs' is missing");
  require(y && y->type == Attribute::Type::kString, "attribute 'y' is missing");
  std::vector<std::string_view> names = xs->strings;
  if (zs) names.insert(names.end(), zs->strings.begin(), zs->strings.end());
  require(names.size() == inputs.size(), "{} inputs for the names of {} in xs and zs",
          inputs.size(), names.size());
  // The op may put other values in place of the named ones; only the values themselves do here.
  for (size_t i = 0; i < names.size(); ++i)
    if (node.inputs[i] != names[i])
      fail(Code::kUnsupported, "\"{}\" in the place of \"{}\" is not supported", node.inputs[i],
           names[i]);
  const Values to(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(xs->strings.size()));
  return gradient(scope.target->graph, lookup(scope, y->s), to);
}

}  // namespace anymps::onnx
