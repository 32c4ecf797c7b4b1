// SPDX-License-Identifier: Apache-2.0
// Parts of matrices and of sequences: band_part, eye_like, reverse_sequence, and the Hamming
// distance of bit vectors.
#include "ops/axis_input.h"
#include "ops/expect.h"

namespace anymps {

namespace {

void infer_reverse_sequence(InferContext& ctx) {
  const int64_t time = ctx.axis("time_axis", 0), batch = ctx.axis("batch_axis", 0);
  ctx.check(time != batch, "time_axis and batch_axis are both {}", time);
  expect_shape(ctx, 1, {ctx.shape(0)[static_cast<size_t>(batch)]});
  ctx.set(0, ctx.shape(0));
}

void infer_hamming_distance(InferContext& ctx) {
  ctx.check(ctx.rank(0) >= 1 && ctx.rank(1) >= 1, "both inputs must have rank 1 or more");
  const DType dtype = ctx.attrs.dtype("dtype");
  ctx.check(contains(kInt | kFloat, dtype), "dtype {} cannot hold a distance", name(dtype));
  Dims shape = broadcast(ctx.shape(0), ctx.shape(1), "hamming_distance");
  shape.pop_back();
  ctx.set(0, std::move(shape));
}

}  // namespace

OP(band_part)
    .doc(
        "Keeps the diagonals of the last two axes from `lower` below the main one to `upper` above "
        "it, and zeroes the rest. A negative number keeps all on that side.")
    .formula("y[.., i, j] = x[.., i, j] where i - j <= lower and j - i <= upper, else 0")
    .mps("bandPartWithTensor:numLower:numUpper:name:")
    .mps("bandPartWithTensor:numLowerTensor:numUpperTensor:name:")
    .input("x", kAny)
    .optional("lower", kIndex, "I", "a scalar; wins over the attribute")
    .optional("upper", kIndex, "I", "a scalar; wins over the attribute")
    .output("y")
    .attr("lower", -1, "diagonals below the main one")
    .attr("upper", -1, "diagonals above the main one")
    .facts(kMoves)
    .infer([](InferContext& ctx) {
      ctx.check(ctx.rank(0) >= 2, "x must have rank 2 or more, it has rank {}", ctx.rank(0));
      known_int(ctx, 1, "lower");
      known_int(ctx, 2, "upper");
      ctx.set(0, ctx.shape(0));
    })
    .sample({"band", {{5, 6}}, {{"lower", 1}, {"upper", 2}}})
    .sample({"lower", {{2, 4, 3}}, {{"upper", 0}}})
    .sample({"upper", {{2, 4, 3}}, {{"lower", 0}}})
    .sample({"all", {{3, 3}}, {}})
    .sample({"inputs", {{4, 4}, {}, {1}}, {}, {{1, {0}}, {2, {1}}}})
    .sample({"empty", {{2, 0, 3}}, {{"lower", 1}}});

OP(eye_like)
    .doc("Ones on a diagonal, zeros elsewhere, in the shape of a matrix.")
    .formula("y[i, j] = j - i == k")
    .input("x", kAny, "S", "its shape alone is read")
    .output("y", "")
    .attr("dtype", DType::kF32, "of y")
    .attr("k", 0, "the diagonal; positive ones lie above the main one")
    .facts(kShapeOnly)
    .infer([](InferContext& ctx) {
      ctx.check(ctx.rank(0) == 2, "x must have rank 2, it has rank {}", ctx.rank(0));
      ctx.check(contains(kAny, ctx.attrs.dtype("dtype")), "dtype {} has no ones",
                name(ctx.attrs.dtype("dtype")));
      ctx.set(0, ctx.shape(0));
    })
    .sample({"square", {{3, 3}}, {}})
    .sample({"above", {{3, 5}}, {{"k", 1}, {"dtype", DType::kI32}}})
    .sample({"below", {{4, 3}}, {{"k", -2}, {"dtype", DType::kBool}}})
    .sample({"outside", {{2, 2}}, {{"k", 5}, {"dtype", DType::kF16}}})
    .sample({"empty", {{0, 3}}, {}});

OP(reverse_sequence)
    .doc("Turns round the first lengths[b] steps of each sequence b of a batch.")
    .formula("y[.., t, .., b, ..] = x[.., lengths[b] - 1 - t, .., b, ..] for t < lengths[b]")
    .input("x", kEvery)
    .input("lengths", kIndex, "I", "one for each sequence, at most the number of steps")
    .output("y")
    .attr("time_axis", 0, "the axis of steps")
    .attr("batch_axis", 1, "the axis of sequences")
    .facts(kMoves)
    .infer(infer_reverse_sequence)
    .sample({"time_first", {{4, 3, 2}, {3}}, {}, {{1, {4, 0, 2}}}})
    .sample({"batch_first", {{3, 4}, {3}}, {{"time_axis", 1}, {"batch_axis", 0}}, {{1, {1, 4, 3}}}})
    .sample({"last", {{2, 3, 5}, {2}}, {{"time_axis", -1}, {"batch_axis", 0}}, {{1, {5, 2}}}})
    .sample({"empty", {{3, 0}, {0}}, {}, {{1, {}}}});

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

}  // namespace anymps
