// SPDX-License-Identifier: Apache-2.0
// Ops that make a tensor from a few numbers: range, fill, eye_like, one_hot.
#include <algorithm>
#include <cmath>

#include "ops/gradient_parts.h"
#include "ops/shape_rules.h"

namespace anymps {

namespace {

void check_scalar(InferContext& ctx, size_t i) {
  if (!ctx.type(i).ranked) return;
  const Dims& shape = ctx.shape(i);
  ctx.check(shape.empty() || (shape.size() == 1 && (!shape[0].known() || shape[0].is(1))),
            "{} must be a scalar, it has the shape {}", ctx.op.inputs[i].name, to_string(shape));
}

void infer_range(InferContext& ctx) {
  for (size_t i = 0; i < 3; ++i) check_scalar(ctx, i);
  const Dims *start = ctx.content(0), *limit = ctx.content(1), *delta = ctx.content(2);
  if (!start || !limit || !delta || !(*delta)[0].known()) return ctx.set(0, {ctx.fresh("n")});
  const int64_t step = (*delta)[0].value();
  ctx.check(step != 0, "delta is 0");
  ctx.check(step != INT64_MIN, "delta is {}", step);
  const Dim from = (*start)[0], to = (*limit)[0];
  if (!from.known() || !to.known())
    return ctx.set(0, {step > 0 ? ceil_div(to - from, step) : ceil_div(from - to, -step)});
  const Dim span = step > 0 ? to - from : from - to;
  const int64_t stride = step > 0 ? step : -step;
  const int64_t count = span.value() <= 0 ? 0 : (span.value() - 1) / stride + 1;
  ctx.set(0, {count});
  if (count > ValueType::kMaxContent) return;
  Dims content;
  for (int64_t i = 0; i < count; ++i) content.push_back(from.value() + i * step);
  ctx.set_content(0, std::move(content));
}

// Of start, limit and delta that are not integers, or not known to inference.
std::vector<Shape> measure_range(const MeasureContext& ctx) {
  int64_t count = 0;
  dispatch<kReal>(ctx.inputs[0].desc.dtype, [&]<typename T>() {
    using C = Compute<T>;
    const C start = static_cast<C>(*ctx.inputs[0].as<T>());
    const C limit = static_cast<C>(*ctx.inputs[1].as<T>());
    const C delta = static_cast<C>(*ctx.inputs[2].as<T>());
    require(delta != C(0), "[range] delta is 0");
    const double steps = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) /
                                   static_cast<double>(delta));
    require(!(steps > 0x1p53) && !std::isnan(steps), "[range] would have {} elements", steps);
    count = steps > 0 ? static_cast<int64_t>(steps) : 0;
  });
  return {Shape{count}};
}

void infer_fill(InferContext& ctx) {
  const DType dtype = ctx.has(1) ? ctx.dtype(1) : ctx.attrs.dtype("dtype");
  if (ctx.has(1)) check_scalar(ctx, 1);
  ctx.check(ctx.attrs.f("imaginary") == 0 || is_complex(dtype),
            "a value of {} has no imaginary part", name(dtype));
  const std::optional<Dims> shape = ctx.ints(0, "shape");
  if (!shape) return set_fresh_shape(ctx, 0, dtype);
  for (const Dim& extent : *shape)
    ctx.check(!extent.known() || extent.value() >= 0, "shape {} has a negative extent",
              to_string(*shape));
  ctx.set(0, dtype, *shape);
  if (!contains(kIndex, dtype) || !all_known(*shape) || (ctx.has(1) && !ctx.content(1))) return;
  const double number = ctx.attrs.f("value");
  if (!ctx.has(1) && !(std::abs(number) < 0x1p53)) return;
  const Dim value = ctx.has(1) ? (*ctx.content(1))[0] : Dim(static_cast<int64_t>(number));
  const int64_t count = element_count(to_shape(*shape));
  if (count <= ValueType::kMaxContent) ctx.set_content(0, Dims(count, value));
}

void infer_one_hot(InferContext& ctx) {
  check_scalar(ctx, 1);
  if (ctx.type(2).ranked)
    ctx.check(ctx.rank(2) == 1 && (!ctx.shape(2)[0].known() || ctx.shape(2)[0].is(2)),
              "values must be [off, on], they have the shape {}", to_string(ctx.shape(2)));
  const int64_t rank = ctx.rank(0) + 1, given = ctx.attrs.i("axis");
  ctx.check(given >= -rank && given < rank, "axis {} is out of range for rank {}", given, rank);
  const Dim depth = ctx.content(1) ? (*ctx.content(1))[0] : ctx.fresh("depth");
  ctx.check(!depth.known() || depth.value() >= 0, "depth {} is negative", depth.str());
  Dims shape = ctx.shape(0);
  shape.insert(shape.begin() + (given < 0 ? given + rank : given), depth);
  ctx.set(0, std::move(shape));
}

std::vector<Shape> measure_one_hot(const MeasureContext& ctx) {
  double depth = 0;
  dispatch<kReal>(ctx.inputs[1].desc.dtype, [&]<typename T>() {
    depth = std::trunc(static_cast<double>(static_cast<Compute<T>>(*ctx.inputs[1].as<T>())));
  });
  require(depth >= 0 && depth <= 0x1p53, "[one_hot] depth is {}", depth);
  Shape shape = ctx.inputs[0].desc.shape;
  const auto rank = std::ssize(shape) + 1;
  const int64_t axis = normalize_axis(ctx.attrs.i("axis"), rank, "one_hot");
  shape.insert(axis, static_cast<int64_t>(depth));
  return {shape};
}

}  // namespace

