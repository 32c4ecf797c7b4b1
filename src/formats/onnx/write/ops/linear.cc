// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include "formats/onnx/write/emit.h"

namespace anymps::onnx {

namespace {

ONNX_WRITE(matmul) {
  const std::string a = e.attrs().b("transpose_a") ? last_two_swapped(e, 0) : e.in(0),
                    b = e.attrs().b("transpose_b") ? last_two_swapped(e, 1) : e.in(1);
  std::string y = e.add("MatMul", {a, b});
  if (e.attrs().f("alpha") != 1) y = e.add("Mul", {y, e.number(e.dtype(), e.attrs().f("alpha"))});
  for (size_t i : {2, 3})
    if (e.has(i)) y = e.add("Add", {y, e.in(i)});
  return {activated(e, y, "act_alpha", "act_beta")};
}

}  // namespace

}  // namespace anymps::onnx
