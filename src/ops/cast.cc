// SPDX-License-Identifier: Apache-2.0
// Conversion between element types.
#include "ops/elementwise_infer.h"

namespace anymps {

OP(cast)
    .doc(
        "x in another dtype. Float to integer drops the fraction, clamps to the range and makes "
        "NaN 0; integers wrap; bool is x != 0; a complex number gives its real part.")
    .formula("y = dtype(x)")
    .mps("castTensor:toType:name:")
    .input("x", kAny)
    .output("y", "")
    .required("dtype", AttrKind::kDType, "the dtype of y")
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
    .sample({"scalar", {{}}, {{"dtype", DType::kF32}}, {}})
    .sample({"empty", {{0, 4}}, {{"dtype", DType::kF16}}, {}});

}  // namespace anymps
