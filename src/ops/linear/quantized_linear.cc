// SPDX-License-Identifier: Apache-2.0
// Linear algebra on quantized integers: exact sums of products in i32, and their way back to few
// bits.
#include <algorithm>

#include "ops/expect.h"
#include "ops/layers/window.h"
#include "semantics/fused_activation.h"
#include "semantics/quantization_rules.h"

namespace anymps {

namespace {

constexpr DTypeSet kBytes = bit(DType::kI8) | bit(DType::kU8);

// A zero point is one number, one for each row of a (or column of b), or of the operand's shape
// with 1 in place of the axis that is summed over.
void check_zero_point(const InferContext& ctx, size_t i, size_t operand, bool rows) {
  if (!ctx.has(i) || !ctx.type(i).static_shape() || !ctx.type(operand).ranked) return;
  const Dims &zero = ctx.shape(i), &x = ctx.shape(operand);
  if (element_count(to_shape(zero)) == 1) return;
  Dims expected;
  if (zero.size() == 1 && x.size() > 1) {
    expected = {x[x.size() - (rows ? 2 : 1)]};
  } else {
    expected = x;
    if (!expected.empty()) expected[x.size() - (rows || x.size() == 1 ? 1 : 2)] = 1;
  }
  ctx.check(may_equal(zero, expected), "zero point {} does not fit {} {}", to_string(zero),
            rows ? "a" : "b", to_string(x));
}

Dims integer_matmul_shape(InferContext& ctx) {
  const Dims &a = ctx.shape(0), &b = ctx.shape(1);
  ctx.check(!a.empty() && !b.empty(), "a {} and b {} must have rank 1 or more", to_string(a),
            to_string(b));
  const Dim& rows = b.size() == 1 ? b[0] : b[b.size() - 2];
  ctx.check(may_equal(a.back(), rows), "cannot multiply a {} by b {}: {} columns, {} rows",
            to_string(a), to_string(b), a.back().str(), rows.str());
  check_zero_point(ctx, 2, 0, true);
  check_zero_point(ctx, 3, 1, false);
  const auto batch = [](const Dims& shape) {
    return shape.size() > 2 ? Dims(shape.begin(), shape.end() - 2) : Dims{};
  };
  Dims y = broadcast(batch(a), batch(b), "matmul_integer");
  if (a.size() > 1) y.push_back(a[a.size() - 2]);
  if (b.size() > 1) y.push_back(b.back());
  return y;
}

Dims integer_conv_shape(InferContext& ctx, const TensorAxes& axes) {
  const Dims &x = ctx.shape(0), &w = ctx.shape(1);
  expect_rank(ctx, 1, ctx.rank(0), ctx.rank(0));
  const int64_t groups = ctx.attrs.i("groups");
  ctx.check(groups >= 1, "groups is {}, must be at least 1", groups);
  ctx.check(may_equal(x[axes.channel], w[1] * Dim(groups)) &&
                (!w[0].known() || w[0].value() % groups == 0),
            "x {} does not fit w {} with {} groups", to_string(x), to_string(w), groups);
  for (const size_t i : {size_t{2}, size_t{3}})
    if (ctx.has(i) && ctx.type(i).static_shape()) {
      const int64_t count = element_count(to_shape(ctx.shape(i)));
      ctx.check(count == 1 || (i == 3 && ctx.rank(3) == 1 && may_equal(ctx.shape(3)[0], w[0])),
                "zero point {} must be one number{}", to_string(ctx.shape(i)),
                i == 3 ? ", or one for each output channel" : "");
    }
  const auto first = x.begin() + static_cast<std::ptrdiff_t>(axes.spatial);
  const Dims spatial(first, first + static_cast<std::ptrdiff_t>(axes.count));
  Dims y(x.size());
  y[0] = x[0];
  y[axes.channel] = w[0];
  std::ranges::copy(window_outputs(ctx.attrs, spatial, Dims(w.begin() + 2, w.end())),
                    y.begin() + static_cast<std::ptrdiff_t>(axes.spatial));
  return y;
}

void infer_matmul_integer(InferContext& ctx) { ctx.set(0, DType::kI32, integer_matmul_shape(ctx)); }
void infer_conv_integer(InferContext& ctx) {
  expect_rank(ctx, 0, 3, 5);
  ctx.set(0, DType::kI32, integer_conv_shape(ctx, {1, 2, ctx.shape(0).size() - 2}));
}

// What a fused product does with its sums.
void check_scaled(const InferContext& ctx, const Dim& channels, const char* alpha,
                  const char* beta) {
  const DType to = ctx.attrs.dtype("dtype");
  ctx.check(to == DType::kF32 || contains(kBytes, to), "dtype {} is not f32 or one of {}", name(to),
            to_string(kBytes));
  for (const size_t i : {size_t{4}, size_t{5}})
    if (ctx.has(i) && ctx.type(i).ranked) {
      const Dims& shape = ctx.shape(i);
      const bool one = i == 4 && (shape.empty() || (shape.size() == 1 && shape[0].is(1)));
      ctx.check(one || (shape.size() == 1 && may_equal(shape[0], channels)),
                "{} {} must be {} for each of {}", ctx.op.inputs[i].name, to_string(shape),
                i == 4 ? "one, or one" : "one", channels.str());
    }
  ctx.check(!ctx.has(6) || ctx.dtype(6) == to, "the zero point is {}, must be {}",
            ctx.has(6) ? name(ctx.dtype(6)) : "", name(to));
  if (ctx.has(6) && ctx.type(6).static_shape())
    ctx.check(element_count(to_shape(ctx.shape(6))) == 1, "y_zero_point {} must be one number",
              to_string(ctx.shape(6)));
  ctx.check(ctx.attrs.s("activation") != "clamp" || ctx.attrs.f(alpha) <= ctx.attrs.f(beta),
            "activation clamp has {} {} above {} {}", alpha, ctx.attrs.f(alpha), beta,
            ctx.attrs.f(beta));
}

void infer_quantized_matmul(InferContext& ctx) {
  Dims y = integer_matmul_shape(ctx);
  check_scaled(ctx, ctx.rank(1) > 1 ? ctx.shape(1).back() : Dim(1), "act_alpha", "act_beta");
  ctx.set(0, ctx.attrs.dtype("dtype"), std::move(y));
}

void infer_quantized_conv(InferContext& ctx) {
  expect_rank(ctx, 0, 3, 5);
  Dims y = integer_conv_shape(ctx, tensor_axes(ctx.attrs, ctx.rank(0)));
  check_scaled(ctx, ctx.shape(1)[0], "alpha", "beta");
  ctx.set(0, ctx.attrs.dtype("dtype"), std::move(y));
}

void infer_requantize(InferContext& ctx) {
  const DType to = ctx.attrs.dtype("dtype");
  ctx.check(contains(kBytes, to), "dtype {} is not one of {}", name(to), to_string(kBytes));
  for (const size_t i : {size_t{1}, size_t{2}})
    if (ctx.has(i) && ctx.type(i).static_shape() && ctx.type(0).static_shape()) {
      const Shape scale = to_shape(ctx.shape(i));
      quant_groups("requantize", to_shape(ctx.shape(0)), scale, contiguous_strides(scale),
                   ctx.attrs.i("axis"), 0);
    }
  ctx.set(0, to, ctx.shape(0));
}

double product_cost(const Attrs&, const std::vector<Shape>& in, const std::vector<Shape>& out) {
  double count = 2 * static_cast<double>(in[0].back());
  for (const int64_t extent : out[0]) count *= static_cast<double>(extent);
  return count;
}

double integer_conv_cost(const Attrs&, const std::vector<Shape>& in,
                         const std::vector<Shape>& out) {
  double count = in[1][0] == 0 ? 0 : 2.0 / static_cast<double>(in[1][0]);
  for (const int64_t extent : in[1]) count *= static_cast<double>(extent);
  for (const int64_t extent : out[0]) count *= static_cast<double>(extent);
  return count;
}

auto scaled_sums(const char* alpha, const char* beta) {
  return [=](OpWriter& op) -> OpWriter& {
    return op.optional("scale", bit(DType::kF32), "S", "one, or one for each channel; absent: 1")
        .optional("bias", bit(DType::kF32), "S", "one for each channel")
        .optional("y_zero_point", kBytes, "Z", "of y's dtype; absent: 0")
        .output("y", "")
        .attr("dtype", DType::kF32, "of y: f32, i8 or u8")
        .attr("activation", "none", {"none", "relu", "clamp"}, "before y is rounded")
        .attr(alpha, 0.0, "of clamp: the least number")
        .attr(beta, 0.0, "of clamp: the largest number")
        .facts(kInternal | kProduct)
        .domain(-100, 100)
        .domain("scale", 0.0005, 0.002)
        .domain("bias", -20, 20)
        .domain("y_zero_point", 0, 5);
  };
}

}  // namespace

OP(matmul_integer)
    .doc("Matrix product of bytes with NumPy's rules, exact in i32; zero points are subtracted.")
    .formula("y = (a - a_zero_point) @ (b - b_zero_point)")
    .input("a", kBytes, "A")
    .input("b", kBytes, "B")
    .optional("a_zero_point", kBytes, "A", "one, or one for each row of a")
    .optional("b_zero_point", kBytes, "B", "one, or one for each column of b")
    .output("y", "i32")
    .infer(infer_matmul_integer)
    .cost(product_cost)
    .domain(-100, 100)
    .sample({"plain", {{5, 7}, {7, 9}}, {}})
    .sample({"zero points", {{4, 3}, {3, 2}, {}, {}}, {}})
    .sample({"rows and columns", {{6, 65}, {65, 33}, {6}, {33}}, {}})
    .sample({"batch", {{2, 3, 5, 8}, {8, 4}, {1}, Sample::absent}, {}})
    .sample({"both batched", {{2, 1, 5, 8}, {3, 8, 4}, {2, 1, 5, 1}, {3, 1, 4}}, {}})
    .sample({"vector", {{7}, {7, 3}}, {}})
    .sample({"by vector", {{2, 4, 7}, {7}}, {}})
    .sample({"large", {{37, 130}, {130, 70}, {}, {70}}, {}})
    .sample({"nothing to sum", {{2, 0}, {0, 3}}, {}})
    .sample({"empty", {{0, 3}, {3, 2}}, {}});

OP(conv_integer)
    .doc(
        "Convolution of bytes over one to three spatial axes, exact in i32; zero points are "
        "subtracted, and the border is 0 after that.")
    .formula("y[n,o,p] = sum over c,k of (x[n,c,p*stride+k*dilation-pad] - xz) * (w[o,c,k] - wz)")
    .input("x", kBytes, "A", "[N, C, spatial…]")
    .input("w", kBytes, "B", "[O, C/groups, kernel…]")
    .optional("x_zero_point", kBytes, "A", "one number")
    .optional("w_zero_point", kBytes, "B", "one, or one for each output channel")
    .output("y", "i32")
    .with(grouped_window)
    .infer(infer_conv_integer)
    .cost(integer_conv_cost)
    .domain(-100, 100)
    .sample({"2d", {{1, 3, 9, 7}, {5, 3, 3, 3}, {}, {5}}, {{"pads", Ints{1, 1, 1, 1}}}})
    .sample({"1d", {{2, 4, 11}, {6, 4, 3}}, {{"strides", Ints{2}}, {"dilations", Ints{2}}}})
    .sample({"3d", {{1, 2, 4, 5, 3}, {3, 2, 2, 2, 2}, {}, {}}, {}})
    .sample({"groups", {{2, 4, 6, 6}, {8, 2, 3, 3}, {}, {}}, {{"groups", 2}}})
    .sample({"depthwise",
             {{1, 6, 8, 8}, {6, 1, 3, 3}, {}, {}},
             {{"groups", 6}, {"auto_pad", "same_upper"}, {"strides", Ints{2, 2}}}})
    .sample({"1x1", {{1, 32, 5, 5}, {16, 32, 1, 1}, {}, {}}, {}})
    .sample({"empty", {{0, 3, 5, 5}, {2, 3, 3, 3}}, {}});

OP(quantized_matmul)
    .doc(
        "matmul_integer, with its sums scaled. Of the sum in f32, times scale, plus bias, each "
        "step is rounded to f32; bytes are then rounded to nearest even and clamped. Columns are "
        "channels.")
    .formula("y = act(f32(matmul_integer(a, b)) * scale + bias); bytes: saturate(rint(y) + y_zero)")
    .input("a", kBytes, "A")
    .input("b", kBytes, "B")
    .optional("a_zero_point", kBytes, "A", "one, or one for each row of a")
    .optional("b_zero_point", kBytes, "B", "one, or one for each column of b")
    .with(scaled_sums("act_alpha", "act_beta"))
    .infer(infer_quantized_matmul)
    .cost(product_cost)
    .sample({"plain", {{5, 7}, {7, 9}}, {}})
    .sample({"to f32", {{4, 3, 30}, {30, 20}, {}, {}, {20}, {20}}, {{"activation", "relu"}}})
    .sample({"to u8",
             {{6, 65}, {65, 33}, {6}, {33}, {33}, Sample::absent, {}},
             {{"dtype", DType::kU8}}})
    .sample(
        {"to i8",
         {{7, 130}, {130, 70}, {}, {}, {}, {70}, {}},
         {{"dtype", DType::kI8}, {"activation", "clamp"}, {"act_alpha", -5.0}, {"act_beta", 60.0}}})
    .sample({"batch", {{2, 1, 5, 8}, {3, 8, 4}, {}, {}, {}}, {{"dtype", DType::kI8}}})
    .sample({"empty", {{0, 3}, {3, 2}, {}, {}, {2}}, {}});

OP(quantized_conv)
    .doc(
        "conv_integer, with its sums scaled. Of the sum in f32, times scale, plus bias, each step "
        "is rounded to f32; bytes are then rounded to nearest even and clamped.")
    .formula("y = act(f32(conv_integer(x, w)) * scale + bias); bytes: saturate(rint(y) + y_zero)")
    .input("x", kBytes, "A", kImageDoc)
    .input("w", kBytes, "B", "[O, C/groups, kernel…]")
    .optional("x_zero_point", kBytes, "A", "one number")
    .optional("w_zero_point", kBytes, "B", "one, or one for each output channel")
    .with(scaled_sums("alpha", "beta"))
    .with(grouped_window)
    .attr("layout", "channels_first", layout_choices(), "of x and y")
    .layout(LayoutRule::kImage)
    .infer(infer_quantized_conv)
    .cost(integer_conv_cost)
    .sample({"to u8",
             {{1, 3, 9, 7}, {5, 3, 3, 3}, {}, {5}, {5}, {5}, {}},
             {{"pads", Ints{1, 1, 1, 1}}, {"dtype", DType::kU8}, {"activation", "relu"}}})
    .sample({"to f32", {{2, 4, 11}, {6, 4, 3}, {}, {}, {}, {6}}, {{"strides", Ints{2}}}})
    .sample({"groups",
             {{2, 4, 6, 6}, {8, 2, 3, 3}, {}, {}, {8}},
             {{"groups", 2}, {"dtype", DType::kI8}}})
    .sample({"1x1",
             {{1, 32, 5, 5}, {16, 32, 1, 1}, {}, {}, {}, {16}},
             {{"activation", "clamp"}, {"alpha", -3.0}, {"beta", 6.0}}})
    .sample({"channels last",
             {{2, 9, 8, 20}, {7, 20, 3, 3}, {}, {7}, {7}, {7}, {}},
             {{"pads", Ints{1, 1, 1, 1}}, {"dtype", DType::kU8}, {"layout", "channels_last"}}})
    .sample({"1x1, channels last",
             {{1, 5, 5, 32}, {16, 32, 1, 1}, {}, {}, {}, {16}},
             {{"layout", "channels_last"}}})
    .sample({"depthwise, channels last",
             {{1, 8, 7, 35}, {35, 1, 3, 3}, {}, {}, {35}, {35}, {}},
             {{"groups", 35},
              {"auto_pad", "same_upper"},
              {"strides", Ints{2, 1}},
              {"dtype", DType::kI8},
              {"activation", "relu"},
              {"layout", "channels_last"}}})
    .sample({"groups, channels last",
             {{1, 9, 8}, {6, 4, 3}, {}, {}, {6}},
             {{"groups", 2}, {"layout", "channels_last"}}})
    .sample({"empty", {{0, 3, 5, 5}, {2, 3, 3, 3}}, {}});

OP(requantize)
    .doc("Sums in i32 as bytes in steps of another scale: rounded to nearest even, then clamped.")
    .formula("y = saturate(rint(x * scale) + zero_point)")
    .input("x", bit(DType::kI32))
    .input("scale", kFloat, "S", "one, or one for each place on the axis")
    .optional("zero_point", kBytes, "Z", "of y's dtype")
    .output("y", "")
    .required("dtype", AttrKind::kDType, "of y")
    .attr("axis", 1, "of a vector of scales")
    .infer(infer_requantize)
    .domain(-3000, 3000)
    .domain("scale", 0.01, 0.1)
    .domain("zero_point", 0, 5)
    .sample({"tensor", {{3, 37}, {}, {}}, {{"dtype", DType::kU8}}})
    .sample({"channels", {{2, 3, 5, 5}, {3}, {}}, {{"dtype", DType::kI8}}})
    .sample({"last", {{4, 17}, {17}}, {{"dtype", DType::kI8}, {"axis", -1}}})
    .sample({"scalar", {{}, {}}, {{"dtype", DType::kU8}}})
    .sample({"empty", {{0, 3}, {3}}, {{"dtype", DType::kU8}}});

}  // namespace anymps
