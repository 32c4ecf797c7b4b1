// SPDX-License-Identifier: Apache-2.0
// Ops that write elements to places that indices name.
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

using Ints = std::vector<int64_t>;

std::string mode_of(Call& c) {
  std::string reduction = c.s("reduction", "none");
  if (reduction == "none") return "set";
  c.check(reduction == "add" || reduction == "mul" || reduction == "min" || reduction == "max",
          "reduction '{}' is not none, add, mul, min or max", reduction);
  return reduction;
}

ONNX_READ(ScatterND) {
  return {c.add("scatter_nd", {c.in(2), c.in(1), c.in(0)}, {{"mode", mode_of(c)}})};
}

ONNX_READ(ScatterElements) {
  return {c.add("scatter_along_axis", {c.in(2), c.in(1), c.in(0)},
                {{"axis", c.i("axis", 0)}, {"mode", mode_of(c)}})};
}
ONNX_READ_ALSO(kOnnx, Scatter, kOnnx, ScatterElements);

// Writes a run of steps into a cache, from where each batch's index says on.
ONNX_READ(TensorScatter) {
  Value *cache = c.in(0), *update = c.in(1), *first = c.opt(2);
  const int64_t rank = c.rank(cache), axis = c.axis("axis", -2, rank);
  const std::string mode = c.s("mode", "linear");
  c.check(mode == "linear" || mode == "circular", "mode '{}' is not linear or circular", mode);
  c.check(axis > 0 && c.rank(update) == rank, "axis {} of rank {} cannot be written to", axis,
          rank);
  auto extent = [&](Value* x) {
    return c.add("reshape",
                 {c.add("shape", {x}, {{"start", axis}, {"end", axis + 1}}), c.graph.ints({})});
  };
  auto number = [&](int64_t n) { return c.graph.scalar(DType::kI64, static_cast<double>(n)); };
  Value* places = c.add("range", {number(0), extent(update), number(1)});
  Ints ones(static_cast<size_t>(rank), 1);
  Ints along = ones;
  along[static_cast<size_t>(axis)] = -1;
  places = c.add("reshape", {places}, {{"shape", along}});
  if (first) {
    Ints batch = ones;
    batch[0] = -1;
    places =
        c.add("add", {places, c.add("reshape", {c.cast(first, DType::kI64)}, {{"shape", batch}})});
  }
  if (mode == "circular") places = c.add("floor_mod", {places, extent(cache)});
  places = c.add("expand", {places, c.add("shape", {update})});
  return {c.add("scatter_along_axis", {update, places, cache}, {{"axis", axis}})};
}

}  // namespace

}  // namespace anymps::onnx
