// SPDX-License-Identifier: Apache-2.0
// Between numbers and their quantized forms: affine (a scale and a zero point for a tensor, an axis
// or a block) and by lookup tables.
#include "base/narrow.h"
#include "ops/expect.h"
#include "ops/infer.h"
#include "semantics/quantization_rules.h"

namespace anymps {

namespace {

constexpr DTypeSet kScaleTypes = kFloat | bit(DType::kF8E8M0);
constexpr DTypeSet kQuantInt = bit(DType::kI8) | bit(DType::kU8) | bit(DType::kI16) |
                               bit(DType::kU16) | bit(DType::kI32) | kNarrowInt;
constexpr DTypeSet kQuantized = kQuantInt | (kNarrowFloat & ~bit(DType::kF8E8M0));

// Scale and zero point against x, as soon as the shapes are numbers.
void check_groups(const InferContext& ctx) {
  if (!ctx.has(1)) ctx.check(ctx.attrs.f("scale") != 0, "attribute 'scale' is 0");
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (!ctx.has(i) || !ctx.type(i).static_shape() || !ctx.type(0).static_shape()) continue;
    const Shape scale = to_shape(ctx.shape(i));
    quant_groups(ctx.op.name.c_str(), to_shape(ctx.shape(0)), scale, contiguous_strides(scale),
                 ctx.attrs.i("axis"), ctx.attrs.i("block_size"));
  }
}

void infer_quantize(InferContext& ctx) {
  const DType to = ctx.attrs.dtype("dtype");
  ctx.check(contains(kQuantized, to), "dtype {} is not one of {}", name(to), to_string(kQuantized));
  check_groups(ctx);
  ctx.set(0, to, ctx.shape(0));
}

void infer_dequantize(InferContext& ctx) {
  const DType to = ctx.attrs.dtype("dtype");
  ctx.check(is_float(to), "dtype {} is not one of {}", name(to), to_string(kFloat));
  check_groups(ctx);
  ctx.set(0, to, ctx.shape(0));
}

void infer_lut(InferContext& ctx) {
  const Dims &x = ctx.shape(0), &table = ctx.shape(1);
  const bool vector = table.size() == x.size() + 2;
  ctx.check(vector || table.size() == x.size() + 1 || table.size() == 1,
            "the table {} must have the rank of x {} and one axis more, two for vectors",
            to_string(table), to_string(x));
  if (table.size() > 1)
    for (size_t i = 0; i < x.size(); ++i)
      ctx.check(!x[i].known() || !table[i].known() ||
                    (table[i].value() > 0 && x[i].value() % table[i].value() == 0),
                "the table {} does not divide x {} evenly", to_string(table), to_string(x));
  Dims shape = x;
  if (vector) {
    const size_t axis = ctx.axis("axis", 0);
    shape[axis] = shape[axis] * table.back();
  }
  ctx.set(0, ctx.dtype(1), std::move(shape));
}

void infer_dynamic(InferContext& ctx) {
  ctx.set(0, DType::kU8, ctx.shape(0));
  ctx.set(1, DType::kF32, Dims{});
  ctx.set(2, DType::kU8, Dims{});
}

auto scaled_by(DTypeSet zero_points) {
  return [=](OpWriter& op) -> OpWriter& {
    return op.optional("scale", kScaleTypes, "S", "wins over the attribute")
        .optional("zero_point", zero_points, "Z", "of the scale's shape; wins over the attribute")
        .output("y", "")
        .domain("scale", 0.05, 0.5)
        .domain("zero_point", 0, 3);
  };
}

OpWriter& scale_attrs(OpWriter& op) {
  return op.layout(LayoutRule::kAxis)
      .attr("axis", 1, "of a vector of scales, and of blocks")
      .attr("block_size", 0, "elements of a block along the axis; 0: as many as divide x evenly")
      .attr("scale", 1.0, "if there is no tensor")
      .attr("zero_point", 0.0, "if there is no tensor");
}

}  // namespace

