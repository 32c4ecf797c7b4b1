// SPDX-License-Identifier: Apache-2.0
// The Hamming distance of bit vectors.
#include "ops/gradient.h"
#include "ops/infer.h"

namespace anymps {

namespace {

void infer_hamming_distance(InferContext& ctx) {
  ctx.check(ctx.rank(0) >= 1 && ctx.rank(1) >= 1, "both inputs must have rank 1 or more");
  const DType dtype = ctx.attrs.dtype("dtype");
  ctx.check(contains(kInt | kFloat, dtype), "dtype {} cannot hold a distance", name(dtype));
  Dims shape = broadcast(ctx.shape(0), ctx.shape(1), "hamming_distance");
  shape.pop_back();
  ctx.set(0, std::move(shape));
}

}  // namespace

OP(hamming_distance)
    .doc("In how many bits the vectors along the last axis differ; the axes before it broadcast.")
    .formula("y[i..] = sum over k of popcount(a[i.., k] ^ b[i.., k])")
    .mps("HammingDistanceWithPrimaryTensor:secondaryTensor:resultDataType:name:")
    .input("a", kInt)
    .input("b", kInt)
    .output("y", "")
    .attr("dtype", DType::kU32, "of y")
    .infer(infer_hamming_distance)
    .domain(-100, 100)
    .sample({"vectors", {{7}, {7}}, {}})
    .sample({"sets", {{3, 1, 5}, {1, 4, 5}}, {}})
    .sample({"one_to_many", {{5}, {4, 5}}, {{"dtype", DType::kU16}}})
    .sample({"empty", {{0, 5}, {5}}, {}})
    .sample({"empty_vectors", {{3, 0}, {3, 0}}, {}});

ZERO_GRADIENT(hamming_distance, "works on integers");

}  // namespace anymps
