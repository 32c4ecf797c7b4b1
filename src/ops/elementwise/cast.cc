// SPDX-License-Identifier: Apache-2.0
// Conversion between element types.
#include "ops/elementwise/elementwise_infer.h"
#include "ops/gradient.h"

namespace anymps {

OP(cast)
    .doc(
        "x in another dtype. Float to integer drops the fraction, clamps to the range and makes "
        "NaN 0; integers wrap, and everything that becomes i4, u4, i2 or u2 does; bool is x != 0; "
        "a complex number gives its real part. Narrow floats round to nearest even. A number as a "
        "string has the fewest digits that read back as the same number.")
    .formula("y = dtype(x)")
    .mps("castTensor:toType:name:")
    .input("x", kEvery)
    .output("y", "")
    .required("dtype", AttrKind::kDType, "the dtype of y")
    .attr("saturate", true,
          "what is too large for a narrow float becomes its largest number, not infinity or NaN")
    .attr("round_mode", "up", {"up", "down", "nearest"}, "to which power of two, for f8e8m0")
    .facts(kElementwise)
    .infer(infer_elementwise)
    .domain(-4, 4)
    .tolerance({.f32 = 1e-7, .f16 = 1e-3, .bf16 = 1e-2, .f64 = 1e-15})
    .sample({"to_f32", {{2, 5}}, {{"dtype", DType::kF32}}, {}})
    .sample({"to_f16", {{2, 5}}, {{"dtype", DType::kF16}}, {}})
    .sample({"to_bf16", {{7}}, {{"dtype", DType::kBF16}}, {}})
    .sample({"to_f64", {{7}}, {{"dtype", DType::kF64}}, {}})
    .sample({"to_i8", {{7}}, {{"dtype", DType::kI8}}, {}})
    .sample({"to_i32", {{3, 4}}, {{"dtype", DType::kI32}}, {}})
    .sample({"to_i64", {{3, 4}}, {{"dtype", DType::kI64}}, {}})
    .sample({"to_u8", {{33}}, {{"dtype", DType::kU8}}, {}})
    .sample({"to_bool", {{33}}, {{"dtype", DType::kBool}}, {}})
    .sample({"to_c64", {{5}}, {{"dtype", DType::kC64}}, {}})
    .sample({"to_c128", {{5}}, {{"dtype", DType::kC128}}, {}})
    .sample({"to_i4", {{33}}, {{"dtype", DType::kI4}}, {}})
    .sample({"to_u2", {{9}}, {{"dtype", DType::kU2}}, {}})
    .sample({"to_f8e4m3", {{33}}, {{"dtype", DType::kF8E4M3}}, {}})
    .sample({"to_f8e5m2", {{33}}, {{"dtype", DType::kF8E5M2}, {"saturate", false}}, {}})
    .sample({"to_f8e4m3fnuz", {{33}}, {{"dtype", DType::kF8E4M3FNUZ}}, {}})
    .sample({"to_f8e8m0", {{33}}, {{"dtype", DType::kF8E8M0}, {"round_mode", "nearest"}}, {}})
    .sample({"to_f4e2m1", {{2, 9}}, {{"dtype", DType::kF4E2M1}}, {}})
    .sample({"scalar", {{}}, {{"dtype", DType::kF32}}, {}})
    .sample({"empty", {{0, 4}}, {{"dtype", DType::kF16}}, {}});

COMPLEX_GRADIENT(cast) { ctx.set(0, ctx.dy().op("cast", {{"dtype", ctx.x().dtype()}})); }

KNOWN_ELEMENTS(cast) {
  if (attrs.dtype("dtype") != DType::kBool) return x[0];
  if (!x[0].known()) return {};
  return Dim(x[0].value() != 0);
}

}  // namespace anymps