OP(quantize)
    .doc(
        "x in steps of a scale, as integers around a zero point or as narrow floats. Integers "
        "are rounded to nearest even and clamped. The quotient is rounded to x's dtype first. "
        "One scale serves the tensor, a vector of them an axis, and scales of x's rank a block "
        "each.")
    .formula("y = saturate(rint(x / scale) + zero_point)")
    .mps("quantizeTensor:scale:zeroPoint:dataType:name:")
    .mps("quantizeTensor:scaleTensor:zeroPoint:dataType:axis:name:")
    .mps("quantizeTensor:scaleTensor:zeroPointTensor:dataType:axis:name:")
    .input("x", kFloat)
    .with(scaled_by(kQuantized))
    .required("dtype", AttrKind::kDType, "of y")
    .with(scale_attrs)
    .attr("saturate", true, "for narrow floats: what is too large becomes the largest number")
    .infer(infer_quantize)
    .sample({"tensor", {{3, 17}, {}, {}}, {{"dtype", DType::kU8}}})
    .sample({"attributes", {{2, 5}}, {{"dtype", DType::kI8}, {"scale", 0.1}, {"zero_point", -3.0}}})
    .sample({"axis", {{2, 3, 4, 5}, {3}, {3}}, {{"dtype", DType::kI8}}})
    .sample({"last", {{4, 19}, {19}}, {{"dtype", DType::kU8}, {"axis", -1}}})
    .sample({"blocks", {{3, 10}, {3, 3}, {3, 3}}, {{"dtype", DType::kI4}, {"block_size", 4}}})
    .sample({"groups", {{4, 6}, {2, 3}}, {{"dtype", DType::kI16}}})
    .sample({"u2", {{33}, {}}, {{"dtype", DType::kU2}, {"axis", 0}}})
    .sample({"f8", {{2, 9}, {}}, {{"dtype", DType::kF8E4M3}}})
    .sample({"f4", {{2, 9}, {2}}, {{"dtype", DType::kF4E2M1}, {"axis", 0}}})
    .sample({"scalar", {{}, {}}, {{"dtype", DType::kU16}}})
    .sample({"empty", {{0, 3}, {3}}, {{"dtype", DType::kU8}}});

OP(dequantize)
    .doc("The numbers that quantized elements stand for; see quantize for the scales.")
    .formula("y = (x - zero_point) * scale")
    .mps("dequantizeTensor:scale:zeroPoint:dataType:name:")
    .mps("dequantizeTensor:scaleTensor:zeroPoint:dataType:axis:name:")
    .mps("dequantizeTensor:scaleTensor:zeroPointTensor:dataType:axis:name:")
    .mps("dequantizeTensor:scaleTensor:zeroPointTensor:dataType:name:")
    .mps("dequantizeTensor:scaleTensor:dataType:name:")
    .input("x", kQuantized)
    .with(scaled_by(kQuantized | kFloat))
    .attr("dtype", DType::kF32, "of y")
    .with(scale_attrs)
    .facts(kRoundsLittle)
    .infer(infer_dequantize)
    .domain(-100, 100)
    .tolerance({.f32 = 1e-6, .f16 = 1e-3, .bf16 = 1e-2, .f64 = 1e-10})
    .sample({"tensor", {{3, 17}, {}, {}}, {}})
    .sample({"attributes", {{2, 5}}, {{"scale", 0.1}, {"zero_point", 3.0}}})
    .sample({"axis", {{2, 3, 4, 5}, {3}, {3}}, {}})
    .sample({"last", {{4, 19}, {19}}, {{"axis", -1}}})
    .sample({"blocks", {{3, 10}, {3, 3}, {3, 3}}, {{"block_size", 4}}})
    .sample({"block rows", {{7, 5}, {3, 5}}, {{"block_size", 3}, {"axis", 0}}})
    .sample({"groups", {{4, 6}, {2, 3}}, {{"dtype", DType::kF16}}})
    .sample({"scalar", {{}, {}}, {}})
    .sample({"empty", {{0, 3}, {3}}, {}});

OP(dequantize_lut)
    .doc(
        "Elements of a lookup table. The table has x's axes, each as many entries as there are "
        "groups along it, then an axis of entries; with a last axis more the entries are vectors, "
        "which lie along `axis` of y. A table with the axis of entries alone serves all of x.")
    .formula("y[i..] = table[i / group .., x[i..]]")
    .mps("dequantizeTensor:LUTTensor:name:")
    .mps("dequantizeTensor:LUTTensor:axis:name:")
    .input("x", bit(DType::kU8) | bit(DType::kU4) | bit(DType::kU2))
    .input("table", kFloat | bit(DType::kI8) | bit(DType::kU8), "V")
    .output("y", "V")
    .attr("axis", 0, "along which vectors lie")
    .infer(infer_lut)
    .domain(0, 3)
    .sample({"one", {{3, 5}, {4}}, {}})
    .sample({"groups", {{4, 6}, {2, 3, 4}}, {}})
    .sample({"vectors", {{4, 3}, {2, 1, 4, 2}}, {{"axis", 1}}})
    .sample({"scalar", {{}, {4}}, {}})
    .sample({"empty", {{0, 2}, {4}}, {}});

OP(dynamic_quantize)
    .doc("Quantizes to u8 with the scale and zero point that fit x's range, which holds 0.")
    .formula("scale = (max(x, 0) - min(x, 0)) / 255; zero_point = clamp(rint(-min(x, 0) / scale))")
    .input("x", bit(DType::kF32))
    .output("y", "u8")
    .output("scale", "f32")
    .output("zero_point", "u8")
    .layout(LayoutRule::kElements)
    .infer(infer_dynamic)
    .sample({"matrix", {{5, 33}}, {}})
    .sample({"large", {{3, 5001}}, {}})
    .sample({"scalar", {{}}, {}})
    .sample({"empty", {{0, 3}}, {}});

}  // namespace anymps
