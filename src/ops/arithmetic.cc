// SPDX-License-Identifier: Apache-2.0
// Elementwise arithmetic.
#include "ops/infer.h"

namespace anymps {

OP(add)
    .doc("Sum of two tensors, with broadcasting.")
    .formula("y = a + b")
    .mps("additionWithPrimaryTensor:secondaryTensor:name:")
    .input("a", kNumber)
    .input("b", kNumber)
    .output("y")
    .facts(kElementwise | kCommutative)
    .infer(infer_broadcast);

}  // namespace anymps
