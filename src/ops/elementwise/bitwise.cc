// SPDX-License-Identifier: Apache-2.0
// Elementwise work on the bits of integers. Shifts by less than 0 or by the width of the type and
// more move every bit out; signed numbers shift right with their sign.
#include "ops/elementwise/elementwise_record.h"
#include "ops/gradient.h"

namespace anymps {

#define BITWISE(name, dtypes, text, math) BINARY(name, dtypes, text, math).domain(-100, 100)
#define BITWISE_UNARY(name, dtypes, text, math) UNARY(name, dtypes, text, math).domain(-100, 100)

constexpr DTypeSet kBits = kInt | kBoolean;

BITWISE(bitwise_and, kBits, "Bits that are set in both.", "y = a & b")
    .onnx("BitwiseAnd")
    .mps("bitwiseANDWithPrimaryTensor:secondaryTensor:name:")
    .facts(kCommutative);
BITWISE(bitwise_or, kBits, "Bits that are set in one or both.", "y = a | b")
    .onnx("BitwiseOr")
    .mps("bitwiseORWithPrimaryTensor:secondaryTensor:name:")
    .facts(kCommutative);
BITWISE(bitwise_xor, kBits, "Bits that are set in exactly one.", "y = a ^ b")
    .onnx("BitwiseXor")
    .mps("bitwiseXORWithPrimaryTensor:secondaryTensor:name:")
    .facts(kCommutative);
BITWISE_UNARY(bitwise_not, kBits, "Every bit turned over.", "y = ~x")
    .onnx("BitwiseNot")
    .mps("bitwiseNOTWithTensor:name:");
BITWISE(left_shift, kInt, "Bits moved up by b places; zeros come in.", "y = a << b")
    .mps("bitwiseLeftShiftWithPrimaryTensor:secondaryTensor:name:")
    .domain("b", 0, 9);
BITWISE(right_shift, kInt, "Bits moved down by b places; copies of the sign come in.", "y = a >> b")
    .mps("bitwiseRightShiftWithPrimaryTensor:secondaryTensor:name:")
    .domain("b", 0, 9);
BITWISE_UNARY(population_count, kInt, "How many bits are set.", "y = popcount(x)")
    .mps("bitwisePopulationCountWithTensor:name:");

ZERO_GRADIENT(bitwise_and, "works on integers");
ZERO_GRADIENT(bitwise_or, "works on integers");
ZERO_GRADIENT(bitwise_xor, "works on integers");
ZERO_GRADIENT(bitwise_not, "works on integers");
ZERO_GRADIENT(left_shift, "works on integers");
ZERO_GRADIENT(right_shift, "works on integers");
ZERO_GRADIENT(population_count, "works on integers");

}  // namespace anymps