OP(range)
    .doc("Numbers from start on, delta apart, as long as they lie before limit.")
    .formula("y[i] = start + i * delta, for i < ceil((limit - start) / delta)")
    .onnx("Range")
    .input("start", kReal)
    .input("limit", kReal)
    .input("delta", kReal)
    .output("y")
    .infer(infer_range)
    .measure(measure_range)
    .no_layout_tests()
    .sample({"up", {{}, {}, {}}, {}, {{0, {1}}, {1, {10}}, {2, {3}}}})
    .sample({"down", {{}, {}, {}}, {}, {{0, {5}}, {1, {0}}, {2, {-2}}}})
    .sample({"empty", {{}, {}, {}}, {}, {{0, {3}}, {1, {3}}, {2, {1}}}});

OP(fill)
    .doc("A tensor of one value. Its dtype is that of the value, or the attribute's.")
    .formula("y[i] = value")
    .mps("constantWithScalar:dataType:")
    .mps("constantWithScalar:shape:dataType:")
    .mps("constantWithRealPart:imaginaryPart:")
    .mps("constantWithRealPart:imaginaryPart:dataType:")
    .mps("constantWithRealPart:imaginaryPart:shape:dataType:")
    .ints("shape", "the shape")
    .optional("value", kEvery, "T", "a scalar; wins over the attribute")
    .output("y", "")
    .attr("value", 0.0, "the value, or its real part")
    .attr("imaginary", 0.0, "the imaginary part of a complex value")
    .attr("dtype", DType::kF32, "of the attribute's value")
    .facts(kMoves)
    .infer(infer_fill)
    .sample({"attributes", {}, {{"shape", Ints{2, 3}}, {"value", 2.5}}})
    .sample({"integer", {}, {{"shape", Ints{4}}, {"value", -3.0}, {"dtype", DType::kI64}}})
    .sample({"bool", {}, {{"shape", Ints{2}}, {"value", 1.0}, {"dtype", DType::kBool}}})
    .sample({"complex",
             {},
             {{"shape", Ints{3}}, {"value", 1.5}, {"imaginary", -2.0}, {"dtype", DType::kC64}}})
    .sample({"inputs", {{2}, {}}, {}, {{0, {3, 2}}}})
    .sample({"value_input", {{-1}, {}}, {{"shape", Ints{2, 2}}}})
    .sample({"scalar", {}, {}})
    .sample({"empty", {}, {{"shape", Ints{0, 2}}}});

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

OP(one_hot)
    .doc(
        "A new axis that holds values[1] at the place the index names and values[0] elsewhere. "
        "Negative indices count from the end; indices outside [-depth, depth) name no place.")
    .formula("y[.., k, ..] = values[indices[.., ..] == k]")
    .onnx("OneHot", {"axis"})
    .mps("oneHotWithIndicesTensor:depth:axis:dataType:onValue:offValue:name:")
    .mps("oneHotWithIndicesTensor:depth:dataType:onValue:offValue:name:")
    .mps("oneHotWithIndicesTensor:depth:axis:dataType:name:")
    .mps("oneHotWithIndicesTensor:depth:axis:name:")
    .mps("oneHotWithIndicesTensor:depth:dataType:name:")
    .mps("oneHotWithIndicesTensor:depth:name:")
    .input("indices", kReal, "I")
    .input("depth", kReal, "D", "a scalar: the extent of the new axis")
    .input("values", kEvery, "T", "[off, on]")
    .output("y", "T")
    .attr("axis", -1, "place of the new axis in the output")
    .infer(infer_one_hot)
    .measure(measure_one_hot)
    .domain("indices", -5, 6)
    .sample({"last", {{2, 3}, {}, {2}}, {}, {{0, {0, 3, -1, 2, 4, -5}}, {1, {4}}}})
    .sample({"first", {{3}, {}, {2}}, {{"axis", 0}}, {{0, {2, 0, 1}}, {1, {3}}}})
    .sample({"scalar", {{}, {}, {2}}, {}, {{0, {1}}, {1, {3}}}})
    .sample({"empty", {{0}, {}, {2}}, {}, {{0, {}}, {1, {3}}}})
    .sample({"no_depth", {{2}, {}, {2}}, {}, {{0, {0, 1}}, {1, {0}}}});

static Term total(GradientContext& ctx, const Term& value) {
  return ctx.sum(value, axes_from(0, value.rank()), false);
}

COMPLEX_GRADIENT(fill) { ctx.set(1, ctx.reshape_like(total(ctx, ctx.dy()), ctx.x(1))); }

GRADIENT(range) {  // y[i] = start + i * delta; the limit only counts
  const Term dy = ctx.dy();
  if (ctx.wants(0)) ctx.set(0, ctx.reshape_like(total(ctx, dy), ctx.x(0)));
  if (!ctx.wants(2)) return;
  const Term places = ctx.add("cumsum", {ctx.fill_like(dy, 1)}, {{"axis", 0}, {"exclusive", true}});
  ctx.set(2, ctx.reshape_like(total(ctx, dy * places), ctx.x(2)));
}

COMPLEX_GRADIENT(one_hot) {
  const Term dy = ctx.dy();
  const Term flags =
      ctx.add("concat", {ctx.scalar(0, dy.dtype()).op("unsqueeze", {{"axes", Ints{0}}}),
                         ctx.scalar(1, dy.dtype()).op("unsqueeze", {{"axes", Ints{0}}})});
  const Term on =
      ctx.add("one_hot", {ctx.x(0), ctx.x(1), flags}, {{"axis", ctx.attrs().i("axis")}});
  const Term picked = total(ctx, dy * on), rest = total(ctx, dy * (1 - on));
  ctx.set(2, ctx.add("stack", {rest, picked}, {{"axis", 0}}));
}

ZERO_GRADIENT(eye_like, "reads a shape alone");

}  // namespace anymps
