// SPDX-License-Identifier: Apache-2.0
// Attention, written as the products and the softmax that it is made of.
#include <cmath>
#include <limits>

#include "formats/onnx/write/emit.h"

namespace anymps::onnx {

namespace {

ONNX_WRITE(sdpa) {
  const Dim& depth = e.value(0).shape()[3];
  double scale = e.attrs().f("scale");
  if (scale == 0 && !depth.known()) e.refuse("the width of a head is not known");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(depth.value()));
  const DType dtype = e.dtype();
  const std::string low = e.number(dtype, -std::numeric_limits<double>::infinity());
  const std::string q = e.add("Mul", {e.in(0), e.number(dtype, scale)});
  std::string s = e.add("MatMul", {q, last_two_swapped(e, 1)});
  bool hidden = e.has(3);
  if (e.has(3) && e.dtype(3) == DType::kBool)
    s = e.add("Where", {e.in(3), s, low});
  else if (e.has(3))
    s = e.add("Add", {s, e.dtype(3) == dtype ? e.in(3) : e.cast(e.in(3), dtype)});
  if (e.attrs().b("causal")) {
    const std::string ones =
        e.add("Expand", {e.number(DType::kBool, 1), e.add("Shape", {s}, {{"start", 2}})});
    s = e.add("Where", {e.add("Trilu", {ones}, {{"upper", 0}}), s, low});
  }
  std::string p = e.add("Softmax", {s}, {{"axis", -1}});
  if (hidden) {  // a query that sees no key gives 0
    const std::string most = e.add("ReduceMax", {s, e.ints({-1})});
    p = e.add("Where", {e.add("Equal", {most, low}), e.number(dtype, 0), p});
  }
  return {e.add("MatMul", {p, e.in(2)})};
}

}  // namespace

}  // namespace anymps::onnx
