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

}  // namespace

OP(zip_map)
    .doc("A list of maps, one for each row of values, from the keys to the row's elements.")
    .formula("y[n] = {keys[c]: values[n, c]}")
    .input("keys", kText | bit(DType::kI64), "K", "[C]")
    .input("values", kFloat, "T", "[N, C], or [C] for one map")
    .output("y")
    .facts(kStructural)
    .infer(infer_zip_map)
    .no_tests("run by the runtime: tests/importers/onnx/test_ml.py");

}  // namespace anymps
