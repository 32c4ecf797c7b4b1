// SPDX-License-Identifier: Apache-2.0
// Maps: what classifiers of ai.onnx.ml give, a label and a probability for each class of each row.
#include "ops/expect.h"

namespace anymps {

namespace {

void infer_zip_map(InferContext& ctx) {
  expect_rank(ctx, 0, 1, 1);
  expect_rank(ctx, 1, 1, 2);
  expect_shape(ctx, 0, {ctx.shape(1).back()});
  ctx.set_type(0, {ctx.dtype(1), true, ctx.shape(1), std::nullopt, Container::kMaps});
}

void infer_map_items(InferContext& ctx) {
  ctx.check(ctx.has(0) && ctx.type(0).container == Container::kMaps, "the input must be maps");
  const DType keys = ctx.attrs.dtype("key_dtype");
  ctx.check(keys == DType::kI64 || keys == DType::kString, "keys are i64 or strings, not {}",
            name(keys));
  const ValueType& maps = ctx.type(0);
  const Dim count = maps.ranked && !maps.shape.empty() ? maps.shape.back() : ctx.fresh("keys");
  const Dim rows = maps.ranked && maps.shape.size() == 2 ? maps.shape[0]
                   : maps.ranked                         ? Dim(1)
                                                         : ctx.fresh("maps");
  ctx.set(0, keys, {count});
  ctx.set(1, maps.dtype, {rows, count});
}

}  // namespace

OP(zip_map)
    .doc("A list of maps, one for each row of values, from the keys to the row's elements.")
    .formula("y[n] = {keys[c]: values[n, c]}")
    .input("keys", kText | bit(DType::kI64), "K", "[C]")
    .input("values", kFloat, "T", "[N, C], or [C] for one map")
    .output("y")
    .facts(kStructural)
    .infer(infer_zip_map)
    .no_tests("run by the runtime: tests/formats/onnx/test_ml.py");

OP(map_items)
    .doc("The keys that a list of maps share, and the values of each map in the keys' order.")
    .formula("values[n, c] = maps[n][keys[c]]")
    .input("maps", kEvery)
    .containers(bit(Container::kMaps))
    .output("keys", "", "[C]")
    .output("values", "T", "[N, C]")
    .attr("key_dtype", DType::kString, "of the keys: string or i64")
    .facts(kStructural)
    .infer(infer_map_items)
    .no_tests("run by the runtime: tests/formats/onnx/test_ml.py");

}  // namespace anymps
