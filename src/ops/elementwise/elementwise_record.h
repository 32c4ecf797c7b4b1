// SPDX-License-Identifier: Apache-2.0
// What the records of elementwise ops have in common, written once.
#pragma once

#include "ops/elementwise/elementwise_infer.h"

#define ELEMENTWISE(name, text, math) \
  OP(name).doc(text).formula(math).facts(kElementwise).infer(infer_elementwise)

// Of one input, or of two of one dtype, with a result of that dtype.
#define UNARY(name, dtypes, text, math) ELEMENTWISE(name, text, math).input("x", dtypes).output("y")
#define BINARY(name, dtypes, text, math) \
  ELEMENTWISE(name, text, math).input("a", dtypes).input("b", dtypes).output("y")
