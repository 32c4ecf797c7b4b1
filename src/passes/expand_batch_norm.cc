// SPDX-License-Identifier: Apache-2.0
// A batch norm of constants that no convolution took in becomes one product and one sum for each
// element, which merge with the elementwise nodes beside them:
//   batch_norm(x, mean, variance, gamma, beta)  ->  x * s + t
#include <cmath>

#include "passes/fuse.h"

namespace anymps {

namespace {

constexpr int64_t kMostNormed = 1 << 20;

Value* as_affine_of_channels(Graph& graph, Node& node) {
  if (!node.is("batch_norm") || node.output()->dtype() != DType::kF32) return nullptr;
  const int64_t rank = rank_of(node.input(0));
  if (rank < 1) return nullptr;
  const int64_t axis = (node.attrs.i("axis") + rank) % rank;
  const auto mean = numbers_of(node.input(1), kMostNormed),
             variance = numbers_of(node.input(2), kMostNormed);
  if (!mean || !variance) return nullptr;
  std::vector<double> scale(mean->size(), 1.0), shift(mean->size(), 0.0);
  for (const auto& [input, numbers] : {std::pair(3, &scale), std::pair(4, &shift)}) {
    if (!node.input(input)) continue;
    const auto given = numbers_of(node.input(input), kMostNormed);
    if (!given) return nullptr;
    *numbers = *given;
  }
  for (size_t c = 0; c < scale.size(); ++c) {
    scale[c] /= std::sqrt((*variance)[c] + node.attrs.f("epsilon"));
    shift[c] -= (*mean)[c] * scale[c];
  }
  Shape shape(rank - axis, 1);
  shape[0] = std::ssize(scale);
  const auto channels = [&](const std::vector<double>& numbers, const char* name) {
    return graph.constant(constant_from(DType::kF32, shape, numbers), node.name + name);
  };
  Value* product =
      graph.add("mul", {node.input(0), channels(scale, ".scale")}, {}, node.name + ".scaled");
  return graph.add("add", {product, channels(shift, ".shift")}, {}, node.name);
}

}  // namespace

PASS(expand_batch_norm, 590, "a batch_norm that no convolution took in becomes mul and add") {
  return fuse_each(graph, context, as_affine_of_channels);
}

}  // namespace anymps
